"""The SQL dialects of databases. Each database has a subclass, which needs no driver until it connects.

The statements for a server move the rows of a micro-batch in two steps, as :mod:`.target` describes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.jdbc.target import DatabaseCursor, DatabaseTarget, Row, ServerTable, Stage
from hintplan.runtime.lookup.source import LookupSource


class Dialect(ABC):
    """The names, types and statements of a database, and its lookup source."""

    title: ClassVar[str]
    lookup: ClassVar[LookupSource]
    nullable: ClassVar[str] = ""
    """The clause that lets a column of a new table be NULL."""

    @abstractmethod
    def quote(self, name: str) -> str:
        """Return ``name`` as a quoted identifier."""

    @abstractmethod
    def column_type(self, column: Column) -> str:
        """Return the type of a column in a new table."""

    def definitions(self, columns: Sequence[Column], primary_key: Sequence[str]) -> str:
        """Return the columns and the primary key of a new table, as they stand in CREATE TABLE."""
        parts = []
        for column in columns:
            required = not parse_type(column.type).nullable or column.name in primary_key
            parts.append(
                f"{self.quote(column.name)} {self.column_type(column)}{' NOT NULL' if required else self.nullable}"
            )
        if primary_key:
            parts.append(f"PRIMARY KEY ({', '.join(map(self.quote, primary_key))})")
        return ", ".join(parts)

    def upsert(self, keys: Sequence[str], values: Sequence[str]) -> str:
        """Return the clause that makes an INSERT replace rows with equal keys; all names are quoted."""
        update = ", ".join(f"{name} = excluded.{name}" for name in values)
        return f"ON CONFLICT ({', '.join(keys)}) DO {f'UPDATE SET {update}' if update else 'NOTHING'}"


class ServerDialect(Dialect):
    """The dialect of a database server, whose statements are executed with parameters. In names, ``%`` is doubled."""

    create_commits: ClassVar[str]
    """Creates the table ``{commits}`` unless it exists."""
    remember: ClassVar[str]
    """Records a table, a query and a batch in ``{commits}``."""
    create_stage: ClassVar[str]
    """Creates the staging table ``{stage}`` with the ``{columns}`` of ``{target}``."""
    tables: ClassVar[str]
    """Selects the names of the tables of a schema that match a LIKE pattern."""
    among: ClassVar[str]
    """Compares a value with a list."""
    delete: ClassVar[str]
    """Deletes the rows of ``{target}``, as ``t``, that match rows of ``{stage}``, as ``s``; a condition follows."""

    @abstractmethod
    def transaction(self, target: DatabaseTarget) -> AbstractContextManager[DatabaseCursor]:
        """Open a connection, yield a cursor, and commit or roll back at the end.

        Raises :class:`TransientError` for an error that another attempt may not meet, and RunError for any other.
        """

    @abstractmethod
    def find(self, cursor: DatabaseCursor, target: DatabaseTarget) -> ServerTable | None:
        """Return the target as the server has it; RunError for an object that no sink can write to."""

    @abstractmethod
    def create(self, cursor: DatabaseCursor, target: DatabaseTarget) -> None:
        """Create the target."""

    @abstractmethod
    def fits(self, column: Column, actual: str) -> bool:
        """Return true if the server's type ``actual`` holds every value of the column."""

    @abstractmethod
    def storage(self, values: pa.ChunkedArray, column: Column, target: DatabaseTarget) -> Sequence[object]:
        """Return the values as the driver takes them."""

    @abstractmethod
    def load(self, cursor: DatabaseCursor, stage: Stage, names: Sequence[str], rows: Sequence[Row]) -> None:
        """Write ``rows`` with the columns ``names`` to a staging table."""

    @abstractmethod
    def lock(self, cursor: DatabaseCursor, number: int) -> None:
        """Wait for the lock with this number, and hold it until the transaction ends."""

    def qualified(self, existing: ServerTable, table: str) -> str:
        """Return the qualified SQL name of a ``table`` in the schema of the target."""
        return f"{self.quote(existing.schema)}.{self.quote(table)}"
