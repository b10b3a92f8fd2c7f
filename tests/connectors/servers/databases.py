"""What tests of sinks ask of a database server, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tests.connectors.lookup_sources.servers import Mariadb, Postgres


class Database(Protocol):
    """A database of the tests' own on a server."""

    title: str

    @property
    def options(self) -> dict[str, str]:
        """The options of a table in it, but for its name."""
        ...

    def execute(self, *statements: str) -> None: ...

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...

    def tables(self) -> list[str]: ...

    def clear(self) -> None: ...

    def restart(self) -> None:
        """End the server without letting it write anything, and start it again."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresDatabase:
    server: Postgres
    title = "PostgreSQL"

    @property
    def options(self) -> dict[str, str]:
        return {
            "connector": "jdbc", "url": self.server.url, "username": "hintplan",
            "password": "${env:HINTPLAN_TEST_PASSWORD}",
        }  # fmt: skip

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'")
            return connection.execute(query).fetchall()

    def tables(self) -> list[str]:
        found = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return [name for (name,) in found]

    def clear(self) -> None:
        self.execute("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")

    def restart(self) -> None:
        self.server.kill()
        self.server.start()


@dataclass(frozen=True, slots=True)
class MariadbDatabase:
    server: Mariadb
    title = "MySQL"

    @property
    def options(self) -> dict[str, str]:
        return {
            "connector": "jdbc", "url": self.server.url, "username": "hintplan",
            "password": "${env:HINTPLAN_TEST_PASSWORD}",
        }  # fmt: skip

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.server.connection() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def tables(self) -> list[str]:
        return sorted(name for (name,) in self.rows("SHOW TABLES"))

    def clear(self) -> None:
        self.execute("DROP DATABASE shop", "CREATE DATABASE shop")

    def restart(self) -> None:
        self.server.kill()
        self.server.start()
