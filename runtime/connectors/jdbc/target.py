"""The target table of a sink in a database server.

The rows of a micro-batch reach the target in two steps. First, tasks write them to a staging table, in transactions of
their own, each under a unique name: a *part*. Then one transaction moves the parts of the successful tasks into the
target, and records the number of the batch. Rows staged by another attempt at a task belong to other parts, which are
never moved. So a replayed batch may be partitioned differently, and readers see whole batches.

Knows neither Spark nor any server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa

from hintplan.plans.declarations.tables import Column

COMMITS = "hintplan_commits"
"""The table that records the last batch of each query that writes to a table."""
STAGE = "hintplan_stage_"
OP, PART = "hintplan_op", "hintplan_part"
UPSERT, DELETE = 0, 1

Row = tuple[Any, ...]


class DatabaseCursor(Protocol):
    """A cursor of a driver, as the Python database API defines it."""

    def execute(self, statement: str, parameters: Sequence[object], /) -> object: ...

    def executemany(self, statement: str, parameters: Sequence[Row], /) -> object: ...

    def fetchone(self) -> Row | None: ...

    def fetchall(self) -> Sequence[Row]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTarget:
    """The table ``name`` of a plan: its options with secrets unresolved, its physical columns, and its primary key."""

    name: str
    options: Mapping[str, str]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"tables.{self.name}"

    def option(self, name: str, default: str) -> str:
        return self.options.get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A staging table in the schema of the target: its ``name``, and its qualified name in SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTable:
    """A target as the server has it: its schema, name, ``columns`` with their types, and ``unique`` indexes.

    ``required`` columns are NOT NULL. ``made`` distinguishes the table from an earlier one of its name, and from itself
    before it was truncated; None if the server does not provide this.
    """

    schema: str
    table: str
    columns: Mapping[str, str]
    required: frozenset[str]
    unique: tuple[frozenset[str], ...]
    made: str | None

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


class TransientError(Exception):
    """A transient error of the server: another attempt may succeed."""


def digest(*parts: str) -> str:
    """Return 16 hexadecimal digits that identify the texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def moments(values: pa.ChunkedArray, *, in_utc: bool) -> list[datetime | None]:
    """Return timestamps as datetimes, in UTC or without time zone."""
    # Via int64, because zoned timestamps of Arrow need a time zone database, which small container images lack.
    datetimes = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).cast(pa.timestamp("us")).to_pylist()
    return [None if value is None else value.replace(tzinfo=UTC) for value in datetimes] if in_utc else datetimes
