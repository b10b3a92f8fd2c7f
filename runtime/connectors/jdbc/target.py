"""A table of a database server as the target of a sink, and what such a server is to the sink that writes to it.

The rows of a micro-batch come to the server in two steps. Tasks put them into a staging table, in transactions of their
own, each under a name that nobody else uses: a *part*. Then one transaction moves the parts of the tasks that ended
well into the target, and remembers the number of the batch. What another attempt at a task has staged, or still stages,
is in no part that is moved; so it does not matter how a replayed batch is divided, and readers see whole batches.

Knows neither Spark nor a server: those are :class:`Server`, of which each has a module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.tables import Column

COMMITS = "hintplan_commits"
"""The table that remembers the last batch of each query that writes to a table."""
STAGE = "hintplan_stage_"
OP, PART = "hintplan_op", "hintplan_part"
UPSERT, DELETE = 0, 1

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
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
    """A staging table: its ``name`` beside the target, and its name in SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A target as the server has it: its name and the schema's, in SQL too, ``columns`` with the types it has,
    which of them must have a value, and the column names of each unique index.

    ``made`` tells the table from one that was there before under its name, or from itself before it was emptied as a
    whole; None if the server says nothing of that.
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


class Passing(Exception):
    """The server did not do it, for a reason that may be over at the next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A kind of database server, as functions over a cursor, in which ``%`` stands twice in names.

    ``find`` raises RunError for what no sink can write to. ``transaction`` gives a cursor on a connection of its own:
    commits at the end, or rolls back. It raises what failed as :class:`Passing` or as a RunError.
    """

    title: str
    transaction: Callable[[Target], AbstractContextManager[Any]]
    quoted: Callable[[str], str]
    find: Callable[[Any, Target], Found | None]
    create: Callable[[Any, Target], None]
    fits: Callable[[Column, str], bool]
    storage: Callable[[pa.ChunkedArray, Column, Target], list[Any]]
    create_commits: str
    remember: str
    create_stage: str
    tables: str
    load: Callable[[Any, Stage, Sequence[str], Sequence[Row]], None]
    among: str
    lock: Callable[[Any, int], None]
    upsert: Callable[[Sequence[str], Sequence[str]], str]
    delete: str

    def named(self, found: Found, table: str) -> str:
        """The name in SQL of a ``table`` in the schema of the target."""
        return f"{self.quoted(found.schema)}.{self.quoted(table)}"


def digest(*parts: str) -> str:
    """16 hexadecimal digits that say which texts these are."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def moments(values: pa.ChunkedArray, *, in_utc: bool) -> list[datetime | None]:
    """Timestamps of Python's, of UTC or of no zone."""
    # By way of int64, as zoned timestamps of Arrow need a time zone database, which small images lack.
    found = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).cast(pa.timestamp("us")).to_pylist()
    return [None if value is None else value.replace(tzinfo=UTC) for value in found] if in_utc else found
