"""What writes the rows of a streaming query: into its sink, or into each of several (:mod:`runtime.run.multi_sink`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from plans.analysis.streaming_queries import Query, path_to, tops
from plans.connectors.table import drops_rows
from plans.operators import Operator, Sink
from runtime.build.edges import Edges
from runtime.build.stream import apply_operators
from runtime.connectors import table as connectors
from runtime.engine.arrow_rows import ROWS
from runtime.engine.row_order import ROW_ORDER
from runtime.engine.rows import Rows
from runtime.engine.shared import branches, of_branch
from runtime.operator import KIND
from runtime.results import files
from runtime.run.multi_sink import MultiSinkWriter, RowCounts, SinkWriter


def query_writer(
    query: Query, edges: Edges, rows: Mapping[str, Rows], where: str, *, results: str | None, counts: RowCounts
) -> Any:
    """Spark's writer of a query, configured but for its trigger, and not started; its logs are ``where``.

    With ``results`` the rows of a single sink are kept in that directory. How many rows each of several sinks got goes
    to ``counts``.
    """
    if query.is_shared:
        writer = _multi_sink_writer(query, edges, rows, where, counts)
    else:
        writer = _single_sink_writer(query, edges, rows, where, results)
    return writer.queryName(query.id).option("checkpointLocation", where)


def _multi_sink_writer(query: Query, edges: Edges, rows: Mapping[str, Rows], where: str, counts: RowCounts) -> Any:
    above = tops(edges.plan, query)
    found = {sink.id: sink for sink in edges.plan.sinks}
    as_spark_has_them = len(above) == 1 and rows[above[0]].in_arrow is None
    if as_spark_has_them:
        frame = rows[above[0]].frame
    else:
        frame = branches([(top, rows[top].in_arrow or rows[top].frame, edges.schema(top)) for top in above])
    writers = []
    for name in query.sinks:
        sink = found[name]
        top, *calcs = path_to(edges.plan.by_id, sink)
        branch = None if as_spark_has_them else above.index(top.id)
        select = partial(_rows_of_sink, top=top.id, branch=branch, calcs=calcs, edges=edges)
        _ = select(frame).frame  # what is wrong with it is to be said now
        writers.append(SinkWriter(sink=sink.id, write=_micro_batch_writer(sink, select, edges, where)))
    several = MultiSinkWriter(writers=tuple(writers), counts=counts)
    return frame.writeStream.outputMode("append").foreachBatch(several)


def _rows_of_sink(frame: DataFrame, *, top: str, branch: int | None, calcs: Sequence[Operator], edges: Edges) -> Rows:
    """The rows of a sink in a micro-batch, or in the stream, of its query; those of ``top`` are a branch of them."""
    if branch is None:
        rows = Rows(lambda: frame)
    else:
        found = of_branch(frame, branch, edges.schema(top))
        rows = Rows(partial(found.in_spark, top), found)
    return apply_operators(calcs, rows, edges=edges)


def _micro_batch_writer(
    sink: Sink, select: Callable[[DataFrame], Rows], edges: Edges, where: str
) -> Callable[[DataFrame, int], int]:
    table = edges.plan.tables[sink.table]
    write = connectors.micro_batch_writer(
        sink.table, table, changelog=edges.changelog[sink.id], checkpoint=where, part=f"/{sink.id}"
    )

    def written(frame: DataFrame, batch: int) -> int:
        rows = select(frame)
        if rows.in_arrow is not None and drops_rows(table):
            (counted,) = rows.in_arrow.counted(sink.id).agg(F.sum(ROWS)).collect()
            return int(counted[0] or 0)
        return write(rows.frame.drop(*ROW_ORDER.names), batch)

    return written


def _single_sink_writer(query: Query, edges: Edges, rows: Mapping[str, Rows], where: str, results: str | None) -> Any:
    (sink,) = (sink for sink in edges.plan.sinks if sink.id == query.id)
    table, found = edges.plan.tables[sink.table], rows[sink.id]
    if results is None and found.in_arrow is not None and drops_rows(table):
        counted = found.in_arrow.counted(sink.id).observe(sink.id, F.sum(ROWS).alias("rows_out"))
        return connectors.writer(counted, sink.table, table, changelog=False, checkpoint=where)
    frame = found.frame.drop(*ROW_ORDER.names)
    counted = frame.observe(sink.id, F.count(F.lit(1)).alias("rows_out"))
    if results is not None:
        return files.writer(counted, results)
    return connectors.writer(counted, sink.table, table, changelog=KIND in frame.columns, checkpoint=where)
