"""Scripts of calls on a policy, to be done with and without a log."""

from __future__ import annotations

import json
from zlib import crc32

import numpy as np

import evenhand as eh
from evenhand.events._tables import beside
from evenhand.policies import POLICIES
from evenhand.policies.saving import to_dict

LABELS, FEATURES = ["F", "M", "F", "M"], 2
OURS = sorted(name for name, kind in POLICIES.items() if kind.__module__.startswith("evenhand."))


def make(name="GroupFairTopInterval", **settings):
    groups = eh.Groups(LABELS, sensitive="F")
    return POLICIES[name](
        groups,
        **{"n_features": FEATURES, "horizon": 300, "exploration": 0.3, "seed": 5, **settings},
    )


def bits(policy):
    return json.dumps(to_dict(policy))


def event_of(line):
    """What a line of a journal says, without its checksum."""
    return json.loads(line[: line.rindex(b"]") + 1])


def signed(lines):
    """A journal of a first line and of events, each as text without a checksum."""
    whole = lines[0] + b"\n"
    for line in lines[1:]:
        whole += b"%b %08x\n" % (line, crc32(line, crc32(whole)))
    return whole


def alike(frame):
    """What is the same in two logs of the same calls: not the time, nor ids, which name the log."""
    return frame.drop(columns=["timestamp", "decision_id", "reward_at", "true_at"])


def killed(logged):
    """Leave a log as a process leaves it that is killed."""
    logged.ledger._journal._file.close()


def contexts_of(seed):
    return np.random.default_rng(seed).standard_normal((len(LABELS), FEATURES))


def same_decisions(policy, other, number=10):
    for seed in range(number):
        first, second = policy.select(contexts_of(seed)), other.select(contexts_of(seed))
        assert (first.arm, first.propensity, first.explored, first.round) == (
            second.arm,
            second.propensity,
            second.explored,
            second.round,
        )
        np.testing.assert_array_equal(first.scores.table, second.scores.table)
        policy.update(first, 0.25)
        other.update(second, 0.25)


class Calls:
    """Random calls on a policy or a logged one: the same for both with the same seed."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.open = []

    def one(self, policy):
        generator, kind = self.generator, self.generator.integers(6)
        contexts = generator.standard_normal((len(LABELS), FEATURES)) * 10.0 ** generator.integers(
            4
        )
        rewards = generator.standard_normal(5)
        if kind <= 1 or len(self.open) < 4:
            available = [0, 3] if generator.random() < 0.3 else None
            self.open.append(policy.select(contexts, available))
        elif kind == 2:
            policy.update(self.open.pop(generator.integers(len(self.open))), rewards[0])
        elif kind == 3:
            generator.shuffle(self.open)
            policy.update([self.open.pop() for _ in range(3)], rewards[:3])
        elif kind == 4:
            self.open.pop(0)  # its reward never comes
        else:
            policy.absorb([0, 3, 1], contexts[:3], rewards[:3])

    def many(self, policy, number):
        for _ in range(number):
            self.one(policy)
        return policy


def fill(logged):
    """Decisions, history, an override, and true rewards before and after it."""
    Calls(3).many(logged, 25)
    last = logged.select(contexts_of(1))
    logged.true_reward(last, 2.0)
    logged.override(last, (last.arm + 1) % 4, [1.0, 1.0])
    logged.true_reward(last, 4.0)
    logged.update(last.round, 1.0)


def closed(path, number=0, **how):
    """A log that was closed; with `number` decisions, or what `fill` does."""
    with eh.log_to(path, make(), **how) as logged:
        for seed in range(number):
            logged.update(logged.select(contexts_of(seed)), 1.0)
        if not number:
            fill(logged)
    return path


def refused(path, words, read=eh.read_log):
    """Reading stops with one line that names the file."""
    import pytest  # the scripts that are killed can do without

    with pytest.raises(ValueError, match=words) as error:
        read(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


def older(path):
    """As evenhand wrote it before there were checksums."""
    told = json.loads(beside(path).read_text())
    for name in ("check", "rows", "before"):
        told.pop(name, None)
    beside(path).write_text(json.dumps(told))
    return path
