"""Stores of every kind, and databases to put them in."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from state import Postgres
from tests.unit.state import cluster

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    """The folder of the socket of a PostgreSQL server that is there for this test session."""
    if reason := cluster.why_not():
        pytest.skip(reason)
    with cluster.cluster() as folder:
        yield folder


@pytest.fixture
def new_database(server: Path) -> Callable[[], Postgres]:
    """Makes empty places for a state: schemas, which are made much faster than databases."""

    def make() -> Postgres:
        name = f"state_{next(NUMBERS)}"
        with psycopg.connect(host=str(server), user=cluster.USER, dbname=cluster.DATABASE) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        where = f"host={server}&options=-csearch_path%3D{name}"
        return Postgres(f"postgresql://{cluster.USER}:s3cr3t@/{cluster.DATABASE}?{where}")

    return make


@pytest.fixture
def postgres(new_database: Callable[[], Postgres]) -> Postgres:
    """An empty place for a state on the server."""
    return new_database()
