"""The state of a policy in memory, and the compiled functions of its live decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._compile import entry_point, for_sources
from evenhand._compile.generics import telling
from evenhand._random import mix
from evenhand.errors import InputError
from evenhand.leastsquares import Prior
from evenhand.leastsquares._prior import checked_prior
from evenhand.policies import _kernels as kernels
from evenhand.policies import _live_calls as calls
from evenhand.policies._settings import Settled, own_learner, own_state, with_own_arrays
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

# What a policy in plain Python writes as methods, and what only a rule has, as kernels.
IN_PYTHON = ("score", "learn", "learn_true")
IN_KERNELS = ("draw", "chance", "explore", "explore_chance", "settle")


class Live(Settled):
    """The part of `Policy` that holds the state and calls compiled code."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in IN_PYTHON if cls.is_compiled() else ():
            if getattr(cls, name) is not getattr(Live, name):
                raise InputError(
                    f"{cls.__name__} has a rule, and a method {name} in plain Python that would "
                    f"not be called; mark a function with @kernel({name}, ...) for the rule, or "
                    "derive the class from Policy instead"
                )
        for name in IN_KERNELS:
            if callable(getattr(cls, name, None)):
                raise InputError(
                    f"{cls.__name__} has a method {name}, which would not be called; mark a "
                    f"function with @kernel({name}, ...) for a rule, or give the method another "
                    "name"
                )
        is_plain = cls.score is not Live.score  # and no base class for others
        if is_plain and cls.learns_truth != (cls.learn_true is not Live.learn_true):
            raise InputError(
                f"{cls.__name__} takes true rewards, and has no method learn_true that learns "
                "them; write one, or set learns_truth to False"
                if cls.learns_truth
                else f"{cls.__name__} has a method learn_true, which would not be called; set "
                "learns_truth to True"
            )
        if "rule" in vars(cls) and "takes_membership" not in vars(cls):
            cls.takes_membership = False  # another rule may not know where membership stands

    learns_groups: ClassVar[bool] = False
    """Whether group regressions are kept. They cost as much as those of the arms."""

    learns_by_round: ClassVar[bool] = False
    """Whether `learn` uses the round of a reward's decision, see `round_learned`."""

    learns_truth: ClassVar[bool] = False
    """Whether `update` takes true rewards, which the kernel or method `learn_true` learns."""

    added_since: ClassVar[tuple[str, ...]] = ()
    """Parts of `learns` that older saved policies lack; these then keep their initial values."""

    estimates_variances: ClassVar[bool] = False
    """Whether widths follow variances that are estimated, and so may grow with data."""

    takes_membership: ClassVar[bool] = False
    """Whether membership that comes with the round (`Groups.per_round`) makes sense. It follows the
    features of every row, and `members.group_of` does not have it; so a class that writes a rule
    says this anew."""

    # The maths, written by subclasses ------------------------------------------------------------

    def rule(self) -> NamedTuple:
        """The policy's own numbers, for its compiled functions.

        Example:
            >>> import evenhand as eh
            >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
            >>> rule = eh.GroupFairTopInterval(groups, n_features=1).rule()
            >>> rule.sensitive, rule.other, rule.offset
            (0, 1, 0.0)
        """
        return NOTHING

    def learns(self) -> NamedTuple:
        """The initial value of what the policy learns besides its regressions.

        A NamedTuple of NumPy arrays. `learn` changes them: as `self.own` in plain Python, as
        `state.own` in a kernel. They are saved, copied and replayed with the rest, and merged by
        adding, so keep sums.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from typing import NamedTuple
            >>> class Beta(NamedTuple):
            ...     good: np.ndarray
            ...     bad: np.ndarray
            >>> class Successes(eh.TopInterval):
            ...     def learns(self):
            ...         return Beta(np.ones(self.n_arms), np.ones(self.n_arms))
            >>> Successes(["F", "M"], n_features=1).learns()
            Beta(good=array([1., 1.]), bad=array([1., 1.]))
        """
        return NOTHING

    def prior(self) -> Prior | None:
        """What is believed about the coefficients of every regression before any data.

        It takes the place of a ridge: N(mean, sigma^2 precision^-1), where sigma is the noise.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from evenhand.leastsquares import Prior
            >>> class Expecting(eh.TopInterval):
            ...     def prior(self):
            ...         return Prior(np.full(self.n_features, 30.0), np.eye(self.n_features))
            >>> policy = Expecting(["F", "M"], n_features=1)
            >>> policy.absorb([0], np.ones((1, 1)), [20.0])
            >>> policy.intervals(np.ones((2, 1)))[0].tolist()
            [25.0, 30.0]
        """
        return None

    def score(self, contexts: NDArray[np.float64]) -> ArrayLike:  # noqa: ARG002
        """The upper bound of every arm, in plain Python in place of a compiled rule.

        `self.intervals(contexts)` has the arms' estimates and widths. The result may also be a
        table of five rows: estimate, width, correction, correction_width and upper.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> class HalfBonus(eh.Policy):
            ...     def score(self, contexts):
            ...         estimate, width = self.intervals(contexts)
            ...         return estimate + 0.5 * width
            >>> policy = HalfBonus(["F", "M"], n_features=1, horizon=100)
            >>> policy.absorb([0, 1], np.ones((2, 1)), [2.0, 3.0])
            >>> policy.score(np.ones((2, 1))).round(2).tolist()
            [3.74, 4.74]
        """
        raise InputError(f"{type(self).__name__} has neither a rule nor a score; write one of them")

    def learn(self, arm: int, context: NDArray[np.float64], reward: float) -> None:
        """Learn more from a reward than regressions do, in plain Python in place of a kernel.

        It is called once for every reward, after the regressions have learned it, and changes the
        arrays of `self.own`. Nobody decides or saves meanwhile. If it raises an error, nothing of
        the call is learned. It may read what else was learned, and `self.round`, which has the same
        value in a replay.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from typing import NamedTuple
            >>> from evenhand.policies.base import Policy
            >>> class Total(NamedTuple):
            ...     reward: np.ndarray
            >>> class HighestTotal(Policy):
            ...     def learns(self):
            ...         return Total(np.zeros(self.n_arms))
            ...     def learn(self, arm, context, reward):
            ...         self.own.reward[arm] += reward
            ...     def score(self, contexts):
            ...         return self.own.reward
            >>> policy = HighestTotal(["F", "M"], n_features=1)
            >>> policy.absorb([0, 1, 0], np.ones((3, 1)), [2.0, 5.0, 4.0])
            >>> policy.own.reward.tolist()
            [6.0, 5.0]
        """

    def learn_true(
        self, arm: int, context: NDArray[np.float64], value: float, observed: float
    ) -> None:
        """Learn a true reward that comes later, in plain Python in place of a kernel.

        For classes with `learns_truth`. `observed` is the observed reward of the same decision, NaN
        if it is not known. For the rest it is like `learn`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from typing import NamedTuple
            >>> from evenhand.policies.base import Policy
            >>> class Worth(NamedTuple):
            ...     total: np.ndarray
            >>> class HighestWorth(Policy):
            ...     learns_truth = True
            ...     def learns(self):
            ...         return Worth(np.zeros(self.n_arms))
            ...     def learn_true(self, arm, context, value, observed):
            ...         self.own.total[arm] += value
            ...     def score(self, contexts):
            ...         return self.own.total
            >>> policy = HighestWorth(["F", "M"], n_features=1, seed=1)
            >>> decision = policy.select(np.ones((2, 1)), available=[0])
            >>> policy.update(decision, true_reward=2.0)
            >>> policy.own.total.tolist()
            [2.0, 0.0]
        """

    @classmethod
    def is_compiled(cls) -> bool:
        """Whether the maths is a compiled rule, not plain Python."""
        return cls.rule is not Live.rule

    # Inside -------------------------------------------------------------------------------------

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
