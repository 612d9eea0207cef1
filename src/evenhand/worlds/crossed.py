"""A synthetic world whose groups are intersections of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._prose import number_of
from evenhand.errors import InputError, setting
from evenhand.groups import Groups
from evenhand.worlds.base import World
from evenhand.worlds.synthetic import LinearInstance


class CrossedWorld(World):
    """The paper's synthetic world with several attributes: each lowers the feedback on its own.

    An arm has a level of every attribute. The last level of an attribute has no bias; each of the
    others has a bias vector, uniform over a range of one around -`bias_mean`. Those of an arm's
    levels are added. With `interaction`, every intersection also has a vector of its own. The first
    intersection with arms counts as the sensitive group.

    Args:
        attributes: the levels of every attribute by its name.
        sizes: the number of arms of every intersection, the last attribute changing fastest; 0 for
            an intersection without arms.
        bias_mean: by how much an attribute lowers the feedback on every feature: a number for all,
            or one per attribute.
        interaction: the standard deviation of what an intersection adds to a feature; it adds
            nothing where all levels are the last ones.
        advantage: how much higher the true coefficients are at the first level of an attribute: a
            number for all, or one per attribute. 0 if all averages are equal.
        arms: "recurring" if every arm has coefficients of its own, "once" if arms are seats for
            candidates who come once: then all have the same coefficients.
        n_features: the length d of a context.
        coefficient_range: over which range a true coefficient is uniform.
        lowest_coefficient: where that range begins.
        noise: the standard deviation of observed rewards around their mean.

    Example:
        >>> import evenhand as eh
        >>> attributes = {"sex": ["F", "M"], "age": ["old", "young"]}
        >>> world = eh.CrossedWorld(attributes, sizes=[3, 2, 2, 0])
        >>> world.groups.names, world.groups.sizes.tolist()
        (('F & old', 'F & young', 'M & old'), [3, 2, 2])
    """

    def __init__(
        self,
        attributes: Mapping[str, Sequence[object]],
        sizes: Sequence[int],
        bias_mean: float | Sequence[float] = 10.0,
        interaction: float = 0.0,
        arms: str = "recurring",
        n_features: int = 2,
        coefficient_range: float = 10.0,
        lowest_coefficient: float = 30.0,
        noise: float = 1.0,
        advantage: float | Sequence[float] = 0.0,
    ) -> None:
        levels = {str(name): [str(level) for level in given] for name, given in attributes.items()}
        cells = list(product(*levels.values()))
        if len(sizes) != len(cells):
            raise InputError(
                f"{setting('sizes')} has {number_of(len(sizes), 'number')}; allowed is one for "
                f"each of {len(cells)} intersections"
            )
        self.sizes = tuple(_checks.whole("sizes", size, least=0) for size in sizes)
        seats = [cell for cell, size in zip(cells, self.sizes, strict=True) for _ in range(size)]
        if len(seats) < 2:
            raise InputError(f"{setting('sizes')} is {list(sizes)}; allowed are two arms or more")
        self.attributes = levels
        self.groups = Groups.of_attributes(
            {name: [arm[a] for arm in seats] for a, name in enumerate(levels)},
            sensitive=" & ".join(seats[0]),
        )
        self.arms = _checks.one_of("arms", arms, ("recurring", "once"))
        self.n_features = _checks.whole("n_features", n_features)
        self.bias_mean = _per_attribute("bias_mean", bias_mean, len(levels))
        self.advantage = _per_attribute("advantage", advantage, len(levels))
        self.interaction = _checks.number("interaction", interaction, 0.0, np.inf)
        self.coefficient_range = _checks.number("coefficient_range", coefficient_range, 0.0, np.inf)
        self.lowest_coefficient = _checks.number(
            "lowest_coefficient", lowest_coefficient, -np.inf, np.inf
        )
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        self._arms = seats

    def begin(self, generator: np.random.Generator) -> LinearInstance:
        """Draw the bias, then the coefficients."""
        bias = self._draw_bias(generator)
        drawn = generator.random((self.n_arms, self.n_features))
        if self.arms == "once":
            # The same numbers are drawn as for arms that recur, so the rest of the stream is the
            # same.
            drawn[:] = drawn[0]
        coefficients = drawn * self.coefficient_range + self.lowest_coefficient
        for a, levels in enumerate(self.attributes.values()):
            coefficients[[arm[a] == levels[0] for arm in self._arms]] += self.advantage[a]
        return LinearInstance(coefficients, bias, self.noise)

    def _draw_bias(self, generator: np.random.Generator) -> NDArray[np.float64]:
        bias = np.zeros((self.n_arms, self.n_features))
        for a, (levels, mean) in enumerate(
            zip(self.attributes.values(), self.bias_mean, strict=True)
        ):
            for level in levels[:-1]:
                drawn = mean - 0.5 + generator.random(self.n_features)
                bias[[arm[a] == level for arm in self._arms]] -= drawn
        last: Any = tuple(levels[-1] for levels in self.attributes.values())
        if self.interaction > 0.0:
            for cell in product(*self.attributes.values()):
                # Drawn also where it is not used: the other intersections' effects do not depend on
                # it.
                effect = self.interaction * generator.standard_normal(self.n_features)
                if cell != last:
                    bias[[arm == cell for arm in self._arms]] += effect
        return bias


def _per_attribute(name: str, given: float | Sequence[float], number: int) -> tuple[float, ...]:
    """A number for every attribute."""
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.size not in (1, number) or not np.isfinite(values).all():
        raise InputError(
            f"{setting(name)} is {_checks.shown(given)}; allowed is a number, or one for each of "
            f"{number} attributes",
            value=given,
        )
    return tuple(np.broadcast_to(values, number).tolist())
