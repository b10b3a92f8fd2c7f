"""The servers that sinks of jdbc write to, as the tests of lookups start them, and an empty database in each."""

from __future__ import annotations

import pytest

from tests.connectors.servers.databases import Database, PostgresDatabase
from tests.lookup_sources.conftest import postgres

__all__ = ["postgres"]


@pytest.fixture(params=["postgres"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A server with a database without tables."""
    found = PostgresDatabase(request.getfixturevalue("postgres"))
    found.clear()
    return found
