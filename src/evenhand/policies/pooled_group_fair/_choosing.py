"""The arm of a round: scores, one random number shared by all arms, and the start.

The score of an arm is (theta_i^ - m_g^ + m_ref) . x + z sqrt(x' S_i x): its estimate, corrected for
the bias of its group, and a bonus for what is not known about the arm itself. z = |N(0, 1)| is
drawn once a round for all arms, so scores are straight lines in z, and the probability of an arm is
that of the z at which its line is the highest.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import compiled, inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand._random import normal, uniform
from evenhand.leastsquares._simd import (
    LANES,
    added,
    at_least,
    below,
    broadcast,
    few_numbers,
    four,
    place,
    plus_product,
    put,
    root,
    times,
)
from evenhand.leastsquares._triangle import HUGE, spread
from evenhand.policies._kernels import FREE, PICKS, chance, draw, kernel, score
from evenhand.policies._state import (
    CORRECTION,
    CORRECTION_WIDTH,
    ESTIMATE,
    TINY,
    UPPER,
    WIDTH,
)
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    NUMBER,
    PER_UNIT,
    REWARD_UNIT,
    SEEN,
    PooledRule,
    of_all,
)
from evenhand.policies.pooled_group_fair._probe import BONUS, PROBE, UNKNOWN, VALUE, probed

PRICE = 4.0
PROBES, _Z = FREE, FREE  # places in the random stream of a round; normal z takes 2 z and 2 z + 1


@kernel(score, PooledRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    work = memory.work
    # Not in the first n d rounds: a probe is about averages, and the arms themselves are hardly
    # known yet.
    late = t > memory.settings.n_arms * rule.n_features
    # t^(-1/2): the number of probes grows with sqrt(T), and so does what they may cost.
    work[PROBE, 0] = 1.0 / math.sqrt(t) if rule.probes and late else 0.0
    # Worked out when first asked for: a simulated round asks only where it probes.
    work[PROBE, 1] = UNKNOWN
    if rule.n_features == 2:  # a compile-time constant: its loops are unrolled
        _fill_in(memory.own, memory.contexts, few_numbers(), work, 2)
    else:
        _fill_in(memory.own, memory.contexts, place(memory.room, 0), work, rule.n_features)
    if rule.proportional:
        _add_prices(memory.own, memory.members, work)


@subroutine
def _add_prices(own, members, work):  # type: ignore[no-untyped-def]
    """Add a price per group that keeps shares proportional, as a feedback controller does.

    A group that is D choices behind its share of N has the price PRICE s D / sqrt(N), where s is
    the mean distance of the arms' corrected estimates in this round from their mean. If it takes a
    price of one s to keep shares proportional, a group ends up sqrt(N) / PRICE choices behind: 0.8
    points of N = 1,000. A larger price would chase the chance of single rounds.
    """
    stays_a_function()
    number, n, mean, scale = own.common[NUMBER], members.group_of.size, 0.0, 0.0
    if number == 0.0:
        return
    for i in range(n):
        mean += work[VALUE, i] / n
    for i in range(n):
        scale += abs(work[VALUE, i] - mean) / n
    for i in range(n):
        g = members.group_of[i]
        # Choices whose reward came, not choices made: a decision may not know those that still
        # wait.
        behind = number * members.sizes[g] / n - own.groups[g, SEEN]
        price = PRICE * scale * behind / math.sqrt(number)
        work[UPPER, i] += price
        work[VALUE, i] += price


@inlined
def _fill_in(own, contexts, x, work, d):  # type: ignore[no-untyped-def]
    """Estimate, correction and bonus of every arm, four arms at a time.

    With s = S x, the estimate is u . x + s . (p m), and the square of the bonus is s . x. Each
    number of S below its diagonal is read once and used twice.
    """
    out, points = place(work, 0), place(contexts, 0)
    columns, u = work.shape[1], d * (d + 1) // 2
    limit, zero, unit = broadcast(HUGE), broadcast(0.0), broadcast(own.common[REWARD_UNIT])
    per_unit = of_all(own, PER_UNIT, d)
    for block in range(own.arms.shape[0]):
        i = block * LANES
        table = place(own.arms, i * own.arms.shape[1])
        starts = (i * d, (i + 1) * d, (i + 2) * d, (i + 3) * d)
        first, second, third, fourth = spread(points, starts, x, d)
        put(x, 0, first)
        put(x, LANES, second)
        put(x, 2 * LANES, third)
        put(x, 3 * LANES, fourth)
        for k in range(d):
            put(x, LANES * k, times(four(x, LANES * k), broadcast(per_unit[k])))
        estimate, correction, square, p = zero, zero, zero, 0
        for k in range(d):
            # Element (k, j) of S, j < k, is used twice: x_k S_kj x_j appears twice in x' S x, and
            # S_kj (p m)_j and S_kj x_j (p m)_k both belong to the estimate. `whole` has the
            # diagonal once.
            of_x, of_mean = zero, zero
            for j in range(k):
                number = four(table, LANES * (p + j))
                of_x = plus_product(of_x, number, four(x, LANES * j))
                of_mean = plus_product(of_mean, number, four(table, LANES * (u + d + j)))
            p += k + 1
            here = four(x, LANES * k)
            whole = plus_product(of_x, four(table, LANES * (p - 1)), here)
            # x_k (2 sum_(j<k) S_kj x_j + S_kk x_k).
            square = plus_product(square, here, added(of_x, whole))
            estimate = plus_product(estimate, here, added(of_mean, four(table, LANES * (u + k))))
            estimate = plus_product(estimate, whole, four(table, LANES * (u + d + k)))
            correction = plus_product(correction, here, four(table, LANES * (u + 2 * d + k)))
        # An overflow is replaced here, before it can meet an infinity of the other sign and become
        # NaN.
        estimate = below(times(estimate, unit), limit, zero)
        correction = below(times(correction, unit), limit, zero)
        bonus = times(root(at_least(below(square, limit, broadcast(np.inf)), zero)), unit)
        if own.common[NUMBER] == 0.0:
            bonus = broadcast(np.inf)
        put(out, ESTIMATE * columns + i, estimate)
        put(out, WIDTH * columns + i, bonus)
        put(out, CORRECTION * columns + i, correction)
        # The bonus has the arm's own S_i only. The variance of group means is shared by all arms of
        # a group; as a bonus it would favour groups about which little is known.
        put(out, CORRECTION_WIDTH * columns + i, zero)
        put(out, UPPER * columns + i, added(added(estimate, bonus), correction))
        put(out, BONUS * columns + i, bonus)
        put(out, VALUE * columns + i, added(estimate, correction))


@kernel(draw, PooledRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """The highest score at the z of this round, or the probe."""
    work, own, members = memory.work, memory.own, memory.members
    # The probe has a number of its own in the random stream, so z and ties are the same with and
    # without it.
    if work[PROBE, 0] > 0.0 and uniform(key, PROBES) < work[PROBE, 0]:
        arm = probed(rule, own, members, memory.contexts, memory.room, work, available)
        if arm >= 0:
            return arm
    z, u = half_normal_draw(key), uniform(key, PICKS)
    # `start` allocates a mask, so it is called only while a group has no reward.
    if own.common[EMPTY] > 0.0:
        return highest(work, start(own, members.group_of, available), z, u)
    return highest(work, available, z, u)


@compiled
def half_normal_draw(key):  # type: ignore[no-untyped-def]
    """z = |N(0, 1)| of a round."""
    # Above 0, because 0 times an infinite bonus is NaN.
    return max(abs(normal(key, _Z)), TINY)


@subroutine
def highest(work, allowed, z, u):  # type: ignore[no-untyped-def]
    """The allowed arm with the highest score at z; ties by the uniform number u."""
    top, ties, arm = -np.inf, 0, -1
    for i in range(allowed.size):
        if allowed[i]:
            value = work[VALUE, i] + z * work[BONUS, i]
            if arm < 0 or value > top:
                top, ties, arm = value, 1, i
            elif value == top:
                ties += 1
    if ties > 1:
        position = min(int(u * ties), ties - 1)
        for i in range(arm, allowed.size):
            if allowed[i] and work[VALUE, i] + z * work[BONUS, i] == top:
                if position == 0:
                    return i
                position -= 1
    return arm


@subroutine
def start(own, group_of, available):  # type: ignore[no-untyped-def]
    """The arms that may be chosen: while a group has no reward yet, those of such groups."""
    stays_a_function()
    unseen, allowed = False, available.copy()
    for i in range(available.size):
        unseen |= available[i] and own.groups[group_of[i], SEEN] == 0.0
    if unseen:
        for i in range(available.size):
            allowed[i] = available[i] and own.groups[group_of[i], SEEN] == 0.0
    return allowed


@kernel(chance, PooledRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    work, own, members = memory.work, memory.own, memory.members
    allowed = start(own, members.group_of, available)
    total, probability = envelope(work, allowed, arm), work[PROBE, 0]
    if probability > 0.0:
        arm_probed = probed(rule, own, members, memory.contexts, memory.room, work, available)
        if arm_probed >= 0:
            # A mixture: with `probability` the probe decides, otherwise the lines do. Where nothing
            # is in doubt, `_draw` falls through to the lines, and the mixture has one part.
            total *= 1.0 - probability
            if arm_probed == arm:
                total += probability
    return total


@subroutine
def envelope(work, allowed, arm):  # type: ignore[no-untyped-def]
    """P(the line of `arm` is the highest at z = |N(0, 1)|); identical lines share it.

    The line of an arm is v + s z. One with a smaller slope s_i is below it for z above
    (v_i - v) / (s - s_i), and one with a larger slope for z below that. So the line is the highest
    on an interval of z.
    """
    stays_a_function()
    if not allowed[arm]:
        return 0.0
    value, slope = work[VALUE, arm], work[BONUS, arm]
    low, high, ties = 0.0, np.inf, 0
    for i in range(allowed.size):
        if not allowed[i]:
            continue
        other_value, other_slope = work[VALUE, i], work[BONUS, i]
        if other_slope == slope:  # parallel lines; without any data all are infinitely steep
            if other_value > value and slope < np.inf:
                return 0.0
            ties += other_value == value or slope == np.inf
        elif slope == np.inf:
            continue
        elif other_slope == np.inf:
            return 0.0
        elif other_slope < slope:
            low = max(low, (other_value - value) / (slope - other_slope))
        else:
            high = min(high, (value - other_value) / (other_slope - slope))
    # An empty interval has probability 0. At its ends lines cross, which has probability 0 too.
    return half_normal(low, high) / ties if high > low else 0.0


@subroutine
def half_normal(low, high):  # type: ignore[no-untyped-def]
    """P(low < |N(0, 1)| < high), without a loss of digits in the tail."""
    root_two = math.sqrt(2.0)
    # erf is close to 1 far out, where a difference of two would lose all digits; erfc is small and
    # does not.
    if low > 0.5:
        return math.erfc(low / root_two) - math.erfc(high / root_two)
    return math.erf(high / root_two) - math.erf(low / root_two)
