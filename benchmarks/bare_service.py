"""The endpoints that `benchmarks.service` is measured beside: FastAPI, one row a request."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import uuid
from collections import deque
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Candidate(BaseModel):
    arm: str
    features: dict[str, float]


class Body(BaseModel):
    candidates: list[Candidate]


def connect(store: str):
    if store.startswith("postgres"):
        import psycopg

        connection = psycopg.connect(store, autocommit=True, prepare_threshold=2)
        connection.execute("CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, body text)")
        return connection, "INSERT INTO bare (id, body) VALUES (%s, %s)"
    connection = sqlite3.connect(store, isolation_level=None, check_same_thread=False, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, body text)")
    return connection, "INSERT INTO bare (id, body) VALUES (?, ?)"


class Writer:
    """One thread; all rows that wait in one commit."""

    def __init__(self, store: str, loop: asyncio.AbstractEventLoop) -> None:
        self.connection, self.sql = connect(store)
        self.loop, self.queue, self.there = loop, deque(), threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def put(self, row: tuple[str, str]) -> asyncio.Future:
        future = self.loop.create_future()
        self.queue.append((row, future))
        self.there.set()
        return future

    def run(self) -> None:
        while True:
            self.there.wait()
            self.there.clear()
            batch = []
            while self.queue:
                batch.append(self.queue.popleft())
            if not batch:
                continue
            self.connection.execute("BEGIN")
            if isinstance(self.connection, sqlite3.Connection):
                self.connection.executemany(self.sql, [row for row, _ in batch])
            else:
                with self.connection.cursor() as cursor:
                    cursor.executemany(self.sql, [row for row, _ in batch])
            self.connection.execute("COMMIT")
            self.loop.call_soon_threadsafe(self.tell, batch)

    @staticmethod
    def tell(batch: list) -> None:
        for _, future in batch:
            future.set_result(None)


def main() -> None:
    store, how, port = sys.argv[1:4]

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        app.state.writer = Writer(store, asyncio.get_running_loop())
        yield

    app = FastAPI(lifespan=lifespan)
    if how == "together":

        @app.post("/v1/decisions", status_code=201)
        async def together(body: Body) -> dict[str, str]:
            id = str(uuid.uuid4())
            await app.state.writer.put((id, body.model_dump_json()))
            return {"id": id, "arm": body.candidates[0].arm}

    else:
        connection, sql = connect(store)
        lock = threading.Lock()

        @app.post("/v1/decisions", status_code=201)
        def each(body: Body) -> dict[str, str]:
            id = str(uuid.uuid4())
            with lock:
                connection.execute(sql, (id, body.model_dump_json()))
            return {"id": id, "arm": body.candidates[0].arm}

    uvicorn.run(app, port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
