"""The sink's operations on a database server: prepare the target, stage rows, and move them in one transaction.

They are the same for all servers; the dialect has the statements. Knows no Spark.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.jdbc.dialect import ServerDialect
from hintplan.runtime.connectors.jdbc.target import (
    COMMITS,
    DELETE,
    OP,
    PART,
    STAGE,
    UPSERT,
    DatabaseCursor,
    DatabaseTarget,
    Row,
    ServerTable,
    Stage,
    TransientError,
    digest,
)

Done = TypeVar("Done")


def with_retries(target: DatabaseTarget, do: Callable[[], Done]) -> Done:
    """Return the result of ``do``; after a transient error, try again up to ``sink.max-retries`` times.

    As in Flink's sink, each pause is a second longer than the pause before it.
    """
    retries = int(target.option("sink.max-retries", "3"))
    for attempt in range(retries + 1):
        try:
            return do()
        except TransientError as error:
            if attempt == retries:
                hint = "is the server up? The batch runs again when the job is started again"
                raise Unavailable(str(error), hint=hint, path=target.path) from None
            time.sleep(attempt + 1)
    raise AssertionError


def existing_target(dialect: ServerDialect, target: DatabaseTarget) -> ServerTable | None:
    """Return the target as the server has it, or None if it has none; raise RunError if the sink cannot write to it."""
    with dialect.transaction(target) as cursor:
        return _checked(cursor, dialect, target)


def _checked(cursor: DatabaseCursor, dialect: ServerDialect, target: DatabaseTarget) -> ServerTable | None:
    existing = dialect.find(cursor, target)
    if existing is None:
        return None
    for column in target.columns:
        actual = existing.columns.get(column.name)
        if actual is None:
            raise RunError(
                f"table {target.options['table-name']!r} in {dialect.title} has no column {column.name!r}",
                hint="add it there, or remove it from CREATE TABLE",
                path=target.path,
            )
        if not dialect.fits(column, actual):
            raise RunError(
                f"column {column.name!r} is {column.type} here, but {actual} in {dialect.title}",
                hint="declare it as the database has it, or write to another table",
                path=target.path,
            )
    key = frozenset(target.primary_key)
    if key and (key not in existing.unique or not key <= existing.required):
        raise RunError(
            f"table {target.options['table-name']!r} in {dialect.title} does not have the primary key "
            f"({', '.join(target.primary_key)})",
            hint="add it there, or a unique index on these columns, which must be NOT NULL; or declare the key it has",
            path=target.path,
        )
    return existing


def prepare_target(dialect: ServerDialect, target: DatabaseTarget, *, remembers: bool) -> ServerTable:
    """Return the target; create it if it is missing, and the table of commits if the target ``remembers`` batches."""
    with dialect.transaction(target) as cursor:
        existing = _checked(cursor, dialect, target)
        if existing is None:
            dialect.lock(cursor, int(digest(target.options["table-name"]), 16))
            if dialect.find(cursor, target) is None:
                dialect.create(cursor, target)
            existing = dialect.find(cursor, target)
            assert existing is not None
        if remembers and not _tables(cursor, dialect, existing, COMMITS):
            dialect.lock(cursor, int(digest(existing.schema, COMMITS), 16))
            cursor.execute(dialect.create_commits.format(commits=dialect.qualified(existing, COMMITS)), ())
    return existing


def _tables(
    cursor: DatabaseCursor, dialect: ServerDialect, existing: ServerTable, start: str, rest: str = ""
) -> list[str]:
    """Return the tables in the target's schema whose names are ``start``, followed by the LIKE pattern ``rest``."""
    cursor.execute(dialect.tables, (existing.schema, start.replace("_", r"\_") + rest))
    return [name for (name,) in cursor.fetchall()]


def is_empty(dialect: ServerDialect, target: DatabaseTarget, existing: ServerTable) -> bool:
    """Return true if the target has no rows."""
    with dialect.transaction(target) as cursor:
        cursor.execute(f"SELECT 1 FROM {dialect.qualified(existing, existing.table)} LIMIT 1", ())
        return cursor.fetchone() is None


def last_remembered(dialect: ServerDialect, target: DatabaseTarget, existing: ServerTable, writer: str) -> int:
    """Return the last batch of ``writer`` that the target remembers, or -1 if there is none."""
    with dialect.transaction(target) as cursor:
        return _last(cursor, dialect, existing, writer) if _tables(cursor, dialect, existing, COMMITS) else -1


def _last(cursor: DatabaseCursor, dialect: ServerDialect, existing: ServerTable, writer: str) -> int:
    query = f"SELECT batch_id FROM {dialect.qualified(existing, COMMITS)} WHERE sink = %s AND query_id = %s"
    cursor.execute(query, (existing.name, writer))
    row = cursor.fetchone()
    return -1 if row is None else int(row[0])


def new_stage(dialect: ServerDialect, target: DatabaseTarget, existing: ServerTable, writer: str) -> Stage:
    """Return a new staging table, after dropping the staging tables of dead runs of ``writer``, which may still write.

    A staging table of a dead batch job stays, because its name is unknown.
    """
    start = f"{STAGE}{digest(existing.name, writer) if writer else uuid.uuid4().hex[:16]}_"
    name = start + uuid.uuid4().hex[:16]
    stage = Stage(name=name, sql=dialect.qualified(existing, name))
    with dialect.transaction(target) as cursor:
        for abandoned in _tables(cursor, dialect, existing, start, "%"):
            cursor.execute(f"DROP TABLE IF EXISTS {dialect.qualified(existing, abandoned)}", ())
        columns = ", ".join(f"t.{dialect.quote(column.name)}" for column in target.columns)
        into = dialect.qualified(existing, existing.table)
        cursor.execute(dialect.create_stage.format(stage=stage.sql, columns=columns, target=into), ())
    return stage


def drop_stage(dialect: ServerDialect, target: DatabaseTarget, stage: Stage) -> None:
    """Drop a staging table; after a transient error, the next batch drops it."""
    try:
        with dialect.transaction(target) as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {stage.sql}", ())
    except TransientError:
        pass


def stage_rows(
    dialect: ServerDialect, target: DatabaseTarget, stage: Stage, op: int, names: Sequence[str], rows: Sequence[Row]
) -> str:
    """Stage ``rows`` with the columns ``names``, and return their part; raise RunError if the server refuses them."""

    def load() -> str:
        # An attempt that lost its connection may have staged the rows, so each attempt has a part of its own.
        part = uuid.uuid4().hex
        with dialect.transaction(target) as cursor:
            dialect.load(cursor, stage, (*names, OP, PART), [(*row, op, part) for row in rows])
        return part

    return with_retries(target, load)


def move_staged(
    dialect: ServerDialect,
    target: DatabaseTarget,
    existing: ServerTable,
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
    with dialect.transaction(target) as cursor:
        dialect.lock(cursor, int(digest(existing.name, "" if appended is None else appended[0]), 16))
        if appended is not None and not is_next_batch(
            dialect, target, _last(cursor, dialect, existing, appended[0]), appended[1]
        ):
            return
        if parts:
            _move(cursor, dialect, target, existing, stage, parts, rows)
        if commit is not None:
            cursor.execute(
                dialect.remember.format(commits=dialect.qualified(existing, COMMITS)), (existing.name, *commit)
            )


def _move(
    cursor: DatabaseCursor,
    dialect: ServerDialect,
    target: DatabaseTarget,
    existing: ServerTable,
    stage: Stage,
    parts: Sequence[str],
    rows: int,
) -> None:
    among = f"s.{PART} {dialect.among}"
    cursor.execute(f"SELECT COUNT(*) FROM {stage.sql} AS s WHERE {among}", (list(parts),))
    ((remaining,),) = cursor.fetchall()
    if remaining != rows:  # after a crash, a server empties unlogged tables
        raise Unavailable(
            f"{dialect.title} has lost rows that were staged: {remaining} of {rows} are left, and none was moved",
            hint="was the server restarted? The batch runs again when the job is started again",
            path=target.path,
        )
    into = dialect.qualified(existing, existing.table)
    columns = [dialect.quote(column.name) for column in target.columns]
    keys = [dialect.quote(name) for name in target.primary_key]
    if keys:
        same_key = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        delete = dialect.delete.format(target=into, stage=stage.sql)
        cursor.execute(f"{delete} {same_key} AND s.{OP} = {DELETE} AND {among}", (list(parts),))
    selected = ", ".join(f"s.{name}" for name in columns)
    insert = f"INSERT INTO {into} ({', '.join(columns)}) SELECT {selected} FROM {stage.sql} AS s"
    upsert = f" {dialect.upsert(keys, [name for name in columns if name not in keys])}" if keys else ""
    cursor.execute(f"{insert} WHERE s.{OP} = {UPSERT} AND {among}{upsert}", (list(parts),))


def is_next_batch(dialect: ServerDialect, target: DatabaseTarget, done: int, batch: int) -> bool:
    """Return true if ``batch`` is newer than ``done``; raise RunError if the target is ahead of the query."""
    if done > batch:
        raise RunError(
            f"table {target.options['table-name']!r} in {dialect.title} has batch {done} of this query, which is at "
            f"batch {batch}",
            hint="its checkpoint is older than the table: restore the checkpoint that wrote it, or start both from "
            "scratch",
            path=target.path,
        )
    return done < batch
