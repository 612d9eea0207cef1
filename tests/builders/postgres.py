"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from serving import free_port

_FOUND = shutil.which("pg_ctl")
_HOMES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
BIN = Path(_FOUND).resolve().parent if _FOUND else (_HOMES[-1] if _HOMES else None)
MISSING = BIN is None or not (BIN / "initdb").exists()
REASON = "needs PostgreSQL's initdb and pg_ctl"


class Postgres:
    """Started, stopped and killed by tests."""

    def __init__(self) -> None:
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="evenhand-")), free_port()
        self.data = self.folder / "data"
        self.who = {"user": "postgres"} if os.geteuid() == 0 else {}  # it does not run as root
        self.folder.chmod(0o777)
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8")

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(BIN / program), *map(str, arguments)], cwd=self.folder, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.who,
        )  # fmt: skip
        assert done.returncode == 0, (program, (self.folder / "log").read_text())

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run(
            "pg_ctl", "-D", self.data, "-t", 600, "-w", "-l", self.folder / "log", "-o", settings,
            "start",
        )  # fmt: skip

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self.data, "-t", 600, "-w", "-m", how, "stop")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(f"{self.url}postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{self.url}{name}"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/"


KINDS = {
    "bool": "boolean",
    "datetime64[us]": "timestamp",
    "float64": "double precision",
    "int64": "bigint",
}


def write_table(address: str, name: str, frame: pd.DataFrame) -> None:
    """A frame as a table, with NULL for what is missing."""
    import psycopg

    kinds = {column: KINDS.get(str(kind), "text") for column, kind in frame.dtypes.items()}
    columns = [f'"{column}" {kind}' for column, kind in kinds.items()]
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    marks = ", ".join(["%s"] * len(columns))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
