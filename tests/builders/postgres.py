"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from serving import free_port

_FOUND = shutil.which("pg_ctl")
_HOMES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
BIN = Path(_FOUND).resolve().parent if _FOUND else (_HOMES[-1] if _HOMES else None)
MISSING = BIN is None or not (BIN / "initdb").exists()
REASON = "needs PostgreSQL's initdb and pg_ctl"


class Postgres:
    """Started, stopped and killed by tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.data = folder / "data"
        # PostgreSQL does not run as root.
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            entry = pwd.getpwnam(self.user)
            for place in (folder, *folder.parents):
                if (
                    place.owner() == "root"
                    and str(place).startswith("/tmp")
                    and place != Path("/tmp")
                ):
                    place.chmod(0o755)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(BIN / program), *map(str, arguments)]
        if self.user:
            command = [
                "setpriv",
                f"--reuid={self.user}",
                f"--regid={self.user}",
                "--clear-groups",
                *command,
            ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stderr + done.stdout

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run(
            "pg_ctl", "-D", self.data, "-t", 600, "-w", "-l", self.folder / "log", "-o", settings,
            "start",
        )  # fmt: skip

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self.data, "-t", 600, "-w", "-m", how, "stop")

    def database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(f"{self.url}postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{self.url}{name}"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/"
