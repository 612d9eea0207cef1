"""The frame of every policy: settings, select, update, save. The maths is in the rules."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._checks import unmasked
from evenhand._compile import entry_point, for_sources
from evenhand._dispatch import telling
from evenhand.conventions import PAPER, Conventions
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.leastsquares import Prior, counts, merge
from evenhand.policies import _checks as checking
from evenhand.policies import kernels
from evenhand.policies._streams import mix
from evenhand.policies.decision import Decision, Scores
from evenhand.policies.exploration import Exploration, Schedule, schedule
from evenhand.policies.state import (
    N_SCORES,
    NOTHING,
    Members,
    Settings,
    State,
    estimate_noise,
    make_state,
    members_of,
)

if TYPE_CHECKING:
    from evenhand.bias import BiasReport

POLICIES: dict[str, type[Policy]] = {}


class Common(TypedDict, total=False):
    """The settings that a policy passes on to `Policy`, which says what they mean."""

    noise: float | str
    singular: str | None
    ridge: float | None
    exploration: Exploration
    conventions: Conventions
    seed: int | None


class Policy:
    """A contextual bandit policy over arms that belong to groups.

    Subclass it and write `rule` (compiled, see `evenhand.policies.kernels`) or `score` (plain
    Python): docs/how-to/write-a-policy.md shows both.

    Args:
        groups: the group of every arm, as `Groups` or as a list of labels.
        n_features: the length of a context.
        horizon: the number of rounds T that the widths are made for. Without one, the level goes
            by the round: delta / (2 n t).
        delta: the probability with which any interval may fail.
        noise: the standard deviation sigma of the rewards around their mean, or "estimate" to
            learn it from the residuals (the widths then use Student's quantiles).
        singular: what to do while the data of an arm do not span all directions: "infinite" width
            along directions never seen, "pseudo-inverse", or "ridge". The default is the
            conventions'.
        ridge: the penalty, if `singular` is "ridge" (default 1.0).
        exploration: the probability of choosing at random: "paper" for t^(-1/3), "none", a
            constant, a list or a function of the round.
        conventions: PAPER or AUTHORS_CODE, see `evenhand.conventions`.
        seed: of the policy's own random numbers; without one it is drawn, and saved with the
            policy.

    Many threads may call `select` and all that only reads, while one learns: every call has room
    of its own, and no decision sees what is learned by half. Each round is given out once.
    """

    learns_groups: ClassVar[bool] = False
    """Whether group regressions are kept. They cost as much again as the arms' own."""

    _fixed: ClassVar[frozenset[str]] = frozenset()
    """The settings that do nothing any more once the policy is made, so they cannot be assigned."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        taken = POLICIES.get(cls.__name__)
        if (
            taken
            and taken.__module__.startswith("evenhand.")
            and taken.__module__ != cls.__module__
        ):
            raise InputError(f"{cls.__name__} is the name of a policy of evenhand's; take another")
        if not cls.__name__.startswith("_"):
            POLICIES[cls.__name__] = cls
        # A rule is made once; a score in plain Python reads its own settings in every round.
        cls._fixed = frozenset(_settings_of(cls if cls.is_compiled() else Policy))

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        noise: float | str = 1.0,
        singular: str | None = None,
        ridge: float | None = None,
        exploration: Exploration = "paper",
        conventions: Conventions = PAPER,
        seed: int | None = None,
    ) -> None:
        self.groups = groups if isinstance(groups, Groups) else Groups(groups)
        self.n_features = _checks.whole("n_features", n_features)
        self.horizon = None if horizon is None else _checks.whole("horizon", horizon)
        self.delta = _checks.number("delta", delta, 0.0, 1.0, open_ends=True)
        self.noise = checking.known_noise(noise)
        if not isinstance(conventions, Conventions):
            raise InputError(
                f"conventions is {conventions!r}; allowed is eh.PAPER or eh.AUTHORS_CODE"
            )
        self.conventions = conventions
        self.singular, self.ridge = checking.singular_treatment(singular, ridge, conventions)
        n_groups = len(self.groups) if self.learns_groups else 0
        checking.small_enough(self.n_arms, n_groups, self.n_features, self.singular)
        if isinstance(exploration, Iterable) and not isinstance(exploration, str):
            exploration = tuple(exploration)  # a generator could be read only once
        self.exploration = exploration
        self._schedule: Schedule = schedule(exploration, self.horizon)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.seed = _checks.whole("seed", seed, least=0, most=2**64 - 1)
        self._make_locks()
        self.round = 0
        """How many decisions were made."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and name in self.__dict__:
            raise AttributeError(
                f"{name} of a {type(self).__name__} is fixed when it is made; make another one, "
                f"such as policy.clone({name}=...)"
            )
        object.__setattr__(self, name, value)

    # The maths, by subclasses -------------------------------------------------------------------

    def rule(self) -> NamedTuple:
        """The policy's own numbers, for its compiled functions."""
        return NOTHING

    def learns(self) -> NamedTuple:
        """What the policy learns besides its regressions, before it has learned anything.

        A NamedTuple of NumPy arrays, as `state.own` for the kernel `learn` and `memory.own` for the
        others. It is saved, copied and replayed with the rest, and merged by adding: keep sums.
        """
        return NOTHING

    def prior(self) -> Prior | None:
        """What is believed of all coefficients before anything is seen, in place of a ridge."""
        return None

    def score(self, contexts: NDArray[np.float64]) -> ArrayLike:  # noqa: ARG002
        """Plain Python in place of a compiled rule: the upper bound of every arm.

        `self.intervals(contexts)` has the arms' estimates and widths. A table of five rows
        (estimate, width, correction, correction_width, upper) may be returned as well.
        """
        raise TypeError(f"{type(self).__name__} has neither a rule nor a score; write one of them")

    # Deciding -----------------------------------------------------------------------------------

    def select(self, contexts: ArrayLike, available: ArrayLike | None = None) -> Decision:
        """Choose an arm for this round. Learns nothing: that is `update`.

        Args:
            contexts: (n_arms, n_features), the context of every arm.
            available: a bool per arm, or the numbers of the arms that can be chosen this round.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=2, horizon=100, seed=1)
            >>> decision = policy.select(np.eye(2)[[0, 1, 0, 1]])
            >>> policy.update(decision, reward=1.5)
            >>> 0 <= decision.arm < 4, decision.propensity
            (True, 0.25)
        """
        rows = checking.rows_of(contexts, self._shape)
        open_arms = (
            self._all_arms if available is None else checking.open_arms(available, self.n_arms)
        )
        rule = self._rule if self._is_compiled else self._scored_in_python(rows)
        context, scores = np.empty(self.n_features), np.empty((N_SCORES, self._all_arms.size))
        with self._lock:  # a round belongs to one decision
            t = self.round + 1
            arm, propensity, explored = self._decide(
                rule,
                self._state,
                self._members,
                self._schedule,
                open_arms,
                t,
                self._key,
                rows,
                context,
                scores,
            )
            if arm < 0:
                raise checking.bad_contexts(-1 - arm, rows)
            self.__dict__["round"] = t  # past __setattr__: it would be a tenth of a decision
        return Decision(arm, propensity, explored, t, context, Scores(scores))

    def propensities(
        self,
        contexts: ArrayLike,
        available: ArrayLike | None = None,
        *,
        round: int | None = None,
    ) -> NDArray[np.float64]:
        """The probability of every arm if `select` were called now. Changes nothing.

        Args:
            contexts: as for `select`.
            available: as for `select`.
            round: of which round, if it is not the next one.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=1)
            >>> policy.propensities(np.ones((4, 1)), available=[0, 3]).tolist()
            [0.5, 0.0, 0.0, 0.5]
        """
        rows = checking.rows_of(contexts, self._shape)
        open_arms = (
            self._all_arms if available is None else checking.open_arms(available, self.n_arms)
        )
        rule = self._rule if self._is_compiled else self._scored_in_python(rows)
        t = self.round + 1 if round is None else _checks.whole("round", round)
        chances = np.empty(self.n_arms)
        bad = self._tell_all(
            rule, self._state, self._members, self._schedule, open_arms, t, rows, chances
        )
        if bad >= 0:
            raise checking.bad_contexts(bad, rows)
        return chances

    def update(self, decision: Decision | Sequence[Decision], reward: ArrayLike) -> None:
        """Learn the observed reward of a decision, or of many. Order and delay do not matter.

        Nothing is learned if any of the values is bad.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10)
            >>> made = [policy.select(np.ones((2, 1))) for _ in range(3)]
            >>> policy.update(made[2], 1.0)
            >>> policy.update(made[:2], [0.5, 2.0])
            >>> int(policy.counts.sum())
            3
        """
        if not isinstance(decision, Decision):
            decisions = list(decision) if isinstance(decision, Iterable) else [decision]
            wrong = [one for one in decisions if not isinstance(one, Decision)]
            if wrong:
                raise InputError(f"decision is {wrong[0]!r}; allowed is what `select` gave")
            unmasked("context of a decision", [one.context for one in decisions])
            self.absorb(
                arms=np.array([one.arm for one in decisions], dtype=np.int64),
                contexts=np.reshape([one.context for one in decisions], (-1, self.n_features)),
                rewards=reward,
            )
            return
        unmasked("context of the decision", decision.context)
        context = np.ascontiguousarray(decision.context, dtype=np.float64)
        n_arms, n_features = self._shape
        if context.shape != (n_features,) or not 0 <= decision.arm < n_arms:
            raise InputError(
                f"decision is {decision!r} with {context.size} features; it was not made by a "
                f"policy with {n_arms} arms and {n_features} features"
            )
        value, arm = checking.reward_of(reward), decision.arm
        groups = self._members.group_of if decision.groups is None else decision.groups
        with self._lock:
            good = self._teach(self._rule, self._state, arm, groups[arm], context, value)
        if not good:
            raise checking.bad_context(context)

    def absorb(self, arms: ArrayLike, contexts: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from rows: the arms that were chosen, their contexts and the observed rewards.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100)
            >>> policy.absorb(arms=[0, 1, 1], contexts=np.ones((3, 1)), rewards=[1.0, 2.0, 4.0])
            >>> policy.counts.tolist()
            [1, 2]
        """
        checked = checking.observations(arms, contexts, rewards, self.n_arms, self.n_features)
        if self.singular == "pseudo-inverse":
            checking.warn_of_unlike_features(checked[1])
        group_of = self._members.group_of
        with self._lock:
            for arm, row, value in zip(*checked, strict=True):
                self._teach(self._rule, self._state, int(arm), group_of[arm], row, float(value))

    def merge(self, other: Policy) -> None:
        """Learn everything that another policy of the same kind has learned, such as a replica.

        The other one stays as it is. Rounds are not added: those are this policy's decisions.

        Args:
            other: of the same class and settings; the seed may differ.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> here = eh.TopInterval(["F", "M"], n_features=1, horizon=100, seed=1)
            >>> there = here.clone(seed=2)
            >>> here.absorb([0], np.ones((1, 1)), [1.0])
            >>> there.absorb([0, 1], np.ones((2, 1)), [3.0, 5.0])
            >>> here.merge(there)
            >>> here.counts.tolist(), here.intervals(np.ones((2, 1)))[0].round(9).tolist()
            ([2, 1], [2.0, 5.0])
        """
        checking.same_kind(self, other)
        with self._lock:
            mine, its = self._state, other._state
            merge(mine.arms, its.arms, self.prior())
            merge(mine.groups, its.groups, self.prior())
            for table, more in zip(mine.own, its.own, strict=True):
                table += more
            if mine.settings.noise < 0.0:
                estimate_noise(mine.arms, mine.levels)

    def intervals(self, contexts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate and width of every arm at its context, before any correction."""
        rows, found = checking.rows_of(contexts, self._shape), np.empty((2, self.n_arms))
        bad = kernels.arm_intervals(self._regressions, self._members, self.round + 1, rows, found)
        if bad >= 0:
            raise checking.bad_contexts(bad, rows)
        return found[0], found[1]

    def group_intervals(
        self, contexts: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """psi_j . x_i and its width b_j, a row per group and a column per arm.

        For policies with `learns_groups`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
            >>> policy = eh.GroupFairTopInterval(groups, n_features=1, horizon=100)
            >>> policy.absorb([0, 1, 2, 3], np.ones((4, 1)), rewards=[1.0, 2.0, 7.0, 8.0])
            >>> policy.group_intervals(np.ones((4, 1)))[0].round(9).tolist()
            [[1.5, 1.5, 1.5, 1.5], [7.5, 7.5, 7.5, 7.5]]
        """
        if not self.learns_groups:
            raise InputError(
                f"{type(self).__name__} keeps no group regressions; set learns_groups = True"
            )
        rows = checking.rows_of(contexts, self._shape)
        found = np.empty((2, len(self.groups), self.n_arms))
        bad = kernels.group_intervals(self._regressions, self._members, self.round + 1, rows, found)
        if bad >= 0:
            raise checking.bad_contexts(bad, rows)
        return found[0], found[1]

    def bias(
        self,
        reference: object = None,
        level: float = 0.95,
        weighting: str = "auto",
        noise: float | None = None,
        feature_names: Sequence[object] | None = None,
        units: Mapping[str, float] | None = None,
        average: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> BiasReport:
        """How the feedback for each group is distorted, feature by feature, with intervals.

        It assumes that the true averages of the groups are equal. Any policy can tell: the sums
        of a group are those of its arms. docs/explanation/reading-bias.md says how to read it.

        Args:
            reference: the group to compare with, or "mean" for the mean of the groups. Without
                one it is the mean, and of two groups the one that is not sensitive (or has more
                observations, where none is called sensitive).
            level: of the intervals.
            weighting: "pulls", the fit to all data of a group as in the paper, "arms", the plain
                average of its arms' own coefficients, or "auto", by arms where the observations of
                every arm suffice.
            noise: the standard deviation of rewards if it is known; otherwise it is estimated from
                what each group's fit leaves over, whatever the policy was told.
            feature_names: x1, x2, ... unless given.
            units: the step of a feature to speak of, such as {"income": 1000}.
            average: the context to report totals at, one for all or a row per group. A policy
                knows the average of its contexts only if one of the features is always 1.
            scales: what each feature was divided by before the policy saw it, such as its standard
                deviation: the report is then in the units before that.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
            >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
            >>> print(policy.bias(reference="M").to_words().split(",")[0])
            At the average context the feedback for group F is 4.0 lower than that for group M
        """
        from evenhand.bias import bias_report, statistics_of

        return bias_report(
            statistics_of(self.groups, self._state.arms, self.prior()),
            reference=self.groups.reference if reference is None else reference,
            level=level,
            weighting=weighting,
            noise=noise,
            feature_names=feature_names,
            units=units,
            average=average,
            scales=scales,
        )

    # Facts --------------------------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.groups.n_arms

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rewards each arm has learned from."""
        return counts(self._state.arms)

    @classmethod
    def is_compiled(cls) -> bool:
        """Whether the maths is a compiled rule, and not plain Python."""
        return cls.rule is not Policy.rule

    def settings(self) -> dict[str, Any]:
        """What the policy was made with, by the names of the constructor."""
        named: dict[str, Any] = {}
        for name in _settings_of(type(self)):
            if not hasattr(self, name):
                raise InputError(
                    f"{type(self).__name__} has no attribute {name!r}; keep every parameter of "
                    "the constructor under its own name"
                )
            named[name] = getattr(self, name)
        return named

    def clone(self, **changes: Any) -> Self:
        """A policy with the same settings, or changed ones, that has learned nothing yet.

        Example:
            >>> import evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=3)
            >>> policy.clone(delta=0.2).delta
            0.2
        """
        return type(self)(**{**self.settings(), **changes})

    def save(self, path: str | Path) -> None:
        """Write settings and everything learned to a JSON file that `evenhand.load` reads."""
        from evenhand.policies.saving import save

        save(self, Path(path))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_arms={self.n_arms}, groups={', '.join(self.groups.names)}, "
            f"n_features={self.n_features}, rounds={self.round})"
        )

    # Inside -------------------------------------------------------------------------------------

    def _group_sizes(self) -> NDArray[np.int64]:
        """|P_j| as it stands in the level of the width of group j."""
        return self.groups.sizes

    @cached_property
    def _rule(self) -> NamedTuple:
        rule = self.rule()
        if self._is_compiled:
            kernels.check_rule(rule, type(self).__name__)
        return rule

    @cached_property
    def _key(self) -> int:
        return int(mix(np.uint64(self.seed), 0)) >> 1  # a whole number that fits either sign

    def _restart(self, seed: int) -> None:
        """Begin at round 1 with another seed; the memory has been wiped."""
        vars(self).update(seed=seed, round=0)
        vars(self).pop("_key", None)

    @cached_property
    def _is_compiled(self) -> bool:
        return self.is_compiled()

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A compiled function that takes rules, for the rule of this policy."""
        return for_sources(function, kernels.sources_for(self._rule, self._state.own))

    # The compiled functions of a live policy, for its own types: see `entry_point`.

    @cached_property
    def _decide(self) -> Callable[..., tuple[int, float, bool]]:
        rows, table = np.empty((1, 1)), np.empty((1, 1))
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(kernels.decide),
                self._any_rule,
                self._state,
                self._members,
                self._schedule,
                self._all_arms,
                1,
                1,
                rows,
                np.empty(1),
                table,
            )

    @cached_property
    def _teach(self) -> Callable[..., bool]:
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(kernels.teach),
                self._rule,
                self._state,
                0,
                np.int64(0),
                np.empty(1),
                0.0,
            )

    @cached_property
    def _tell_all(self) -> Callable[..., int]:
        with telling(type(self).__name__):
            return entry_point(
                self._compiled(kernels.all_propensities),
                self._any_rule,
                self._state,
                self._members,
                self._schedule,
                self._all_arms,
                1,
                np.empty((1, 1)),
                np.empty(1),
            )

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and copying: all but the lock and the compiled functions."""
        made_again = ("_decide", "_teach", "_tell_all", "_lock", "_making", "_regressions")
        return {k: v for k, v in self.__dict__.items() if k not in made_again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_locks()

    def _make_locks(self) -> None:
        self._lock = threading.Lock()  # held by whoever takes a round, or learns
        self._making = threading.RLock()  # held by whoever makes the state, on its first use

    @cached_property
    def _members(self) -> Members:
        return members_of(self.groups.of, len(self.groups))

    @cached_property
    def _shape(self) -> tuple[int, int]:
        return (self.n_arms, self.n_features)

    @cached_property
    def _all_arms(self) -> NDArray[np.bool_]:
        return np.ones(self.n_arms, dtype=np.bool_)

    @cached_property
    def _state(self) -> State:
        with self._making:
            if "_state" not in self.__dict__:  # another thread may have been here first
                self.__dict__["_state"] = self._new_state()
        made: State = self.__dict__["_state"]
        return made

    @cached_property
    def _regressions(self) -> State:
        """Without what is the policy's own: types of the user's stay out of our caches."""
        return self._state._replace(own=NOTHING)

    def _new_state(self) -> State:
        own = self.learns()
        checking.own_state(own, type(self).__name__)
        return make_state(
            self._group_sizes(),
            self.n_arms,
            self.n_features,
            self.learns_groups,
            self.singular,
            self.ridge or 0.0,
            Settings(
                n_arms=self.n_arms,
                delta=self.delta,
                horizon=self.horizon or 0,
                noise=-1.0 if isinstance(self.noise, str) else self.noise,
                by_round=self.horizon is None or self.conventions.level == "round",
                by_variance=self.conventions.width == "variance",
                first_of_ties=self.conventions.ties == "first",
            ),
            own,
            self.prior(),
        )

    @property
    def _any_rule(self) -> NamedTuple:
        """A rule of the kind that decisions are made by."""
        return self._rule if self._is_compiled else _PlainRule(np.zeros((N_SCORES, 1)))

    def _scored_in_python(self, rows: NDArray[np.float64]) -> NamedTuple:
        """The scores of a round by `score`, as a rule that has them already."""
        table = np.atleast_2d(np.asarray(self.score(rows), dtype=np.float64))
        if table.shape not in ((1, self.n_arms), (N_SCORES, self.n_arms)) or np.isnan(table).any():
            raise InputError(
                f"{type(self).__name__}.score gave shape {table.shape}, or a NaN; allowed are "
                f"({self.n_arms},) or ({N_SCORES}, {self.n_arms}) numbers"
            )
        if table.shape[0] == 1:
            estimate, width = self.intervals(rows)
            zero = np.zeros(self.n_arms)
            table = np.vstack([estimate, width, zero, zero, table])
        return _PlainRule(np.ascontiguousarray(table))


def _settings_of(kind: type[Policy]) -> tuple[str, ...]:
    """The parameters of the constructors, those of `Policy` first."""
    names: dict[str, None] = {}
    makers = [vars(one).get("__init__") for one in reversed(kind.__mro__[:-1])]
    for maker in filter(None, makers):
        for name, parameter in list(inspect.signature(maker).parameters.items())[1:]:
            if parameter.kind != parameter.VAR_KEYWORD:
                names[name] = None
    return tuple(names)


class _PlainRule(NamedTuple):
    """The rule of a decision in plain Python: its scores are there already."""

    table: NDArray[np.float64]


@kernels.kernel(kernels.score, _PlainRule)
def _score_plain(rule, memory, t):  # type: ignore[no-untyped-def]
    for row in range(rule.table.shape[0]):
        for i in range(rule.table.shape[1]):
            memory.work[row, i] = rule.table[row, i]
