from __future__ import annotations

import itertools

import pytest

import postgres
from forking import Forked, Nursery
from serving import make_key, write_config

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server_of_postgres():
    if postgres.MISSING:
        pytest.skip(postgres.REASON)
    server = postgres.Postgres()
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def nursery():
    """Where servers start in a fraction of a second."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'loans.db'}"
    server = request.getfixturevalue("server_of_postgres")
    return server.database(f"loans{next(_numbers)}")


@pytest.fixture(scope="module")
def running(nursery, tmp_path_factory):
    """A server on SQLite, for all tests of a file."""
    folder = tmp_path_factory.mktemp("service")
    config = write_config(folder)
    with Forked(nursery, config, make_key(config)) as server:
        yield server
