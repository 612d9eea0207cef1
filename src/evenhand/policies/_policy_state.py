"""The state of a policy in memory, and the compiled functions of its live decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import entry_point, for_sources
from evenhand._compile.generics import telling
from evenhand._random import mix
from evenhand.leastsquares import Prior
from evenhand.leastsquares._prior import checked_prior
from evenhand.policies import _kernels as kernels
from evenhand.policies import _live_calls as calls
from evenhand.policies._definition import Definition
from evenhand.policies._settings import own_learner, own_state, with_own_arrays
from evenhand.policies._state import (
    N_SCORES,
    NOTHING,
    Members,
    State,
    WidthSettings,
    copied,
    make_state,
    members_of,
    tables_of,
    tables_of_arm,
)


class Live(Definition):
    """The part of `Policy` that holds the state and calls compiled code."""

    def _group_sizes(self) -> NDArray[np.int64]:
        """|P_j| in the level of the width of group j."""
        return self.groups.sizes

    @cached_property
    def _rule(self) -> NamedTuple:
        rule = self.rule()
        if self._is_compiled:
            kernels.check_rule(rule, type(self).__name__, self.learns_truth)
            rule = with_own_arrays(rule)
        return rule

    @cached_property
    def _rule_of_learning(self) -> NamedTuple:
        """The rule for `learn`: policies that learn in the same way share compiled code."""
        return self._rule if kernels.learns_itself(type(self._rule)) else NOTHING

    @cached_property
    def _key(self) -> int:
        return int(mix(np.uint64(self.seed), 0)) >> 1  # a whole number that fits either sign

    def _restart(self, seed: int) -> None:
        """Begin at round 1 with another seed, after the state was wiped."""
        vars(self).update(seed=seed, round=0)
        vars(self).pop("_key", None)

    @cached_property
    def _is_compiled(self) -> bool:
        return self.is_compiled()

    def _compiled(
        self, function: Callable[..., Any], rule: NamedTuple | None = None
    ) -> Callable[..., Any]:
        """A compiled function that takes rules, for the rule of this policy or another."""
        rule = self._rule if rule is None else rule
        return for_sources(function, kernels.sources_for(rule, self._compiled_state.own))

    # The compiled functions of a live policy, for its own types: see `entry_point`.

    @cached_property
    def _decide(self) -> Callable[..., tuple[int, float, bool]]:
        rows, table = np.empty((1, 1)), np.empty((1, 1))
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(calls.decide),
                self._any_rule,
                self._compiled_state,
                self._members,
                self._schedule,
                self._all_arms,
                1,
                1,
                rows,
                np.empty(1),
                table,
                np.empty(1),
            )

    @cached_property
    def _teach(self) -> Callable[..., bool]:
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(calls.teach, self._rule_of_learning),
                self._rule_of_learning,
                self._compiled_state,
                0,
                np.int64(0),
                np.empty(1),
                0.0,
                0,
                True,
            )

    @cached_property
    def _teach_true(self) -> Callable[..., bool]:
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(calls.teach_true),
                self._rule,
                self._compiled_state,
                0,
                np.int64(0),
                np.empty(1),
                0.0,
                0.0,
                0,
                True,
            )

    @cached_property
    def _settle(self) -> Callable[..., None]:
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(calls.settle_now, self._rule_of_learning),
                self._rule_of_learning,
                self._compiled_state,
            )

    @contextmanager
    def _undoing(self, arm: int | None = None) -> Iterator[None]:
        """The lock, for learning in plain Python: what was learned is undone if that fails.

        Args:
            arm: the only arm that learns, if it is one: then less has to be copied.
        """
        with self._lock:
            if type(self).learn is Live.learn and not self.learns_truth:
                yield
                return
            state = self._state
            parts = tables_of(state) if arm is None else tables_of_arm(state, self._members, arm)
            before, changes = [part.copy() for part in parts], self._changes[0]
            try:
                yield
            except BaseException:
                for part, kept in zip(parts, before, strict=True):
                    part[...] = kept
                if not own_learner(type(self)):  # otherwise it may have learned elsewhere
                    self._changes[0] = changes
                raise

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and copying: all but the lock and the compiled functions."""
        remade = (
            "_decide",
            "_teach",
            "_teach_true",
            "_settle",
            "_lock",
            "_changes",
            "_compiled_state",
            "_regressions",
        )
        with self._lock:
            kept = {k: v for k, v in self.__dict__.items() if k not in remade}
            if "_state" in kept:
                kept["_state"] = copied(kept["_state"])
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_lock()

    def _make_lock(self) -> None:
        # Held while a round is decided, while rewards are learned, and while what was learned is
        # read. A score in plain Python reads it within a round, so a thread may take it twice.
        self._lock = threading.RLock()
        # How often something was learned: in a list, because setting an attribute takes time.
        self._changes = [0]

    @cached_property
    def _prior(self) -> Prior | None:
        prior = self.prior()
        return None if prior is None else checked_prior(prior, self._shape[1])

    @cached_property
    def _members(self) -> Members:
        return members_of(self.groups.of, len(self.groups))

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The shape of contexts, with membership after the features if it comes with the round."""
        columns = len(self.groups.columns) if self.groups.changes else 0
        return (self.n_arms, self.n_features + columns)

    @cached_property
    def _all_arms(self) -> NDArray[np.bool_]:
        return np.ones(self.n_arms, dtype=np.bool_)

    @cached_property
    def _state(self) -> State:
        with self._lock:
            if "_state" not in self.__dict__:  # another thread may have been here first
                self.__dict__["_state"] = self._new_state()
        state: State = self.__dict__["_state"]
        return state

    def _learned_so_far(self) -> tuple[State, int]:
        """A copy of the state, and the round, at a moment when nobody learns."""
        with self._lock:
            return copied(self._state), self.round

    @cached_property
    def _compiled_state(self) -> State:
        """The part of the state that compiled functions take: plain Python has its own part."""
        return self._state if self._is_compiled else self._regressions

    @cached_property
    def _regressions(self) -> State:
        """The state without the policy's own part, so that users' types stay out of our caches."""
        return self._state._replace(own=NOTHING)

    def _new_state(self) -> State:
        own = self.learns()
        own_state(own, type(self).__name__)
        own = type(own)(*(table.copy() for table in own))  # `learns` may return the same every time
        return make_state(
            self._group_sizes(),
            *self._shape,
            self.learns_groups,
            self.singular,
            self.ridge or 0.0,
            WidthSettings(
                n_arms=self.n_arms,
                delta=self.delta,
                horizon=self.horizon or 0,
                noise=-1.0 if isinstance(self.noise, str) else self.noise,
                by_round=self.horizon is None or self.conventions.level == "round",
                by_variance=self.conventions.width == "variance",
                first_of_ties=self.conventions.ties == "first",
            ),
            own,
            self._prior,
        )

    @property
    def _any_rule(self) -> NamedTuple:
        """A rule of the type that decisions use."""
        return self._rule if self._is_compiled else PlainRule(np.zeros((N_SCORES, 1)))


class PlainRule(NamedTuple):
    """The rule of a decision in plain Python: its scores."""

    table: NDArray[np.float64]


@kernels.kernel(kernels.score, PlainRule)
def _score_plain(rule, memory, t):  # type: ignore[no-untyped-def]
    for row in range(rule.table.shape[0]):
        for i in range(rule.table.shape[1]):
            memory.work[row, i] = rule.table[row, i]
