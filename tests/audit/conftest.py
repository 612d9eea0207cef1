"""A log with every role, and a PostgreSQL server of its own that has it in a table."""

import pytest

import postgres as servers
from sourced_logs import audits, roled_log


@pytest.fixture(scope="package")
def roled():
    return roled_log()


@pytest.fixture(scope="package")
def parquet(roled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    roled.iloc[:400].to_parquet(folder / "a.parquet")
    roled.iloc[400:].to_parquet(folder / "b.parquet")
    return folder


@pytest.fixture(scope="package")
def from_frame(roled):
    return audits(roled)


@pytest.fixture(scope="package")
def postgres(roled):
    """The address of a server, with the log as the table `decisions`."""
    if servers.MISSING:
        pytest.skip(servers.REASON)
    server = servers.Postgres()
    server.start()
    servers.write_table(f"{server.url}postgres", "decisions", roled)
    yield f"{server.url}postgres"
    server.close()
