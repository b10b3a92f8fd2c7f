"""The sink's operations on a database server: prepare the target, stage rows, and move them in one transaction.

They are the same for all servers (:class:`~hintplan.runtime.connectors.jdbc.target.Server`). Knows no Spark.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.jdbc.target import (
    COMMITS,
    DELETE,
    OP,
    PART,
    STAGE,
    UPSERT,
    Found,
    Passing,
    Row,
    Server,
)

from hintplan.runtime.connectors.jdbc.target import Stage, Target, digest  # isort: skip

Done = TypeVar("Done")


def attempted(target: Target, do: Callable[[], Done]) -> Done:
    """Return the result of ``do``; after a transient error, try again up to ``sink.max-retries`` times.

    As in Flink's sink, each pause is a second longer than the pause before it.
    """
    retries = int(target.option("sink.max-retries", "3"))
    for attempt in range(retries + 1):
        try:
            return do()
        except Passing as error:
            if attempt == retries:
                hint = "is the server up? The batch runs again when the job is started again"
                raise Unavailable(str(error), hint=hint, path=target.path) from None
            time.sleep(attempt + 1)
    raise AssertionError


def checked(server: Server, target: Target) -> Found | None:
    """Return the target as the server has it, or None if it has none; raise RunError if the sink cannot write to it."""
    with server.transaction(target) as cursor:
        return _checked(cursor, server, target)


def _checked(cursor: Any, server: Server, target: Target) -> Found | None:
    existing = server.find(cursor, target)
    if existing is None:
        return None
    for column in target.columns:
        actual = existing.columns.get(column.name)
        if actual is None:
            raise RunError(
                f"table {target.options['table-name']!r} in {server.title} has no column {column.name!r}",
                hint="add it there, or leave it out of CREATE TABLE",
                path=target.path,
            )
        if not server.fits(column, actual):
            raise RunError(
                f"column {column.name!r} is {column.type} here, but {actual} in {server.title}",
                hint="declare it as the database has it, or write to another table",
                path=target.path,
            )
    key = frozenset(target.primary_key)
    if key and (key not in existing.unique or not key <= existing.required):
        raise RunError(
            f"table {target.options['table-name']!r} in {server.title} does not have the primary key "
            f"({', '.join(target.primary_key)})",
            hint="add it there, or a unique index on these columns, which must be NOT NULL; or declare the key it has",
            path=target.path,
        )
    return existing


def prepared(server: Server, target: Target, *, remembers: bool) -> Found:
    """Return the target; create it if it is missing, and the table of commits if the target ``remembers`` batches."""
    with server.transaction(target) as cursor:
        existing = _checked(cursor, server, target)
        if existing is None:
            server.lock(cursor, int(digest(target.options["table-name"]), 16))
            if server.find(cursor, target) is None:
                server.create(cursor, target)
            existing = server.find(cursor, target)
            assert existing is not None
        if remembers and not _tables(cursor, server, existing, COMMITS):
            server.lock(cursor, int(digest(existing.schema, COMMITS), 16))
            cursor.execute(server.create_commits.format(commits=server.named(existing, COMMITS)), ())
    return existing


def _tables(cursor: Any, server: Server, found: Found, start: str, rest: str = "") -> list[str]:
    """Return the tables in the target's schema whose names are ``start``, followed by the LIKE pattern ``rest``."""
    cursor.execute(server.tables, (found.schema, start.replace("_", r"\_") + rest))
    return [name for (name,) in cursor.fetchall()]


def is_empty(server: Server, target: Target, found: Found) -> bool:
    """Return true if the target has no rows."""
    with server.transaction(target) as cursor:
        cursor.execute(f"SELECT 1 FROM {server.named(found, found.table)} LIMIT 1", ())
        return cursor.fetchone() is None


def last_written(server: Server, target: Target, found: Found, writer: str) -> int:
    """Return the last batch of ``writer`` that the target remembers, or -1 if there is none."""
    with server.transaction(target) as cursor:
        return _last(cursor, server, found, writer) if _tables(cursor, server, found, COMMITS) else -1


def _last(cursor: Any, server: Server, found: Found, writer: str) -> int:
    query = f"SELECT batch_id FROM {server.named(found, COMMITS)} WHERE sink = %s AND query_id = %s"
    cursor.execute(query, (found.name, writer))
    row = cursor.fetchone()
    return -1 if row is None else int(row[0])


def new_stage(server: Server, target: Target, found: Found, writer: str) -> Stage:
    """Return a new staging table, after dropping the staging tables of dead runs of ``writer``, which may still write.

    A staging table of a dead batch job stays, because its name is unknown.
    """
    start = f"{STAGE}{digest(found.name, writer) if writer else uuid.uuid4().hex[:16]}_"
    name = start + uuid.uuid4().hex[:16]
    stage = Stage(name=name, sql=server.named(found, name))
    with server.transaction(target) as cursor:
        for abandoned in _tables(cursor, server, found, start, "%"):
            cursor.execute(f"DROP TABLE IF EXISTS {server.named(found, abandoned)}", ())
        columns = ", ".join(f"t.{server.quoted(column.name)}" for column in target.columns)
        into = server.named(found, found.table)
        cursor.execute(server.create_stage.format(stage=stage.sql, columns=columns, target=into), ())
    return stage


def drop_stage(server: Server, target: Target, stage: Stage) -> None:
    """Drop a staging table; after a transient error, the next batch drops it."""
    try:
        with server.transaction(target) as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {stage.sql}", ())
    except Passing:
        pass


def stage_rows(server: Server, target: Target, stage: Stage, op: int, names: Sequence[str], rows: Sequence[Row]) -> str:
    """Stage ``rows`` with the columns ``names``, and return their part; raise RunError if the server refuses them."""

    def load() -> str:
        # An attempt that lost its connection may have staged the rows, so each attempt has a part of its own.
        part = uuid.uuid4().hex
        with server.transaction(target) as cursor:
            server.load(cursor, stage, (*names, OP, PART), [(*row, op, part) for row in rows])
        return part

    return attempted(target, load)


def move(
    server: Server,
    target: Target,
    found: Found,
    stage: Stage,
    parts: Sequence[str],
    rows: int,
    commit: tuple[str, int] | None,
) -> None:
    """Move the ``rows`` of ``parts`` into the target, in one transaction.

    ``commit`` is the writer and the number of the batch, which the target records. Without a key, a batch that the
    target already has is skipped.
    """
    appended = commit if not target.primary_key else None
    with server.transaction(target) as cursor:
        server.lock(cursor, int(digest(found.name, "" if appended is None else appended[0]), 16))
        if appended is not None and not is_next(server, target, _last(cursor, server, found, appended[0]), appended[1]):
            return
        if parts:
            _move(cursor, server, target, found, stage, parts, rows)
        if commit is not None:
            cursor.execute(server.remember.format(commits=server.named(found, COMMITS)), (found.name, *commit))


def _move(
    cursor: Any, server: Server, target: Target, found: Found, stage: Stage, parts: Sequence[str], rows: int
) -> None:
    among = f"s.{PART} {server.among}"
    cursor.execute(f"SELECT COUNT(*) FROM {stage.sql} AS s WHERE {among}", (list(parts),))
    remaining = int(cursor.fetchone()[0])
    if remaining != rows:  # after a crash, a server empties unlogged tables
        raise Unavailable(
            f"{server.title} has lost rows that were staged: {remaining} of {rows} are left, and none was moved",
            hint="was the server restarted? The batch runs again when the job is started again",
            path=target.path,
        )
    into = server.named(found, found.table)
    columns = [server.quoted(column.name) for column in target.columns]
    keys = [server.quoted(name) for name in target.primary_key]
    if keys:
        same_key = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        delete = server.delete.format(target=into, stage=stage.sql)
        cursor.execute(f"{delete} {same_key} AND s.{OP} = {DELETE} AND {among}", (list(parts),))
    selected = ", ".join(f"s.{name}" for name in columns)
    insert = f"INSERT INTO {into} ({', '.join(columns)}) SELECT {selected} FROM {stage.sql} AS s"
    upsert = f" {server.upsert(keys, [name for name in columns if name not in keys])}" if keys else ""
    cursor.execute(f"{insert} WHERE s.{OP} = {UPSERT} AND {among}{upsert}", (list(parts),))


def is_next(server: Server, target: Target, done: int, batch: int) -> bool:
    """Return true if ``batch`` is newer than ``done``; raise RunError if the target is ahead of the query."""
    if done > batch:
        raise RunError(
            f"table {target.options['table-name']!r} in {server.title} has batch {done} of this query, which is at "
            f"batch {batch}",
            hint="its checkpoint is older than the table: restore the checkpoint that wrote it, or start both anew",
            path=target.path,
        )
    return done < batch
