"""A decision before it is written: candidates become contexts, and the policy chooses."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evenhand.service import _policy_calls
from evenhand.service._features import Encoder
from evenhand.service._ids import new_id
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Decide
from evenhand.service._ledger.fold import LedgerState
from evenhand.service._ledger.review_queue import is_sampled
from evenhand.service._problems import Refused
from evenhand.service.config import Config


class Chooser:
    """The part of `Engine` that chooses."""

    config: Config
    encoder: Encoder
    secret: bytes
    started: int  # the entry that has the seed of this process
    state: LedgerState
    decider: LedgerState  # the state that decides: the newest, or one that was rolled back to
    draws: int  # the last round whose random numbers this process used
    flying: int  # decisions that are not yet in the ledger
    _expected: dict[bytes, dict[str, float]]

    def prepare(
        self,
        id: str | None,
        arms: list[str],
        rows: NDArray[np.float64],
        shadow: bool = False,
        chosen: str | None = None,
        person: str | None = None,
        texts: list[tuple[str, ...]] | None = None,
    ) -> Decide:
        """Choose among candidates: names of arms, contexts, and texts that are only hashed.

        In their contexts, the groups that candidates bring follow the features.
        """
        state = self.decider
        numbers = self._numbers(arms)
        n = len(self.state.arms)
        available: NDArray[np.bool_] | None = None
        if len(arms) == n and numbers == list(range(n)):
            table = rows
        else:
            available = np.zeros(n, dtype=np.bool_)
            available[numbers] = True
            table = np.tile(_policy_calls.blank(self.state), (n, 1))
            table[numbers] = rows
            if len(arms) == n:
                available = None
        if len(state.arms) < n:  # rolled back to before an arm was added
            late = [number for number in numbers if number >= len(state.arms)]
            if late:
                raise Refused("candidates", "has an arm that the version in use does not know")
            table = table[: len(state.arms)]
            available = None if available is None else available[: len(state.arms)]
        self.draws = max(self.draws, self.state.round + self.flying) + 1
        choice = _policy_calls.choose(state.policy, table, available, self.draws)
        decision = choice.decision
        row = table[decision.arm]
        group, parts, expected = self._groups(decision.arm, row, numbers, rows)
        digest = hashlib.blake2b(choice.contexts, digest_size=16)
        hashed = b""
        if texts:
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            hashed = b"".join(self._hashed(texts[place]) for place in order)
        digest.update(f"{shadow}\n{chosen}\n{person}".encode() + hashed)
        body = kinds.Decision(
            0,
            decision.arm,
            decision.propensity,
            decision.explored,
            row.size,
            choice.contexts,
            choice.propensities,
            state.version,
            self.started,
            self.draws,
            choice.scores,
            digest.digest(),
            None if person is None else self.pseudonym(person),
            shadow,
            hashed,
        )
        override, override_group = None, ""
        if chosen is not None:
            number = self.state.numbers.get(chosen, -1)
            if number not in numbers:
                raise Refused("chosen", "is not the arm of a candidate")
            if number != decision.arm:
                other = np.ascontiguousarray(table[number])
                override = kinds.Override(0, number, other.tobytes(), "", "", True)
                override_group = self._groups(number, other, numbers, rows)[0]
        own = id is None
        name = new_id() if id is None else id
        review = not shadow and is_sampled(name, self.config.review_share)
        return Decide(
            name, own, body, group, parts, expected, choice.cost, review, override, override_group
        )

    def _groups(
        self,
        arm: int,
        row: NDArray[np.float64],
        numbers: list[int],
        rows: NDArray[np.float64],
    ) -> tuple[str, Mapping[str, float], Mapping[str, float]]:
        """A candidate's group, how much each group counts for it, and for all candidates."""
        given = self.state.given
        if given is not None:
            return given.label(row), given.parts(row), given.expected(rows)
        group = self.state.arms[arm].group
        return group, {group: 1}, self._shares(numbers)

    def _numbers(self, arms: list[str]) -> list[int]:
        known, every = self.state.numbers, self.state.arms
        numbers = []
        for place, name in enumerate(arms):
            number = known.get(name)
            if number is None or every[number].retired:
                problem = "is retired" if number is not None else "is unknown"
                raise Refused(f"candidates[{place}].arm", f"{problem}; GET /v1/arms lists all arms")
            numbers.append(number)
        if len(set(numbers)) < len(numbers):
            raise Refused("candidates", "has an arm twice")
        return numbers

    def _shares(self, numbers: list[int]) -> dict[str, float]:
        """Each group's part of the candidates: its share if choices were proportional."""
        key = np.array(numbers, dtype=np.int32).tobytes()
        shares = self._expected.get(key)
        if shares is None:
            if len(self._expected) > 1000:
                self._expected.clear()
            shares = {}
            for number in numbers:
                group = self.state.arms[number].group
                shares[group] = shares.get(group, 0.0) + 1.0 / len(numbers)
            self._expected[key] = shares
        return shares

    def pseudonym(self, person: str) -> bytes:
        """A person's id is never kept, only its keyed hash."""
        return hmac.digest(self.secret, person.encode(), "sha256")[:16]

    def _hashed(self, values: tuple[str, ...]) -> bytes:
        """Texts as keyed hashes, each with the name of its feature."""
        pairs = zip(self.encoder.texts, values, strict=True)
        return b"".join(self.pseudonym(f"{name}\n{value}") for name, value in pairs)
