"""What the author of a policy writes: its rule, or its score in plain Python, and how it learns."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.leastsquares import Prior
from evenhand.policies._settings import Settled
from evenhand.policies._state import NOTHING

# What a policy in plain Python writes as methods, and what only a rule has, as kernels.
IN_PYTHON = ("score", "learn", "learn_true")
IN_KERNELS = ("draw", "chance", "explore", "explore_chance", "settle")


class Definition(Settled):
    """The part of `Policy` that its classes define.

    What would be ignored is refused when the class is made: a method that nothing calls looks like
    one that works.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in IN_PYTHON if cls.is_compiled() else ():
            if getattr(cls, name) is not getattr(Definition, name):
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
        is_plain = cls.score is not Definition.score  # and no base class for others
        if is_plain and cls.learns_truth != (cls.learn_true is not Definition.learn_true):
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
        return cls.rule is not Definition.rule
