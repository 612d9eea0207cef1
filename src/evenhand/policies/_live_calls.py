"""The functions that call a rule's kernels: a choice, a reward to learn, propensities, intervals.

A simulation calls `choose` in its rounds, and Python the functions marked with `live`.
"""

from __future__ import annotations

from evenhand._checks import LARGEST
from evenhand._compile import live, open_to_users, woven
from evenhand._compile.intrinsics import borrowed
from evenhand._random import mix, uniform
from evenhand.leastsquares._simd import place
from evenhand.policies import _defaults  # noqa: F401 - for rules without kernels of their own
from evenhand.policies._kernels import (
    EXPLORES,
    chance,
    draw,
    explore,
    explore_chance,
    learn,
    learn_true,
    score,
    settle,
)
from evenhand.policies._scores import score_arms, score_group
from evenhand.policies._state import (
    ESTIMATE,
    GROUP_ESTIMATE,
    GROUP_WIDTH,
    ROUND,
    WIDTH,
    on_round,
    room_of_call,
)
from evenhand.policies.exploration import probability


@open_to_users
def choose(rule, memory, schedule, available, t, key):  # type: ignore[no-untyped-def]
    """The arm of round t and whether it explores. `score` runs only if it is needed."""
    round_key = mix(key, t)
    if _explores(schedule, t, round_key):
        return explore(rule, memory, available, round_key), True
    score(rule, memory, t)
    return draw(rule, memory, available, round_key), False


@woven
def _explores(schedule, t, round_key):  # type: ignore[no-untyped-def]
    return uniform(round_key, EXPLORES) < probability(schedule, t)


@woven
def check_arm(memory, arm):  # type: ignore[no-untyped-def]
    """Refuse a wrong arm from a user's rule, which would write outside an array."""
    if arm < 0 or arm >= memory.settings.n_arms:
        raise ValueError("draw or explore gave an arm that does not exist")


@woven
def load_contexts(memory, contexts):  # type: ignore[no-untyped-def]
    """Copy the contexts of a round into the padded array; returns the first bad arm, or -1."""
    given, room, bad = place(contexts, 0), place(memory.contexts, 0), False
    # One pass without a branch finds that something is wrong; only then is it worth finding out
    # where.
    for p in range(contexts.size):  # plain enough for the compiler to vectorise
        room[p] = given[p]
        # Written so that NaN is bad as well: no comparison with it is true.
        bad |= not abs(given[p]) <= LARGEST
    if bad:
        for i in range(contexts.shape[0]):
            for k in range(contexts.shape[1]):
                if not abs(contexts[i, k]) <= LARGEST:
                    return i
    return -1


# Functions that Python calls. They hold the interpreter's lock (`live`), so a decision never sees a
# partly updated state. Each call has its own working memory, so decisions do not see each other's.


@live
def decide(  # type: ignore[no-untyped-def]
    rule, state, members, schedule, available, t, key, contexts, context, scores, chances
):
    """A live decision: the arm, its propensity, and whether it explored.

    The arm is -1 - i if the context of arm i is not finite. Fills in `context` for the chosen arm
    and, in exploring rounds as well, `scores` and `chances`, the propensities, for all arms. Each
    of these may be empty if it is not needed: another function without it would compile the rule's
    kernels once more.
    """
    padded, work, room = room_of_call(state)
    memory = borrowed(on_round(state, members, padded, work, room))
    rule, schedule, available = borrowed(rule), borrowed(schedule), borrowed(available)
    bad = load_contexts(memory, borrowed(contexts))
    if bad >= 0:
        return -1 - bad, 0.0, False
    score(rule, memory, t)  # called in one place only: it takes longest to compile
    round_key = mix(key, t)
    explored = _explores(schedule, t, round_key)
    if explored:
        arm = explore(rule, memory, available, round_key)
    else:
        arm = draw(rule, memory, available, round_key)
    check_arm(memory, arm)
    # The propensity of the chosen arm is recorded with every decision; those of the others only on
    # request.
    first, last = (0, chances.size) if chances.size else (arm, arm + 1)
    chosen_chance = 0.0
    for i in range(first, last):
        own = propensity(rule, memory, schedule, available, t, i)
        if i == arm:
            chosen_chance = own
        if chances.size:
            chances[i] = own
    # Numba frees an array after its last use, so the borrowed ones are used up to here.
    for k in range(context.size):
        context[k] = padded[arm, k]
    for row in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            scores[row, i] = work[row, i]
    room[0] = 0.0
    return arm, chosen_chance, explored


@live
def teach(rule, state, arm, group, x, reward, t, last):  # type: ignore[no-untyped-def]
    """`learn` with a check of the context, False if it has a bad number; the last one settles."""
    x = borrowed(x)
    for k in range(x.size):
        # Before anything is learned, so a refused reward leaves no trace.
        if not abs(x[k]) <= LARGEST:
            return False
    state.levels[ROUND, 0] = t
    learn(borrowed(rule), borrowed(state), arm, group, x, reward)
    if last:
        settle(borrowed(rule), borrowed(state))
    return True


@live
def teach_true(rule, state, arm, group, x, value, observed, t, last):  # type: ignore[no-untyped-def]
    """`learn_true` with a check of the context, False if it has a bad number; the last settles."""
    x = borrowed(x)
    for k in range(x.size):
        if not abs(x[k]) <= LARGEST:
            return False
    state.levels[ROUND, 0] = t
    learn_true(borrowed(rule), borrowed(state), arm, group, x, value, observed)
    if last:
        settle(borrowed(rule), borrowed(state))
    return True


@live
def settle_now(rule, state):  # type: ignore[no-untyped-def]
    """`settle` by itself, after something else than `learn` has changed the state."""
    settle(borrowed(rule), borrowed(state))


@open_to_users
def propensity(rule, memory, schedule, available, t, arm):  # type: ignore[no-untyped-def]
    """The probability that round t chooses `arm`, with the present scores."""
    p = probability(schedule, t)
    total = 0.0
    # Not worked out where it cannot count: a probability may take long.
    if p > 0.0:
        total += p * explore_chance(rule, memory, available, arm)
    if p < 1.0:
        total += (1.0 - p) * chance(rule, memory, available, arm)
    return total


@live
def arm_intervals(state, members, t, contexts, out):  # type: ignore[no-untyped-def]
    """Estimate and width of every arm; -1, or the first arm whose context is not finite."""
    padded, work, room = room_of_call(state)
    memory = on_round(state, members, padded, work, room)
    bad = load_contexts(memory, contexts)
    if bad < 0:
        score_arms(memory, t)
        out[0] = work[ESTIMATE, : out.shape[1]]
        out[1] = work[WIDTH, : out.shape[1]]
    return bad


@live
def group_intervals(state, members, t, contexts, out):  # type: ignore[no-untyped-def]
    """psi_j . x_i and its width for every group and arm; -1, or the first bad arm."""
    padded, work, room = room_of_call(state)
    memory = on_round(state, members, padded, work, room)
    bad = load_contexts(memory, contexts)
    if bad < 0:
        n = out.shape[2]
        for group in range(out.shape[1]):
            score_group(memory, group, members.everyone, t)
            out[0, group] = work[GROUP_ESTIMATE, :n]
            out[1, group] = work[GROUP_WIDTH, :n]
    return bad
