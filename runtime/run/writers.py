"""What writes the rows of a streaming query: into its sink, or into each of several (:mod:`runtime.run.multi_sink`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from plans.analysis.streaming_queries import Query, path_to, tops
from plans.connectors.table import drops_rows
from runtime.build.edges import Edges
from runtime.connectors import table as connectors
from runtime.engine.arrow_rows import ROWS
from runtime.engine.row_order import ROW_ORDER
from runtime.engine.rows import Rows
from runtime.engine.shared import branches
from runtime.operator import KIND
from runtime.results import files
from runtime.run.multi_sink import MultiSinkWriter, RowCounts, SinkWriter
from runtime.run.sink_rows import sink_rows

_BYTES_ON_DRIVER = 16 << 20
"""The most of a micro-batch that comes to the driver with it."""


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
        sink, (top, *calcs) = found[name], path_to(edges.plan.by_id, found[name])
        branch = None if as_spark_has_them else above.index(top.id)
        made = sink_rows(frame, sink=name, top=top.id, branch=branch, calcs=calcs, edges=edges)
        write = connectors.micro_batch_writer(
            sink.table,
            edges.plan.tables[sink.table],
            changelog=edges.changelog[name],
            checkpoint=where,
            part=f"/{name}",
        )
        writers.append(SinkWriter(rows=made, write=write))
    several = MultiSinkWriter(writers=tuple(writers), counts=counts, most=_BYTES_ON_DRIVER)
    return frame.writeStream.outputMode("append").foreachBatch(several)


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
