"""Checks that the batches of a sink belong to the checkpoint of the run.

Spark's file sink, and a jdbc sink without a key, skip a batch number that they have already written, because it is a
replay. This is correct only for the checkpoint that wrote the batch. A new checkpoint, or an older copy or snapshot,
starts with numbers that the sink has already written, and the rows of its batches would be lost. This module reads the
batches of a sink from its table, and starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.record import CheckpointRecord, recorded_plan
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.connectors.table import sink_directory, sink_place, writes_files
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError, Unavailable
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.listing import files_in
from hintplan.runtime.checkpoint.parts import last_batches
from hintplan.runtime.checkpoint.sink_marks import place_digest, read_marks
from hintplan.runtime.connectors.connector import missing_batches
from hintplan.runtime.connectors.table import counts_every_batch, last_sink_batch, missing_from_sink

_CONSENT = "--allow-older-sink continues without these rows"


def refuse_other_batches(
    plan: Plan,
    queries: Sequence[Query],
    checkpoint: CheckpointFiles,
    recorded: CheckpointRecord | None,
    spark: SparkSession,
    *,
    allow_older: bool = False,
) -> None:
    """Raise RunError if a sink has batches that ``checkpoint``, whose record is ``recorded``, has not begun.

    Also raise it if a sink has lost ended batches, according to its own count or to its mark in the checkpoint. With
    ``allow_older``, the run continues without the lost batches.
    """
    written = recorded_plan(recorded) if recorded is not None else None
    before = {query.id: query for query in recorded.queries} if recorded is not None else {}
    places: dict[str, str] = {}
    tables = {sink.id: sink.table for sink in plan.sinks}
    for query in queries:
        logs = before[query.id].logs if query.id in before else query.id
        began, ended = last_batches(checkpoint, logs)
        marks = {} if allow_older else read_marks(checkpoint, query.id, ended)
        old = before.get(query.id)
        tables_before = {} if old is None else dict(zip(old.called, old.sinks, strict=True))
        for sink, name in zip(query.sinks, query.called, strict=True):
            table_name = tables[sink]
            table = plan.tables[table_name]
            if writes_files(table):
                other = places.setdefault(sink_directory(table), sink)
                if other != sink:
                    raise RunError(
                        f"{other} and {sink} would write files to the same directory, {sink_place(table)!r}: of "
                        "two batches with the same number one would be taken for written, and its rows lost",
                        hint="give them a directory each, or write both with one INSERT of a UNION ALL",
                        path=f"tables.{table_name}.options.path",
                    )
            writer = partial(_writer, query, name, f"{logs}/metadata", checkpoint)
            mark = marks.get(name)
            if mark is not None and mark.place != place_digest(table):
                mark = None
            try:
                had = last_sink_batch(table, writer, partial(files_in, spark))
                lacking = None if mark is None else missing_from_sink(spark, table, writer, mark.had)
            except RunError as error:
                (diagnostic,) = error.diagnostics
                where, kind = f"tables.{table_name}", Unavailable if isinstance(error, Unavailable) else RunError
                raise kind(f"table {table_name}: {diagnostic.message}", hint=diagnostic.hint, path=where) from error
            agreed = allow_older and not writes_files(table)  # a directory with a missing batch is unreadable
            last = ended if mark is None else mark.batch
            if (
                had < ended
                and not agreed
                and counts_every_batch(table)
                and _is_where_it_was(written, tables_before.get(name), table)
            ):
                last, lacking = ended, missing_batches(had, ended)
            if lacking is not None:
                raise RunError(
                    f"table {table_name}: this checkpoint has written batches up to {last} to {sink_place(table)!r}, "
                    f"which {lacking}: their rows are lost, and no run would write them again",
                    hint="restore the rows, or continue with a checkpoint of the same age, such as a snapshot; "
                    + ("or write to another directory from a new one" if writes_files(table) else _CONSENT),
                    path=f"tables.{table_name}",
                )
            ours = had == began and _is_written_to(old, table)
            if had <= ended or ours:
                continue
            where = sink_place(table)
            reached = f"ends with batch {began}" if began >= 0 else "has none yet"
            raise RunError(
                f"table {table_name}: a streaming job has written batches up to {had} to {where!r}, and this "
                f"checkpoint {reached}: batches with these numbers would be taken for written, and their rows lost",
                hint=_go_on(writes_files(table) and began >= 0),
                path=f"tables.{table_name}",
            )


def _is_where_it_was(written: Plan | None, sink: str | None, table: Table) -> bool:
    """Return whether the last plan on the checkpoint wrote ``sink`` to the same place as now."""
    if written is None or sink is None:
        return False
    tables = {old_sink.id: written.tables[old_sink.table] for old_sink in written.sinks}
    return sink in tables and tables[sink].options == table.options


def _go_on(stays: bool) -> str:
    """Return a hint for the user; ``stays`` is true if the query must keep writing to its directory."""
    if stays:
        return (
            "continue with the checkpoint that wrote there last, or with a newer snapshot of it; or restore the "
            "directory from a copy of the same time as this checkpoint"
        )
    return (
        "continue with the checkpoint that wrote there, or give the table another place; to rewrite everything, "
        "first remove the existing rows"
    )


def _is_written_to(before: QueryRecord | None, table: Table) -> bool:
    """Return whether the query has written to the table's place, where its last batch may exist without a commit."""
    if not writes_files(table):
        return True
    return before is not None and sink_directory(table) in dict(before.files).values()


def _writer(query: Query, sink: str, path: str, checkpoint: CheckpointFiles) -> str | None:
    """Return the identity of the query for ``sink``, from Spark's query id; None if its checkpoint is new."""
    metadata = checkpoint.read([path]).get(path)
    if metadata is None:
        return None
    return str(json.loads(metadata)["id"]) + query.part_called(sink)
