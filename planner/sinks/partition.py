"""``INSERT INTO table PARTITION (column = value)``: constant values of partition columns for one INSERT."""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context, TableEntry
from hintplan.planner.expressions.casts import castable, flink_cast
from hintplan.planner.expressions.typed import Expr, Literal
from hintplan.planner.statements.model import Insert, PartitionValue
from hintplan.planner.syntax.dialect import parse_expression
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.plans.text.names import did_you_mean


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
