"""The base class of all policies: constructor, select, update. The maths is in the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._checks import unmasked
from evenhand._compile.generics import telling
from evenhand.conventions import PAPER, Conventions
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies import _checks as checking
from evenhand.policies._checks import joined, refuse_membership
from evenhand.policies._learned import Learned
from evenhand.policies._policy_state import PlainRule
from evenhand.policies._settings import (
    POLICIES,
    TWINS,
    known_noise,
    settings_of,
    singular_treatment,
    small_enough,
)
from evenhand.policies._state import N_SCORES
from evenhand.policies.decision import Decision, Scores
from evenhand.policies.exploration import Exploration, schedule

UNASKED = np.empty(0)  # for what `decide` need not fill in


class Policy(Learned):
    """A contextual bandit policy over arms that belong to groups.

    Subclass it and write `rule` (compiled, see `evenhand.policies.compiled`) or `score` (plain
    Python): docs/how-to/write-a-policy.md shows both.

    Args:
        groups: the group of every arm, as `Groups` or as a list of labels.
        n_features: the length of a context.
        horizon: the number of rounds T that the widths are made for. Without one, the level
            depends on the round: delta / (2 n t).
        delta: the probability that any interval fails.
        noise: the standard deviation sigma of the rewards around their mean, or "estimate" to
            learn it from the residuals (the widths then use Student's quantiles).
        singular: what to do while the data of an arm do not span all directions: "infinite" width
            along directions never seen, "pseudo-inverse", or "ridge". The default is that of the
            conventions.
        ridge: the penalty, if `singular` is "ridge" (default 1.0).
        exploration: the probability of choosing at random: "paper" for t^(-1/3), "none", a
            constant, a list or a function of the round.
        conventions: PAPER or AUTHORS_CODE, see `evenhand.conventions`.
        seed: the seed of the policy's own random numbers. By default it is drawn, and saved with
            the policy.

    Many threads may call `select`, and methods that only read, while one learns: every call has its
    own working memory, and no decision sees a partial update. Each round is used once.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, exploration="none", seed=1)
        >>> policy.absorb([0, 1], np.ones((2, 1)), rewards=[1.0, 2.0])
        >>> policy.select(np.ones((2, 1))).arm, policy.n_arms, policy.counts.tolist()
        (1, 2, [1, 1])
        >>> policy.settings()["delta"], policy.is_compiled()
        (0.1, True)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        taken = POLICIES.get(cls.__name__)
        if (
            taken
            and taken.__module__.startswith("evenhand.")
            and taken.__module__ != cls.__module__
        ):
            raise InputError(f"{cls.__name__} is the name of a policy in evenhand; use another")
        if not cls.__name__.startswith("_"):
            POLICIES[cls.__name__] = cls
            modules = [kind.__module__ for kind in (taken, cls) if kind is not None]
            if len({*modules, "__main__", "__mp_main__"}) > 3:  # a script may import itself
                TWINS[cls.__name__] = list(dict.fromkeys([*TWINS.get(cls.__name__, []), *modules]))
        # A rule is made once; a score in plain Python reads its settings in every round.
        cls._fixed = frozenset(settings_of(cls if cls.is_compiled() else Policy))

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
        self.noise = known_noise(noise)
        if not isinstance(conventions, Conventions):
            raise InputError(
                f"conventions is {conventions!r}; allowed is PAPER or AUTHORS_CODE",
                value=conventions,
            )
        self.conventions = conventions
        self.singular, self.ridge = singular_treatment(singular, ridge, conventions)
        n_groups = len(self.groups) if self.learns_groups else 0
        if self.groups.changes and not self.takes_membership:
            refuse_membership(type(self).__name__)
        small_enough(self.n_arms, n_groups, self._shape[1], self.singular)
        if isinstance(exploration, Iterable) and not isinstance(exploration, str):
            exploration = tuple(exploration)  # a generator could be read only once
        self.exploration = exploration
        self._schedule = schedule(exploration, self.horizon)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.seed = _checks.whole("seed", seed, least=0, most=2**64 - 1)
        self._make_lock()
        self.round = 0
        """How many decisions have been made."""

    # Deciding -----------------------------------------------------------------------------------

    def select(
        self, contexts: ArrayLike, available: ArrayLike | None = None, *, groups: Any = None
    ) -> Decision:
        """Choose an arm for this round. Only `update` learns.

        Args:
            contexts: (n_arms, n_features), the context of every arm.
            available: a bool per arm, or the numbers of the arms that can be chosen this round.
            groups: for `Groups.per_round`, the groups of the candidates of this round: per
                candidate a level, None if they did not say, or probabilities by level; with several
                attributes a mapping from their names to such lists, or a DataFrame.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=2, horizon=100, seed=1)
            >>> decision = policy.select(np.eye(2)[[0, 1, 0, 1]])
            >>> policy.update(decision, reward=1.5)
            >>> 0 <= decision.arm < 4, decision.propensity
            (True, 0.25)
        """
        rows = joined(self, contexts, groups)
        open_arms = (
            self._all_arms if available is None else checking.open_arms(available, self.n_arms)
        )
        context, scores = np.empty(self._shape[1]), np.empty((N_SCORES, self._all_arms.size))
        with self._lock:  # a round belongs to one decision, and so do its scores
            t = self.round + 1
            rule = self._rule if self._is_compiled else self._scored_in_python(rows, t)
            try:
                arm, propensity, explored = self._decide(
                    rule,
                    self._compiled_state,
                    self._members,
                    self._schedule,
                    open_arms,
                    t,
                    self._key,
                    rows,
                    context,
                    scores,
                    UNASKED,
                )
            except ValueError:  # from a kernel: compiled code can raise nothing else
                with telling(type(self).__name__):
                    raise
            if arm < 0:
                raise checking.bad_contexts(-1 - arm, rows)
            self.__dict__["round"] = t  # past __setattr__, which would be a tenth of a decision
        if not self.groups.changes:
            return Decision(arm, propensity, explored, t, context, Scores(scores))
        d = self.n_features
        return Decision(
            arm, propensity, explored, t, context[:d], Scores(scores), rows[:, d:].copy()
        )

    def propensities(
        self,
        contexts: ArrayLike,
        available: ArrayLike | None = None,
        *,
        round: int | None = None,
        groups: Any = None,
    ) -> NDArray[np.float64]:
        """The probability of every arm if `select` were called now; nothing is changed.

        Args:
            contexts: as for `select`.
            available: as for `select`.
            groups: as for `select`.
            round: the number of the round, by default the next one.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=1)
            >>> policy.propensities(np.ones((4, 1)), available=[0, 3]).tolist()
            [0.5, 0.0, 0.0, 0.5]
        """
        rows = joined(self, contexts, groups)
        open_arms = (
            self._all_arms if available is None else checking.open_arms(available, self.n_arms)
        )
        given = None if round is None else _checks.whole("round", round)
        chances = np.empty(self.n_arms)
        with self._lock:
            t = self.round + 1 if given is None else given
            rule = self._rule if self._is_compiled else self._scored_in_python(rows, t)
            with telling(type(self).__name__):
                arm, _, _ = self._decide(
                    rule,
                    self._compiled_state,
                    self._members,
                    self._schedule,
                    open_arms,
                    t,
                    self._key,
                    rows,
                    UNASKED,
                    np.empty((0, 0)),
                    chances,
                )
        if arm < 0:
            raise checking.bad_contexts(-1 - arm, rows)
        return chances

    def update(
        self,
        decision: Decision | Sequence[Decision],
        reward: ArrayLike | None = None,
        *,
        true_reward: ArrayLike | None = None,
    ) -> None:
        """Learn the observed reward of a decision, or of many. Order and delay do not matter.

        Nothing is learned if any of the values is bad.

        Args:
            decision: what `select` returned, or a list of decisions.
            reward: the observed reward, or one for each.
            true_reward: what the choice was really worth, once that is known: with the observed
                reward, any time after it, or without one. For policies that learn from it
                (`learns_truth`), such as `PooledGroupFair`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10)
            >>> made = [policy.select(np.ones((2, 1))) for _ in range(3)]
            >>> policy.update(made[2], 1.0)
            >>> policy.update(made[:2], [0.5, 2.0])
            >>> int(policy.counts.sum())
            3
        """
        if true_reward is not None:
            self._update_true(decision, reward, true_reward)
            return
        if reward is None:
            raise InputError("reward is missing; give the observed reward, or a true_reward")
        if not isinstance(decision, Decision):
            decisions = list(decision) if isinstance(decision, Iterable) else [decision]
            wrong = [item for item in decisions if not isinstance(item, Decision)]
            if wrong:
                raise InputError(
                    f"decision is {wrong[0]!r}; allowed is the result of select", value=wrong[0]
                )
            unmasked("context of a decision", [item.row for item in decisions])
            rounds = {"rounds": [item.round for item in decisions]} if self.learns_by_round else {}
            self.absorb(
                np.array([item.arm for item in decisions], dtype=np.int64),
                np.reshape([item.row for item in decisions], (-1, self._shape[1])),
                reward,
                **rounds,
            )
            for item, value in zip(decisions, np.ravel(np.asarray(reward)), strict=True):
                item.reward = float(value)
            return
        unmasked("context of the decision", decision.context)
        context = np.ascontiguousarray(decision.row, dtype=np.float64)
        n_arms, n_features = self._shape
        if context.shape != (n_features,) or not 0 <= decision.arm < n_arms:
            raise InputError(
                f"decision is {decision!r} with {context.size} features; it was not made by a "
                f"policy with {n_arms} arms and {n_features} features",
                value=decision,
            )
        value, arm = checking.reward_of(reward), decision.arm
        groups = self._members.group_of
        with self._lock if self._is_compiled else self._undoing(arm):
            try:
                good = self._teach(
                    self._rule_of_learning,
                    self._compiled_state,
                    arm,
                    groups[arm],
                    context,
                    value,
                    int(decision.round),
                    True,
                )
            except ValueError:
                with telling(type(self).__name__):
                    raise
            self._changes[0] += good
            if good and not self._is_compiled:
                self.learn(int(arm), context, value)
        if not good:
            raise checking.bad_context(context)
        decision.reward = value

    def _update_true(
        self,
        decision: Decision | Sequence[Decision],
        reward: ArrayLike | None,
        true_reward: ArrayLike,
    ) -> None:
        """Learn true rewards, and observed ones before them where they are given."""
        if not self.learns_truth:
            raise InputError(
                f"true_reward is given, and {type(self).__name__} does not learn from true "
                "rewards; leave it out, or use PooledGroupFair"
            )
        decisions = [decision] if isinstance(decision, Decision) else list(decision)
        arms, contexts, values = checking.true_rewards(decisions, true_reward, self._shape)
        if not self._is_compiled:
            self._update_true_in_python(decision, reward, decisions, (arms, contexts, values))
            return
        if reward is not None:
            self.update(decision, reward)
        groups = self._members.group_of
        with self._lock, telling(type(self).__name__):
            self._changes[0] += 1
            for place, item in enumerate(decisions):
                self._teach_true(
                    self._rule,
                    self._compiled_state,
                    int(arms[place]),
                    groups[arms[place]],
                    contexts[place],
                    float(values[place]),
                    np.nan if item.reward is None else item.reward,
                    int(item.round),
                    place == len(decisions) - 1,
                )

    def _update_true_in_python(
        self,
        given: Decision | Sequence[Decision],
        reward: ArrayLike | None,
        decisions: list[Decision],
        checked: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        """The same by the method `learn_true`; if that fails, no reward was learned."""
        before = [item.reward for item in decisions]
        try:
            with self._undoing():
                if reward is not None:
                    self.update(given, reward)
                self._changes[0] += 1
                for item, arm, context, value in zip(decisions, *checked, strict=True):
                    observed = np.nan if item.reward is None else item.reward
                    self.learn_true(int(arm), context, float(value), observed)
        except BaseException:
            for item, known in zip(decisions, before, strict=True):
                item.reward = known
            raise

    def absorb(
        self,
        arms: ArrayLike,
        contexts: ArrayLike,
        rewards: ArrayLike,
        rounds: Sequence[int] | None = None,
        *,
        groups: Any = None,
    ) -> None:
        """Learn from rows: the arms that were chosen, their contexts and the observed rewards.

        Args:
            arms: the arm of every row.
            contexts: its context, a row each.
            rewards: its observed reward.
            rounds: the rounds of the decisions, for policies that learn by them
                (`learns_by_round`); rewards without a round count as learned before all rounds.
            groups: for `Groups.per_round`, the groups of the rows, as for `select`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100)
            >>> policy.absorb(arms=[0, 1, 1], contexts=np.ones((3, 1)), rewards=[1.0, 2.0, 4.0])
            >>> policy.counts.tolist()
            [1, 2]
        """
        rows = contexts
        if self.groups.changes or groups is not None:
            rows = joined(self, contexts, groups, of_arms=False)
        checked = checking.observations(arms, rows, rewards, *self._shape)
        if self.singular == "pseudo-inverse":
            checking.warn_of_unlike_features(checked[1])
        group_of, last = self._members.group_of, len(checked[0]) - 1
        numbers = checking.rounds_of(rounds, len(checked[0]))
        with self._lock if self._is_compiled else self._undoing():
            self._changes[0] += 1
            for place, (arm, row, value) in enumerate(zip(*checked, strict=True)):
                try:
                    self._teach(
                        self._rule_of_learning,
                        self._compiled_state,
                        int(arm),
                        group_of[arm],
                        row,
                        float(value),
                        numbers[place],
                        place == last,
                    )
                except ValueError:
                    with telling(type(self).__name__):
                        raise
                if not self._is_compiled:
                    self.learn(int(arm), row, float(value))

    def _scored_in_python(self, rows: NDArray[np.float64], t: int) -> NamedTuple:
        """The scores of round t from `score`, as a rule that holds them."""
        policy = self
        if t != self.round + 1:  # `score` and the widths go by `round`, and other threads read it
            policy = object.__new__(type(self))
            policy.__dict__.update(self.__dict__, round=t - 1)
        return PlainRule(policy._table_of_scores(rows))

    def _table_of_scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """What `score` returns, with rows for the scores that it leaves out."""
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
        return np.ascontiguousarray(table)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_arms={self.n_arms}, groups={', '.join(self.groups.names)}, "
            f"n_features={self.n_features}, rounds={self.round})"
        )
