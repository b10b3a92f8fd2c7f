"""Servers for the tests of lookup sources: each is started by the first test that asks, and stopped at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.connectors.lookup_sources.servers import (
    PASSWORD,
    Mariadb,
    Postgres,
    Redis,
    mariadb_server,
    postgres_server,
    redis_server,
)

# Python workers have the environment in which Spark was started, and any test may start it.
os.environ.setdefault("HINTPLAN_TEST_PASSWORD", PASSWORD)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of the tests' own."""
    with postgres_server() as server:
        if server is None:
            pytest.skip("PostgreSQL is not installed; on Debian: apt-get install -y postgresql")
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    """A Redis server of the tests' own."""
    with redis_server() as server:
        if server is None:
            pytest.skip("Redis is not installed; on Debian: apt-get install -y redis-server")
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    """A MariaDB server of the tests' own."""
    with mariadb_server() as server:
        if server is None:
            pytest.skip("MariaDB is not installed; on Debian: apt-get install -y mariadb-{server,client}-core")
        yield server
