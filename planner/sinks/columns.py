"""Converts the columns of a query to the types of its sink, as Flink's sinks do.

The planner adds the conversions that Flink adds implicitly:

- numbers to DECIMAL, where too many digits give NULL
- text to VARCHAR, and bytes to VARBINARY, which cuts longer values
- CHAR to CHAR, and BINARY to BINARY
- a TIMESTAMP to its DATE, and timestamps to each other

A note reports a conversion that may lose data, or that depends on the time zone of the session. Any other conversion
needs a CAST in the query. ``table.exec.sink.type-length-enforcer`` decides if text and bytes are cut or padded to the
declared length of their column.

``INSERT INTO table PARTITION (column = value)`` sets partition columns to constants for one INSERT.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context, TableEntry
from hintplan.planner.expressions.casts import castable, flink_cast
from hintplan.planner.expressions.coercion import castable_type, implicitly_assignable, of_length
from hintplan.planner.expressions.typed import NULL, Expr, Field, FieldRef, Literal
from hintplan.planner.statements.model import Insert, PartitionValue
from hintplan.planner.syntax.dialect import parse_expression
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.plans.declarations.types import DataType
from hintplan.plans.model.config import LENGTH_ENFORCER
from hintplan.plans.text.names import did_you_mean

_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_LTZ"}
_SIZED = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


def convert_to_sink_column(context: Context, statement: Insert, target: Field, source: Field, place: int) -> Expr:
    """Return the query's column ``source`` as the sink's column ``target``. Raise SqlError if it needs a CAST.

    ``place`` is the offset of the column in the query. The rules follow Flink 2.3 (tests/flink/sinks.json).
    """
    value, wanted = FieldRef(field=source), target.type.as_nullable()
    if source.type == NULL:
        declared = {c.name: c.type for c in context.catalog.tables[statement.table].table.columns}
        if declared[target.name].endswith("NOT NULL"):
            message = f"column '{target.name}' of sink '{statement.table}' is NOT NULL"
            raise context.source.error(message, place, "select a value for it")
        return Literal(text=None, type=wanted)
    lossless = implicitly_assignable(source.type, wanted)
    if not lossless and not _converted_by_sinks(source.type, wanted):
        shown_source = f"'{source.name}'" if source.name else "a value"
        advice = f"write CAST({source.name or '...'} AS {wanted})"
        if not castable(value, wanted):
            advice = f"select a {wanted}, or declare the column as {source.type.as_nullable()}"
        raise context.source.error(
            f"column '{target.name}' of sink '{statement.table}' is {wanted}, but {shown_source} is "
            f"{source.type.as_nullable()}",
            place,
            advice,
        )
    if not lossless:
        _note(context, statement, target, source, place)
    if wanted.root in _SIZED and context.compiler.get(LENGTH_ENFORCER, "IGNORE") == "TRIM_PAD":
        return of_length(value, wanted, place)
    if wanted.root in ("BINARY", "VARBINARY") and not lossless:
        return of_length(value, wanted, place)
    return flink_cast(value, wanted, place)


def _converted_by_sinks(source: DataType, target: DataType) -> bool:
    """Return True if a sink of Flink 2.3 accepts ``source`` for ``target``, even if a value may not fit.

    The rules follow measurements of Flink.
    """
    if target.root == "VARCHAR":
        return source.is_text
    if target.root == "VARBINARY":
        return source.root in ("BINARY", "VARBINARY", "BYTES")
    if target.root in ("CHAR", "BINARY"):
        return source.root == target.root
    if target.root == "DECIMAL":
        return source.is_numeric
    if {source.root, target.root} <= _TIMESTAMPS:
        return castable_type(source, target)
    return (source.root, target.root) in (("DECIMAL", "FLOAT"), ("TIMESTAMP", "DATE"))


def _note(context: Context, statement: Insert, target: Field, source: Field, place: int) -> None:
    loss = {
        "VARCHAR": "longer text is cut",
        "CHAR": "longer text is cut, and shorter text gets spaces",
        "VARBINARY": "further bytes are cut",
        "BINARY": "further bytes are cut, and missing ones are zeros",
        "DECIMAL": "numbers are rounded, and numbers with more digits are NULL",
        "FLOAT": "numbers are the nearest FLOAT",
        "DATE": "the time of day is lost",
        "TIMESTAMP": "further digits of a second are cut",
        "TIMESTAMP_LTZ": "further digits of a second are cut",
    }[target.type.root]
    if {source.type.root, target.type.root} == _TIMESTAMPS:
        cut = (source.type.precision or 0) > (target.type.precision or 0)
        loss = "it is as in the time zone of the session" + (f", and {loss}" if cut else "")
    declare = f"declare the column as {source.type.as_nullable()}"
    says_so = castable(FieldRef(field=source), target.type.as_nullable())
    context.report.note(
        f"column '{target.name}' of sink '{statement.table}' is {target.type.as_nullable()}, and the query's is "
        f"{source.type.as_nullable()}: {loss}, as in Flink",
        place,
        f"write CAST({source.name or '...'} AS {target.type.as_nullable()}) to say so, or {declare}"
        if says_so
        else declare,
    )


def constants(context: Context, statement: Insert, entry: TableEntry) -> dict[str, Expr]:
    """Return the values of PARTITION by column, cast to the column's type. Raise SqlError for an invalid value.

    As in Flink (tests/flink/files.json), a column must be in PARTITIONED BY, and a value must be a literal other than
    NULL.
    """
    values: dict[str, Expr] = {}
    types = {field.name: field.type for field in entry.written}
    for value in statement.partition:
        if value.column not in entry.table.partitioned_by:
            listed = entry.table.partitioned_by
            if listed:
                advice = did_you_mean(value.column, listed, what="partition columns")
            else:
                advice = "declare the table with PARTITIONED BY (...), or select the value"
            message = f"'{value.column}' is no partition column of table '{statement.table}'"
            raise context.source.error(message, value.offset, advice)
        literal = _literal(context, value)
        target = types[value.column]
        if not castable(literal, target):
            message = f"partition column '{value.column}' is {target.as_nullable()}, and the value is {literal.type}"
            raise context.source.error(message, value.value[0].start, "write a value of the column's type")
        values[value.column] = flink_cast(literal, target, value.value[0].start)
    return values


def _literal(context: Context, value: PartitionValue) -> Literal:
    parsed = parse_expression(context.source, context.text, list(value.value))
    translator = clause_translator(context, Scope(inputs=()), "PARTITION")
    literal = None if parsed.find(exp.Column) else translator.expression(parsed)
    if not isinstance(literal, Literal) or literal.text is None:
        message = f"the value of partition column '{value.column}' is no constant"
        advice = "write a literal, such as 'x', 1 or DATE '2020-01-01', or select the value in the query"
        raise context.source.error(message, value.value[0].start, advice)
    return literal
