"""What every measurement shares: rounds to play, a clock, a yardstick.

The standard library alone: it also runs in environments in which there is nothing else.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata

N_ARMS, N_FEATURES = 10, 5
WARM_UP = 200

# A yardstick is so many steps of a loop in plain Python: about a microsecond of an ordinary core.
STEPS_OF_A_YARDSTICK = 20
_STEPS = 20_000


def yardstick() -> float:
    """Microseconds that a yardstick takes now: it grows as whatever is timed beside it does."""
    value = 1
    begin = time.perf_counter()
    for _ in range(_STEPS):
        value = (value * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
    return (time.perf_counter() - begin) * 1e6 * STEPS_OF_A_YARDSTICK / _STEPS


def enough_rounds(play: Callable[[int], object], seconds: float, least: int, most: int) -> int:
    """How many rounds take about `seconds`, between `least` and `most`."""
    rounds = least
    while True:
        begin = time.perf_counter()
        play(rounds)
        took = time.perf_counter() - begin
        if took > 0.3 * seconds or rounds >= most:
            return max(least, min(most, int(rounds * seconds / max(took, 1e-9))))
        rounds = min(most, 4 * rounds)


def measure(
    prepare: Callable[[], Callable[[int], object]],
    rounds: int,
    repeats: int = 5,
    patience: float = 2.0,
) -> dict[str, float]:
    """Time `rounds` rounds, `repeats` times over, and more often if the repeats disagree.

    `prepare` makes, off the clock, the function that plays so many rounds. All times are in
    microseconds a round. What else the machine does only ever adds time, so the best repeat is the
    nearest to the truth; if the median is far above it, repeats are added for some `patience`
    seconds, up to three times as many. `yardstick` is what it took beside the best repeat: it tells
    later whether even that one was disturbed.
    """
    wall: list[float] = []
    cpu: list[float] = []
    beside: list[float] = []
    gc.collect()
    start = time.perf_counter()
    while len(wall) < repeats or (
        len(wall) < 3 * repeats
        and statistics.median(wall) > 1.15 * min(wall)
        and time.perf_counter() - start < patience
    ):
        play = prepare()
        before = yardstick()
        begin, cpu_begin = time.perf_counter(), time.process_time()
        play(rounds)
        end, cpu_end = time.perf_counter(), time.process_time()
        after = yardstick()
        wall.append((end - begin) * 1e6 / rounds)
        cpu.append((cpu_end - cpu_begin) * 1e6 / rounds)
        beside.append(0.5 * (before + after))
    return {
        "rounds": rounds,
        "repeats": len(wall),
        "best": min(wall),
        "median": statistics.median(wall),
        "cpu": min(cpu),
        "yardsticks": statistics.median(w / y for w, y in zip(wall, beside, strict=True)),
        "yardstick": beside[wall.index(min(wall))],
    }


class Rounds:
    """A linear world of which all rounds are drawn once, so that drawing them is off the clock.

    `rewards[t][arm]` are the rewards for `contexts[t][arm]`. For a library that knows one context a
    round, `shared[t]` is a context for all arms and `shared_rewards[t][arm]` their rewards for it.
    """

    def __init__(self, number: int = 512, seed: int = 1) -> None:
        generator = random.Random(seed)
        arms, features = range(N_ARMS), range(N_FEATURES)
        theta = [[generator.random() / N_FEATURES for _ in features] for _ in arms]
        self.contexts = [
            [[generator.random() for _ in features] for _ in arms] for _ in range(number)
        ]
        self.shared = [rows[0] for rows in self.contexts]
        self.rewards, self.shared_rewards = [], []
        for rows in self.contexts:
            noise = generator.gauss(0.0, 0.1)
            self.rewards.append([_dot(theta[i], rows[i]) + noise for i in arms])
            self.shared_rewards.append([_dot(theta[i], rows[0]) + noise for i in arms])


def _dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def learned(play: Callable[[int], float], rewards: list[list[float]]) -> float:
    """Rewards of one more pass: 0 is what uniform choice earns, 1 what the best arms do."""
    number = len(rewards)
    uniform = sum(sum(row) / len(row) for row in rewards) / number
    best = sum(max(row) for row in rewards) / number
    return (play(number) / number - uniform) / (best - uniform)


def tell(package: str, play: Callable[[int], float], rewards: list[list[float]]) -> None:
    """Warm up, measure, and print the figures as JSON. `--quick` as an argument makes it short.

    `play` plays so many rounds, each a choice and an update, and returns the sum of the rewards.
    """
    quick = "--quick" in sys.argv
    play(WARM_UP)
    rounds = enough_rounds(play, 0.05 if quick else 0.3, least=20, most=50_000)
    figures = measure(lambda: play, rounds, 3 if quick else 7, patience=6.0)
    try:
        numpy = metadata.version("numpy")
    except metadata.PackageNotFoundError:
        numpy = "none"
    facts = {"version": metadata.version(package), "numpy": numpy}
    print(json.dumps({**facts, **figures, "learned": learned(play, rewards)}))
