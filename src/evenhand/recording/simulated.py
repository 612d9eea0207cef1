"""A simulated run as a log, with contexts, propensities and true rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._dispatch import telling
from evenhand.events._rows import frame_of
from evenhand.events.header import About, feature_names
from evenhand.events.read import labelled
from evenhand.events.tables import log_path, write_table
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.policies.state import NOTHING
from evenhand.recording._lines import candidate_contexts, candidate_propensities
from evenhand.recording._replay import checksum
from evenhand.simulation._loop import _for_types
from evenhand.simulation._pieces import PolicyMaker
from evenhand.simulation.run import named_policies
from evenhand.worlds.base import World, begin, next_round, reward_of


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

    The decisions and rewards are those of `simulate` with the same seed, in its replication of
    that number. `true_reward` is without noise. Timestamps are made up: a second per round from
    the start of 1970. It runs in plain Python: 100,000 rounds take
    a few seconds.

    Args:
        policy: a class of policies, or `functools.partial` of one.
        world: where contexts and rewards come from.
        horizon: the number of rounds.
        seed: of everything, as in `simulate`.
        replication: which of its replications.
        path: a Parquet or CSV file to write as well; `evenhand.replay` gives the policy back.
        features: the names of the features; without it the world's own, or x1, x2, ...
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
    [make] = named_policies([policy]).values()
    if not isinstance(world, World):
        raise ValueError(f"world is {world!r}; allowed is an instance of World")
    horizon = _checks.whole("horizon", horizon)
    number = _checks.whole("replication", replication, least=0)
    seed = _checks.whole("seed", seed, least=0, most=_checks.LARGEST_SEED)
    stream = np.random.SeedSequence(seed, spawn_key=(number,))
    file = None if path is None else _new(path)
    of_world, of_policy = stream.spawn(2)
    key = int(of_policy.generate_state(1, np.uint64)[0])
    try:
        player = make(world.groups, world.n_features, horizon=horizon, seed=key, **settings)
    except TypeError as error:
        raise ValueError(f"policy: {error}") from error
    named = getattr(world, "feature_names", None) if features is None else features
    start = to_dict(player) if file is not None else _outline(player)
    about = About(feature_names(named, world.n_features), start, candidates=bool(candidates))
    frame = _play(player, world, horizon, of_world, about)
    if file is not None:
        state = {"round": horizon, "learned": horizon, "sha256": checksum(player)}
        write_table(file, replace(about, state=state), frame)
    return labelled(frame, about)


def _outline(policy: Policy) -> dict[str, Any]:
    """What the rows need to know of a policy; one that is not written need not be one to save."""
    return {"settings": {"groups": {"labels": list(policy.groups.labels)}}}


def _new(path: str | Path) -> Path:
    file = log_path(path)
    if file.exists():
        raise ValueError(f"path is {str(path)!r}, which is there already; take another name")
    return file


def _play(
    policy: Policy, world: World, horizon: int, stream: np.random.SeedSequence, about: About
) -> pd.DataFrame:
    """The rounds of `simulation.loop`, with what they leave out."""
    generator = np.random.default_rng(stream)
    instance = begin(world, generator)
    draw = _for_types(next_round, policy._rule, NOTHING, instance)
    given = _for_types(reward_of, policy._rule, NOTHING, instance)
    observed, true = np.empty(world.n_arms), np.empty(world.n_arms)
    contexts = np.empty((world.n_arms, world.n_features))
    kept, met = [], np.empty((horizon, world.n_features))
    others, chances = [], []
    with telling(f"{type(policy).__name__} in {type(world).__name__}"):
        for t in range(1, horizon + 1):
            noise = draw(instance, t, generator, contexts, observed, true)
            decision = policy.select(contexts)
            if about.candidates:
                others.append(candidate_contexts(policy, contexts))
                chances.append(candidate_propensities(policy, decision, contexts))
            arm = decision.arm
            reward = float(given(instance, t, arm, observed[arm], noise))
            policy.update(decision, reward)
            truth = float(true[arm])
            kept.append((arm, decision.propensity, reward, truth, bool(decision.explored)))
            met[t - 1] = decision.context
    arms, propensities, rewards, true_rewards, explored = zip(*kept, strict=True)
    rounds, none = range(1, horizon + 1), [None] * horizon
    return frame_of(
        about,
        [1_000_000 * t for t in rounds],
        rounds,
        arms,
        propensities,
        rewards,
        true_rewards,
        none,
        explored,
        rounds,
        met,  # type: ignore[arg-type]
        others,
        chances,
    )
