"""Requests to the service, as many as it answers or at a fixed rate."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import numpy as np

ARMS, FEATURES, CONNECTIONS = 10, 5, 64


def config(folder: Path, store: str, port: int, name: str = "load.toml") -> Path:
    """A service of ten arms and five features, without a limit of requests."""
    lines = ['title = "Load"', f'store = "{store}"', 'wait = "30 days"', "intercept = false"]
    lines += [f"[features.x{k}]\nlow = -10\nhigh = 10" for k in range(FEATURES)]
    lines += ["[arms]", *(f'arm{k} = "{"F" if k % 2 else "M"}"' for k in range(ARMS))]
    lines += ["[review]\nshare = 0.0", f"[server]\nport = {port}\nqueue = 100000\nrate = 0"]
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def bodies(number: int) -> list[bytes]:
    rng = np.random.default_rng(1)
    names = [f"x{k}" for k in range(FEATURES)]
    listed = []
    for _ in range(number):
        rows = rng.normal(size=(ARMS, FEATURES)).round(3).tolist()
        candidates = [
            {"arm": f"arm{k}", "features": dict(zip(names, row, strict=True))}
            for k, row in enumerate(rows)
        ]
        listed.append(json.dumps({"candidates": candidates}).encode())
    return listed


def request(method: str, path: str, body: bytes, key: str) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One request after another, as fast as answers come."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer = load, b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.next(None)

    def next(self, answer: bytes | None) -> None:
        data = self.load.take(answer)
        if data is None:
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(re.search(rb"content-length: (\d+)", self.buffer[:end], re.IGNORECASE)[1])
        if len(self.buffer) < end + 4 + length:
            return
        answer, self.buffer = self.buffer, b""
        assert answer[9:11] == b"20", answer[:300]
        self.load.times.append(time.perf_counter() - self.began)
        self.next(answer)

    def connection_lost(self, _) -> None:
        self.load.open -= 1
        if not self.load.open:
            self.load.done.set()


class Load:
    """Decisions, each followed by its reward if `rewards`."""

    def __init__(self, number: int, key: str, given: list[bytes], rewards: bool = False) -> None:
        self.left, self.key, self.given, self.rewards = number, key, given, rewards
        self.times: list[float] = []
        self.sent = 0

    def take(self, answer: bytes | None) -> bytes | None:
        if self.rewards and answer is not None and (match := re.search(rb'"id":"([^"]+)"', answer)):
            path = f"/v1/decisions/{match[1].decode()}/reward"
            return request("PUT", path, b'{"observed":0.5}', self.key)
        if self.left <= 0:
            return None
        self.left -= 1
        self.sent += 1
        return request("POST", "/v1/decisions", self.given[self.sent % len(self.given)], self.key)

    async def run(self, port: int, connections: int = CONNECTIONS) -> float:
        self.open, self.done = connections, asyncio.Event()
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
        await self.done.wait()
        return time.perf_counter() - began


async def paced(
    port: int, key: str, given: list[bytes], rate: float, seconds: float
) -> list[float]:
    """Latencies at a fixed rate; a request that has to wait for its turn has waited."""
    times: list[float] = []
    free: asyncio.Queue = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    async def ask(data: bytes, due: float) -> None:
        reader, writer = await free.get()
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
        await reader.readexactly(length)
        times.append(time.perf_counter() - due)
        free.put_nowait((reader, writer))

    began, tasks = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        data = request("POST", "/v1/decisions", given[number % len(given)], key)
        tasks.append(asyncio.create_task(ask(data, due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait()[1].close()
    return times
