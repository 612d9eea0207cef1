"""A simulated run as a log, with contexts, propensities and true rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.errors import InputError
from evenhand.events._header import About
from evenhand.events._ids import id_of
from evenhand.events._read import labelled
from evenhand.events._rows import FIELDS, frame_of
from evenhand.events._tables import log_path, write_table
from evenhand.policies._saved_settings import plain_groups
from evenhand.policies._settings import constructed
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.recording._decision_records import (
    candidate_contexts,
    candidate_propensities,
    columns_of,
)
from evenhand.recording._replay import checksum
from evenhand.simulation._plain_rounds import each_round
from evenhand.simulation._replications import PolicyMaker
from evenhand.simulation._simulate import named_policies
from evenhand.worlds.base import World


def simulate_log(
    policy: PolicyMaker,
    world: World,
    horizon: int,
    seed: int = 0,
    replication: int = 0,
    path: str | Path | None = None,
    features: Sequence[object] | None = None,
    candidates: bool = False,
    **settings: Any,
) -> pd.DataFrame:
    """Every decision of a simulated run, as a log.

    The decisions and rewards are those of `simulate` with the same seed, in the same replication.
    `true_reward` is without noise or, if the world has true rewards that come later and the policy
    learns from them, what arrived. Timestamps are invented: one second per round from the start of
    1970. It runs in plain Python: 100,000 rounds take a few seconds.

    Args:
        policy: a class of policies, or `functools.partial` of one.
        world: where contexts and rewards come from.
        horizon: the number of rounds.
        seed: the seed of all random numbers, as in `simulate`.
        replication: the number of the replication, counted from 0.
        path: a Parquet or CSV file to write as well; `evenhand.replay` restores the policy from it.
        features: the names of the features; by default the world's own, or x1, x2, ...
        candidates: whether to keep the contexts and probabilities of all arms, as in `log_to`.
        settings: passed to the policy.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2, bias_mean=5)
        >>> log = eh.simulate_log(eh.UniformRandom, world, horizon=100, seed=1)
        >>> log[["round", "item_id", "propensity_score", "learned"]].tail(1)
            round  item_id  propensity_score  learned
        99    100        3              0.25      100
    """
    [(name, make)] = named_policies([policy]).items()
    if not isinstance(world, World):
        raise InputError(f"world is {world!r}; allowed is an instance of World", value=world)
    horizon = _checks.whole("horizon", horizon)
    number = _checks.whole("replication", replication, least=0)
    seed = _checks.whole("seed", seed, least=0, most=_checks.LARGEST_SEED)
    stream = np.random.SeedSequence(seed, spawn_key=(number,))
    file = None if path is None else _new(path)
    of_world, of_policy = stream.spawn(2)
    key = int(of_policy.generate_state(1, np.uint64)[0])
    given = (world.groups, world.n_features)
    player = constructed(name, make, *given, horizon=horizon, seed=key, **settings)
    named = getattr(world, "feature_names", None) if features is None else features
    start = to_dict(player) if file is not None else _outline(player)
    about = About(
        columns_of(named, player),
        start,
        candidates=bool(candidates),
        key=f"simulated-{seed}-{number}",
        truth=world.true_rewards is not None and player.learns_truth,
    )
    frame, head = _play(player, world, horizon, of_world, about)
    about = replace(about, head=head)
    if file is not None:
        state = {"round": horizon, "learned": horizon, "sha256": checksum(player)}
        write_table(file, replace(about, state=state), frame)
    return labelled(frame, about)


def _outline(policy: Policy) -> dict[str, Any]:
    """The part of a saved policy that rows need; some policies cannot be saved."""
    return {"settings": {"groups": plain_groups(policy.groups)}}


def _new(path: str | Path) -> Path:
    file = log_path(path)
    if file.exists():
        raise InputError(f"path is {str(path)!r}, which already exists; use another name")
    return file


def _play(
    policy: Policy, world: World, horizon: int, stream: np.random.SeedSequence, about: About
) -> tuple[pd.DataFrame, int]:
    """The rounds as rows, and the number of events.

    Each has a decision, then its reward, then its true reward; or the true reward of an earlier
    decision that becomes known in this round, if the world says so and the policy learns it.
    """
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    last = 0
    for now in each_round(policy, world, horizon, stream):
        decision, at, last = now.decision, 1_000_000 * now.round, last + 2
        known: tuple[Any, ...] = (None, None, None)
        if not about.truth:
            last += 1
            known = (float(now.true[decision.arm]), last, at)
        context = np.array(decision.row, dtype=np.float64)
        contexts = chances = None
        if about.candidates:
            contexts = candidate_contexts(policy, now.contexts)
            chances = candidate_propensities(policy, decision, now.contexts)
        row = (
            *(at, now.round, decision.arm, decision.propensity, now.reward),
            *(known[0], None, bool(decision.explored), now.round, context),
            *(contexts, chances, id_of(about.key, now.round)),
            *(last - 1 - (known[1] is not None), last - (known[1] is not None), at, *known[1:]),
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
        if now.arrived is not None:
            last += 1
            place = now.arrived[0].round - 1
            columns["true_reward"][place] = now.arrived[1]
            columns["true_seq"][place], columns["true_at"][place] = last, at
    return frame_of(about, columns), last
