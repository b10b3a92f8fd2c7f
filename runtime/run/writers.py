"""What writes the rows of a streaming query: into its sink, or into each of several (:mod:`runtime.run.multi_sink`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import functions as F

from plans.analysis.streaming_queries import Query, path_to
from plans.connectors.table import drops_rows
from plans.operators import Operator
from runtime.build.edges import Edges
from runtime.build.stream import apply_operators
from runtime.connectors import table as connectors
from runtime.engine.arrow_rows import ROWS
from runtime.engine.row_order import ROW_ORDER
from runtime.engine.rows import Rows
from runtime.operator import KIND
from runtime.results import files
from runtime.run.multi_sink import MultiSinkWriter, RowCounts, SinkWriter


def query_writer(
    query: Query, edges: Edges, rows: Mapping[str, Rows], checkpoint: str, results: str | None, counts: RowCounts
) -> Any:
    """Spark's writer of a query, configured but for its trigger, and not started; ``checkpoint`` is that of the run.

    With ``results`` the rows of a single sink are kept in that directory. How many rows each of several sinks got goes
    to ``counts``.
    """
    where = f"{checkpoint.rstrip('/')}/{query.id}"
    if query.is_shared:
        writer = _multi_sink_writer(query, edges, rows, where, counts)
    else:
        writer = _single_sink_writer(query, edges, rows, where, results)
    return writer.queryName(query.id).option("checkpointLocation", where)


def _multi_sink_writer(query: Query, edges: Edges, rows: Mapping[str, Rows], where: str, counts: RowCounts) -> Any:
    operators = edges.plan.by_id
    found = {sink.id: sink for sink in edges.plan.sinks}
    # The query keeps the id it was begun with, whatever the operator above its sinks is called now.
    frame = rows[path_to(operators, found[query.sinks[0]])[0].id].frame
    writers = []
    for name in query.sinks:
        sink = found[name]
        table = edges.plan.tables[sink.table]
        write = connectors.micro_batch_writer(
            sink.table, table, changelog=KIND in frame.columns, checkpoint=where, part=f"/{sink.id}"
        )
        calcs = path_to(operators, sink)[1:]
        writers.append(SinkWriter(sink=sink.id, select=partial(_rows_of_sink, calcs, edges=edges), write=write))
    several = MultiSinkWriter(writers=tuple(writers), counts=counts)
    return frame.writeStream.outputMode("append").foreachBatch(several)


def _rows_of_sink(calcs: Sequence[Operator], rows: Any, *, edges: Edges) -> Any:
    return apply_operators(calcs, rows, edges=edges).drop(*ROW_ORDER.names)


def _single_sink_writer(query: Query, edges: Edges, rows: Mapping[str, Rows], where: str, results: str | None) -> Any:
    (sink,) = (sink for sink in edges.plan.sinks if sink.id == query.id)
    table, found = edges.plan.tables[sink.table], rows[sink.id]
    if results is None and found.in_arrow is not None and drops_rows(table):
        counted = found.in_arrow.counted().observe(sink.id, F.sum(ROWS).alias("rows_out"))
        return connectors.writer(counted, sink.table, table, changelog=False, checkpoint=where)
    frame = found.frame.drop(*ROW_ORDER.names)
    counted = frame.observe(sink.id, F.count(F.lit(1)).alias("rows_out"))
    if results is not None:
        return files.writer(counted, results)
    return connectors.writer(counted, sink.table, table, changelog=KIND in frame.columns, checkpoint=where)
