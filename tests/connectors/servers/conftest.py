"""The servers that sinks of jdbc write to, as the tests of lookups start them, and an empty database in each."""

from __future__ import annotations

import pytest

from tests.connectors.lookup_sources.conftest import mariadb, postgres
from tests.connectors.servers.databases import Database, MariadbDatabase, PostgresDatabase

__all__ = ["mariadb", "postgres"]


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A server with a database without tables."""
    server = request.getfixturevalue(request.param)
    found: Database = PostgresDatabase(server) if request.param == "postgres" else MariadbDatabase(server)
    found.clear()
    return found
