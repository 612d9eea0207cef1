"""Numbers for Prometheus, in their own registry."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from evenhand.service._engine import Engine
from evenhand.service._ledger import entries as kinds


class Metrics:
    """Counts of this process, and the state of the ledger."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.registry = engine, CollectorRegistry()
        self._requests = Counter(
            "evenhand_requests", "Requests by route and status", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._decisions = Counter(
            "evenhand_decisions", "Decisions by group of the chosen arm", ["group"],
            registry=self.registry,
        )  # fmt: skip
        self._rewards = Counter(
            "evenhand_rewards", "Rewards that were learned, by group", ["group"],
            registry=self.registry,
        )  # fmt: skip
        gauges = {
            "version": "The last entry that was learned",
            "queue": "Requests that wait for the writer",
            "lag_seconds": "How long the last transaction took",
            "ready": "Whether decisions can be made",
            "paused": "Whether a human paused decisions",
        }
        self._gauges = {
            name: Gauge(f"evenhand_{name}", words, registry=self.registry)
            for name, words in gauges.items()
        }
        self._children: dict[Any, Any] = {}
        engine.listeners.append(self._told)

    def counted(self, route: str, status: int) -> None:
        """Count an answer."""
        child = self._children.get((route, status))
        if child is None:
            child = self._requests.labels(route or "unknown", str(status))
            self._children[route, status] = child
        child.inc()

    def _told(self, entries: list[tuple[Any, Any]]) -> None:
        arms = self.engine.state.arms
        for entry, body in entries:
            if entry.kind == kinds.DECISION:
                counter = self._decisions
            elif entry.kind in (kinds.REWARD, kinds.LEARN) and body.learned:
                counter = self._rewards
            else:
                continue
            group, given = arms[body.arm].group, self.engine.state.given
            parts = {group: 1.0} if given is None else given.parts(_row(body))
            for name, part in parts.items():
                child = self._children.get((counter, name))
                if child is None:
                    child = self._children[counter, name] = counter.labels(name)
                child.inc(part)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        engine, gauges = self.engine, self._gauges
        gauges["version"].set(engine.state.version)
        gauges["queue"].set(engine.waiting)
        gauges["lag_seconds"].set(engine.lag)
        gauges["ready"].set(not engine.ready)
        gauges["paused"].set(engine.state.paused)
        return generate_latest(self.registry)


def _row(body: kinds.Decision | kinds.Reward) -> bytes:
    """The context of the chosen arm."""
    return (body.row(body.arm) or b"") if isinstance(body, kinds.Decision) else body.context
