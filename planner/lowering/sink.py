"""Sinks, and the sink materialization, which keeps all rows of a key."""

from __future__ import annotations

from typing import Literal

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.relations import Relation, UnnamedInput
from hintplan.plans import operators as model


def lower_sink(
    builder: Builder,
    name: str,
    table: str,
    relation: Relation,
    materialized: tuple[str, ...],
    *,
    overwrite: Literal["table", "partitions"] | None = None,
) -> None:
    """Add a sink for ``relation``, whose fields have the names of the table's columns.

    The query calls the table ``name``. ``materialized`` are the columns of the sink's key if a state must keep all rows
    by it. ``overwrite`` is the sink's setting.
    """
    source = builder.lower(relation, exact=True)
    feed = source.id
    if materialized:
        states = builder.states(("sinkMaterializeState", UnnamedInput, source))
        keeper = model.SinkMaterialize(id="", inputs=(feed,), key=materialized, state=states, changelog=())
        feed = builder.add(keeper, "materialize", (name,), name)
    sink = model.Sink(id="", inputs=(feed,), table=table, overwrite=overwrite)
    builder.add(sink, "sink", (name,), name)
