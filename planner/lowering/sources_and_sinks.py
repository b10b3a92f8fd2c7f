"""Scans of tables, literal rows, and sinks.

A changelog normalization above a scan converts upserts to complete changes. A sink materialization below a sink keeps
all rows of a key.
"""

from __future__ import annotations

import typing
from dataclasses import replace

from hintplan.planner.expressions.spark_text import to_spark_sql
from hintplan.planner.expressions.typed import Call, Expr, Field, Literal
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, lowered, optional_text, unique_names
from hintplan.planner.relations import LogicalScan, LogicalValues, Relation, StateInput, UnnamedInput
from hintplan.plans import operators as model


def lower_scan(builder: Builder, scan: LogicalScan) -> Lowered:
    """Add the scan, and a changelog normalization above it if its source emits upserts."""
    columns = tuple(f.name for f in scan.fields)
    pushed_filter = optional_text(scan.filter, lowered("", scan.fields, columns).printed())
    operator = model.Scan(id="", table=scan.table, columns=columns, filter=pushed_filter)
    scanned = lowered(builder.add(operator, "scan", (scan.declared,), scan.block), scan.fields, columns)
    return normalized(builder, scan, scanned) if scan.normalized else scanned


def normalized(builder: Builder, scan: LogicalScan, source: Lowered) -> Lowered:
    """Add a changelog normalization of ``source``, which has the rows of ``scan``."""
    operator = model.ChangelogNormalize(
        id="",
        inputs=(source.id,),
        key=scan.normalized,
        state=builder.states(("changelogNormalizeState", StateInput(name=scan.declared), source)),
        changelog=(),
    )
    return replace(source, id=builder.add(operator, "normalize", (scan.declared,), scan.block))


def lower_values(builder: Builder, values: LogicalValues) -> Lowered:
    """Add the rows. The operator converts each value to the type of its column."""
    columns = unique_names(values.fields)
    named_fields = zip(columns, values.fields, strict=True)
    operator = model.Values(
        id="",
        columns=tuple(model.GivenColumn(name=name, type=str(field.type)) for name, field in named_fields),
        rows=tuple(tuple(_text(v, f) for v, f in zip(row, values.fields, strict=True)) for row in values.rows),
    )
    return lowered(builder.add(operator, "values", values.base, values.block), values.fields, columns)


def _text(value: Expr, field: Field) -> str:
    """Return a value as text. The operator converts it to the type of ``field``."""
    if isinstance(value, Literal) and value.text is None:
        return "NULL"
    if isinstance(value, Call) and value.function == "CAST" and value.type == field.type.as_nullable():
        inner = value.args[0]
        value = inner if isinstance(inner, Literal) else value
    return to_spark_sql(value, {})


def lower_sink(
    builder: Builder,
    name: str,
    table: str,
    relation: Relation,
    materialized: tuple[str, ...],
    *,
    overwrite: typing.Literal["table", "partitions"] | None = None,
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
