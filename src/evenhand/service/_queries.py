"""What the ledger says about decisions, as callers read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evenhand.service import _policy_calls
from evenhand.service._bodies import (
    DecisionOut,
    DecisionView,
    Line,
    OverrideView,
    Page,
    RewardView,
    Scores,
)
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.fold import LedgerState
from evenhand.service._ledger.membership import Membership
from evenhand.service._ledger.sqlite_and_postgres import Connection
from evenhand.service._ledger.transaction import HOUR, TALLIED
from evenhand.service._problems import Problem

# By status, on the tables of `page`. A reward is missing if none came, not even late.
TESTS = {
    "waiting": "w.decision IS NOT NULL AND w.rewarded = 0",
    "rewarded": "r.decision IS NOT NULL",
    "missing": "r.decision IS NULL AND w.decision IS NULL AND e.body IS NOT NULL AND {began}",
    "overridden": "o.decision IS NOT NULL AND o.shadow = 0",
    "shadow": "o.shadow = 1",
}
_ALL = (
    "SELECT d.seq, d.id, d.at, d.grp, e.body, w.due, w.rewarded, u.at, r.reward, r.at, r.late, "
    "t.reward, t.at, o.arm, o.reason, o.by, o.at, o.shadow "
    "FROM decisions d JOIN entries e ON e.seq = d.seq "
    "LEFT JOIN waiting w ON w.decision = d.seq LEFT JOIN rewards r ON r.decision = d.seq "
    "LEFT JOIN truths t ON t.decision = d.seq LEFT JOIN overrides o ON o.decision = d.seq "
    "LEFT JOIN uses u ON u.decision = d.seq "
)


def moment(at: int | None) -> str | None:
    """Microseconds as text, in UTC."""
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def decision_out(
    id: str, at: int, body: kinds.Decision, override: int | None, state: LedgerState
) -> DecisionOut:
    """A decision as callers get it, from what the ledger keeps of it."""
    chances = np.frombuffer(body.propensities or b"")
    table = np.frombuffer(body.scores, dtype=np.float32).astype(np.float64).reshape(3, -1)
    arms, numbers = state.arms, list(range(len(chances)))
    if body.contexts is not None and len(body.contexts) > body.width:
        firsts = np.frombuffer(body.contexts)[:: max(body.width // 8, 1)]
        numbers = np.flatnonzero(firsts == firsts).tolist()  # those that are not NaN
        chances, table = chances[numbers], table[:, numbers]
    width = table[1].tolist()
    known = np.isfinite(table[1]).tolist()
    arm = body.arm if override is None else override
    groups = groups_of(state, body, numbers)
    return DecisionOut(
        id,
        arms[arm].name,
        groups[numbers.index(arm)],
        body.propensity,
        body.explored,
        body.round,
        body.version,
        moment(at) or "",
        "shadow" if body.shadow else "decide",
        arms[body.arm].name,
        Scores(
            [arms[number].name for number in numbers],
            groups,
            chances.tolist(),
            table[0].tolist(),
            table[2].tolist(),
            [value if is_known else None for value, is_known in zip(width, known, strict=True)],
            known,
        ),
    )


def groups_of(state: LedgerState, body: kinds.Decision, numbers: Sequence[int]) -> list[str]:
    """The groups of candidates: those of their arms, or what came with them, in words."""
    if state.given is None:
        return [state.arms[number].group for number in numbers]
    rows = [np.frombuffer(body.row(number) or b"") for number in numbers]
    return state.given.words(np.array(rows))


def decision_view(connection: Connection, id: str, state: LedgerState) -> DecisionView:
    """A decision with everything that happened to it."""
    row = connection.row(f"{_ALL} WHERE d.id = ?", (id,))
    if row is None:
        raise Problem(404, "there is no decision with this id")
    (_, _, at, _, packed, due, rewarded, used, reward, reward_at, late, truth, truth_at,
     arm, reason, by, override_at, shadow) = row  # fmt: skip
    if packed is None:
        raise Problem(410, "the decision was erased")
    body: kinds.Decision = kinds.decode(kinds.DECISION, bytes(packed))
    out = decision_out(id, at, body, arm, state)
    rows, available = _policy_calls.rows_of(state, body)
    names = state.features
    if available is not None:
        rows = rows[available]
    override = None
    if arm is not None:
        when = moment(override_at) or ""
        override = OverrideView(out.arm, out.group, reason, by, when, bool(shadow))
    return DecisionView(
        **{name: getattr(out, name) for name in DecisionOut.__struct_fields__},
        contexts={name: rows[:, k].tolist() for k, name in enumerate(names)},
        hashed=_hashes(body.hashed, len(rows)),
        waits_until=None if rewarded else moment(due),
        used_at=moment(used),
        reward=None if reward is None else RewardView(reward, moment(reward_at) or "", bool(late)),
        true_reward=None if truth is None else RewardView(truth, moment(truth_at) or ""),
        override=override,
    )


def _hashes(packed: bytes, candidates: int) -> list[list[str]]:
    """The hashes of the texts of every candidate, in hexadecimal."""
    if not packed:
        return []
    parts = [packed[k : k + 16].hex() for k in range(0, len(packed), 16)]
    size = len(parts) // candidates
    return [parts[k * size : (k + 1) * size] for k in range(candidates)]


def page(
    connection: Connection,
    state: LedgerState,
    before: int | None,
    limit: int,
    confirmed: bool,
    *,
    arm: str | None = None,
    group: str | None = None,
    status: str | None = None,
    person: bytes | None = None,
) -> Page:
    """Decisions, the newest first; `before` is the cursor."""
    where, values = ["1 = 1"], []
    if before is not None:
        where.append("d.seq < ?")
        values.append(before)
    if arm is not None:
        where.append("COALESCE(o.arm, d.arm) = ?")
        values.append(state.numbers.get(arm, -1))
    if group is not None:
        where.append("COALESCE(o.grp, d.grp) = ?")
        values.append(group)  # type: ignore[arg-type]
    if person is not None:
        where.append("d.person = ?")
        values.append(person)  # type: ignore[arg-type]
    if status is not None:
        where.append(TESTS[status].format(began="u.decision IS NOT NULL" if confirmed else "1 = 1"))
    sql = (
        "SELECT d.seq, d.id, d.at, d.arm, COALESCE(o.grp, d.grp), r.reward, w.rewarded, o.arm, "
        "o.shadow, e.body IS NULL, u.decision FROM decisions d JOIN entries e ON e.seq = d.seq "
        "LEFT JOIN uses u ON u.decision = d.seq LEFT JOIN waiting w ON w.decision = d.seq "
        "LEFT JOIN rewards r ON r.decision = d.seq "
        "LEFT JOIN overrides o ON o.decision = d.seq "
        f"WHERE {' AND '.join(where)} ORDER BY d.seq DESC LIMIT ?"
    )
    rows = connection.rows(sql, (*values, limit + 1))
    lines = []
    for (
        _, id, at, number, label, reward, rewarded, override, shadow, erased, used,
    ) in rows[:limit]:  # fmt: skip
        in_force = state.arms[number if override is None else override]
        waits = rewarded is not None and not rewarded
        overridden = override is not None and not shadow
        missing = reward is None and rewarded is None and not erased
        missing = missing and (not confirmed or used is not None)
        when = moment(at) or ""
        lines.append(Line(id, when, in_force.name, label, reward, waits, missing, overridden))
    return Page(lines, str(rows[limit - 1][0]) if len(rows) > limit else None)


def body_and_seed(connection: Connection, id: str) -> tuple[kinds.Decision, int]:
    """The body of a decision, and the seed with which it can be made again."""
    row = connection.row(
        "SELECT e.body FROM decisions d JOIN entries e ON e.seq = d.seq WHERE d.id = ?", (id,)
    )
    if row is None:
        raise Problem(404, "there is no decision with this id")
    if row[0] is None:
        raise Problem(410, "the decision was erased")
    body: kinds.Decision = kinds.decode(kinds.DECISION, bytes(row[0]))
    start = connection.row("SELECT body FROM entries WHERE seq = ?", (body.start,))
    if start is None or start[0] is None:
        raise Problem(410, "how this decision was made is not recorded")
    process: kinds.Start = kinds.decode(kinds.START, bytes(start[0]))
    return body, process.seed


def tallies(connection: Connection, since: int = 0) -> list[dict[str, Any]]:
    """Counts by hour and group."""
    sql = f"SELECT hour, grp, {', '.join(TALLIED)} FROM tallies WHERE hour >= ? ORDER BY hour, grp"
    names = ("hour", "group", *TALLIED)
    return [dict(zip(names, row, strict=True)) for row in connection.rows(sql, (since // HOUR,))]


def shares(connection: Connection, since: int = 0) -> list[dict[str, Any]]:
    """By group: how often it was chosen, beside its part of the candidates; and its rewards."""
    totals: dict[str, dict[str, Any]] = {}
    for row in tallies(connection, since):
        sums = totals.setdefault(row["group"], dict.fromkeys(TALLIED, 0))
        for name in TALLIED:
            sums[name] += row[name]
    decided = sum(row["decided"] for row in totals.values())
    listed = []
    for group, row in sorted(totals.items()):
        answered = row["rewarded"] + row["missing"]
        listed.append(
            {
                "group": group,
                "decisions": _count(row["decided"]),
                "share": row["decided"] / decided if decided else None,
                "proportional_share": row["expected"] / decided if decided else None,
                "rewards": _count(row["rewarded"]),
                "mean_reward": row["earned"] / row["rewarded"] if row["rewarded"] else None,
                "missing": _count(row["missing"]),
                "missing_rate": row["missing"] / answered if answered else None,
                "late": _count(row["late"]),
                "overridden": _count(row["overridden"]),
                "exploration_cost": row["cost"] / row["decided"] if row["decided"] else None,
            }
        )
    return listed


def _count(number: float) -> float:
    """A whole number, unless candidates with probabilities count for several groups."""
    return round(number) if abs(number - round(number)) < 1e-6 else round(number, 3)


def waiting(connection: Connection) -> list[dict[str, Any]]:
    """By group: how many decisions wait for a reward, and when the first is due."""
    sql = "SELECT grp, COUNT(*), MIN(due), SUM(rewarded) FROM waiting GROUP BY grp ORDER BY grp"
    return [
        {
            "group": group,
            "waiting": number - held,
            "held": held,
            "first_due": moment(due),
        }
        for group, number, due, held in connection.rows(sql)
    ]


def versions(connection: Connection) -> list[dict[str, Any]]:
    """The versions that can be rolled back to quickly: those with a snapshot."""
    sql = (
        "SELECT s.seq, e.at, (SELECT d.round FROM decisions d WHERE d.seq <= s.seq "
        "ORDER BY d.seq DESC LIMIT 1) "
        "FROM snapshots s JOIN entries e ON e.seq = s.seq AND e.hash = s.hash "
        "ORDER BY s.seq DESC LIMIT 200"
    )
    return [
        {"version": seq, "at": moment(at), "round": round or 0}
        for seq, at, round in connection.rows(sql)
    ]


def latest_rounds(
    connection: Connection, given: Membership | None, number: int = 20_000
) -> list[tuple[int, str, float]]:
    """The latest rounds and the group that each chose; several, if groups are probabilities."""
    sql = "SELECT round, grp, 1 FROM decisions ORDER BY seq DESC LIMIT ?"
    if given is None:
        return [(round, group, part) for round, group, part in connection.rows(sql, (number,))]
    sql = (
        "SELECT e.body FROM decisions d JOIN entries e ON e.seq = d.seq "
        "WHERE e.body IS NOT NULL ORDER BY d.seq DESC LIMIT ?"
    )
    rounds = []
    for (packed,) in connection.rows(sql, (number // 10,)):
        body: kinds.Decision = kinds.decode(kinds.DECISION, bytes(packed))
        parts = given.parts(body.row(body.arm) or b"")
        rounds += [(body.round, group, part) for group, part in parts.items()]
    return rounds
