"""Spark's writers of streaming queries, for one sink or for several (:mod:`hintplan.runtime.run.multi_sink`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from hintplan.plans.analysis.streaming_queries import Query, path_to, tops
from hintplan.plans.connectors.table import drops_rows
from hintplan.plans.operators import Operator, Sink
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.stream import apply_operators
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.connector import Mark
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import ROWS, EdgeRows, Step
from hintplan.runtime.engine.shared import Branch, branches
from hintplan.runtime.operator import KIND
from hintplan.runtime.results import files
from hintplan.runtime.run.marking import SinkMarks
from hintplan.runtime.run.multi_sink import MultiSinkWriter, RowCounts, SinkWriter
from hintplan.runtime.run.sink_rows import sink_rows
from hintplan.runtime.spark.names import shown_as

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_BYTES_ON_DRIVER = 16 << 20
"""The maximum number of bytes of a micro-batch that are collected to the driver."""


def query_writer(
    query: Query,
    edges: Edges,
    rows: Mapping[str, EdgeRows],
    where: str,
    *,
    results: str | None,
    counts: RowCounts,
    marks: SinkMarks | None,
) -> DataStreamWriter:
    """Return Spark's writer of a query, configured except for its trigger, and not started; its logs are at ``where``.

    Spark's pages show the query and its jobs under the names of the plan and of the query. With ``results``, the rows
    of a single sink are kept in that directory. A multi-sink query writes the row count of each sink to ``counts``.
    ``marks`` records the versions of the sinks.
    """
    if query.is_shared:
        writer = _multi_sink_writer(query, edges, rows, where, counts, marks)
    else:
        writer = _single_sink_writer(query, edges, rows, where, results, marks)
    return writer.queryName(shown_as(edges.plan.name, query.id)).option("checkpointLocation", where)


def _multi_sink_writer(
    query: Query, edges: Edges, rows: Mapping[str, EdgeRows], where: str, counts: RowCounts, marks: SinkMarks | None
) -> DataStreamWriter:
    above = tops(edges.plan, query)
    sinks = [sink for sink in edges.plan.sinks if sink.id in query.sinks]
    paths = {sink.id: path_to(edges.plan.by_id, sink) for sink in sinks}
    counted = {sink.id: steps for sink in sinks if (steps := _counted(sink, paths[sink.id], rows, edges)) is not None}
    written = [sink for sink in sinks if sink.id not in counted]
    as_spark_has_them = len(above) == 1 and rows[above[0]].in_arrow is None
    if as_spark_has_them:
        frame = rows[above[0]].frame
    else:
        kept = {paths[sink.id][0].id for sink in written}
        frame = branches(
            [
                Branch(
                    top=top,
                    rows=rows[top].in_arrow or rows[top].frame,
                    schema=edges.schema(top),
                    kept=top in kept,
                    counted={name: steps for name, steps in counted.items() if paths[name][0].id == top},
                )
                for top in above
            ]
        )
    writers = []
    for sink in written:
        top, *calcs = *paths[sink.id], sink
        branch = None if as_spark_has_them else above.index(top.id)
        made = sink_rows(frame, sink=sink.id, top=top.id, branch=branch, calcs=calcs, edges=edges)
        write = connectors.micro_batch_writer(
            sink.table,
            edges.plan.tables[sink.table],
            changelog=edges.changelog[sink.id],
            checkpoint=where,
            part=query.part_called(query.name_of(sink.id)),
            mark=_mark(marks, query, sink, edges),
            objects=edges.objects,
        )
        writers.append(SinkWriter(rows=made, write=write))
    several = MultiSinkWriter(writers=tuple(writers), counted=tuple(counted), counts=counts, most=_BYTES_ON_DRIVER)
    return written_by(several, frame, where)


def _counted(
    sink: Sink, path: Sequence[Operator], rows: Mapping[str, EdgeRows], edges: Edges
) -> tuple[Step, ...] | None:
    """Return the steps that compute the rows of ``sink`` from the rows of its top, if the sink drops them.

    None if the sink does not drop its rows, or if Arrow cannot compute them.
    """
    top, *calcs = *path, sink
    top_rows = rows[top.id]
    if top_rows.in_arrow is None or not drops_rows(edges.plan.tables[sink.table]):
        return None
    made = apply_operators(calcs, top_rows, edges=edges).in_arrow
    return None if made is None else made.transformations[len(top_rows.in_arrow.transformations) :]


def _mark(marks: SinkMarks | None, query: Query, sink: Sink, edges: Edges) -> Mark | None:
    return None if marks is None else marks.of(query.name_of(sink.id), edges.plan.tables[sink.table])


def _single_sink_writer(
    query: Query,
    edges: Edges,
    rows: Mapping[str, EdgeRows],
    where: str,
    results: str | None,
    marks: SinkMarks | None,
) -> DataStreamWriter:
    sink = edges.plan.operator(query.sinks[0])
    assert isinstance(sink, Sink)
    table, rows_in, mark = edges.plan.tables[sink.table], rows[sink.id], _mark(marks, query, sink, edges)
    if results is None and rows_in.in_arrow is not None and drops_rows(table):
        counted = rows_in.in_arrow.counted(sink.id).observe(sink.id, F.sum(ROWS).alias("rows_out"))
        return connectors.stream_writer(counted, sink.table, table, changelog=False, checkpoint=where)
    if results is None and rows_in.in_arrow is not None:
        in_arrow = connectors.arrow_writer(rows_in.in_arrow, sink.table, table, checkpoint=where, mark=mark)
        if in_arrow is not None:
            made, writer = in_arrow
            rows_out = F.coalesce(F.sum(ROWS), F.lit(0)) if ROWS in made.schema.names else F.count(F.lit(1))
            return writer(made.in_spark(sink.id).observe(sink.id, rows_out.alias("rows_out")))
    frame = rows_in.frame.drop(*ROW_ORDER.names)
    counted = frame.observe(sink.id, F.count(F.lit(1)).alias("rows_out"))
    if results is not None:
        return files.kept_rows_writer(counted, results, where)
    changelog = KIND in frame.columns
    return connectors.stream_writer(
        counted, sink.table, table, changelog=changelog, checkpoint=where, mark=mark, objects=edges.objects
    )
