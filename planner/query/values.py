"""VALUES, and SELECT without FROM: rows that are written in the query.

Their columns are named EXPR$0, EXPR$1, and so on. As in Flink, the column types hold the values of all rows. A SELECT
without FROM is computed from a single row.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.coercion import coerce, common_data_type
from hintplan.planner.expressions.typed import NULL, Expr, Field, calls_user_code, is_drawn, is_user_call, walk
from hintplan.planner.query.clauses import read_clauses
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.from_clause import From
from hintplan.planner.query.ordering import CLAUSES
from hintplan.planner.query.sources.scans import single_row
from hintplan.planner.relations import Item, LogicalCalc, LogicalUnion, LogicalValues, Relation
from hintplan.planner.syntax.dialect import cells_of, offset_of, select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.plans.text.counts import count


def compile_values(compiler: QueryCompiler, node: exp.Select) -> Relation:
    """Compile ``VALUES (1, 'a'), (2, 'b')``; if a value is random, each row is computed by a calc of its own."""
    context = compiler.context
    read_clauses(context, node, "hint", "expressions", "with_", *CLAUSES)
    translator = clause_translator(context, Scope(inputs=()), "VALUES")
    rows = [tuple(map(translator.expression, cells_of(row))) for row in node.expressions]
    for row, written in zip(rows, node.expressions, strict=True):
        if len(row) != len(rows[0]):
            message = f"this row has {count(len(row), 'value')}, the first one {len(rows[0])}"
            raise context.source.error(message, offset_of(written), "give all rows the same columns")
        for value, cell in zip(row, cells_of(written), strict=True):
            _check_value(context, value, cell)
    columns = zip(*rows, strict=True)
    fields = tuple(_field(context, place, column, node) for place, column in enumerate(columns))
    if any(calls_user_code(value) for row in rows for value in row):
        computed = tuple(_computed(compiler, row, fields) for row in rows)
        if len(computed) == 1:
            return computed[0]
        return LogicalUnion(inputs=computed, fields=fields, base=(compiler.block,), block=compiler.block)
    return LogicalValues(fields=fields, rows=tuple(rows), base=(compiler.block,), block=compiler.block)


def _computed(compiler: QueryCompiler, row: tuple[Expr, ...], fields: tuple[Field, ...]) -> LogicalCalc:
    """Return a relation with one row that has the ``fields`` and the values of ``row``."""
    context = compiler.context
    items = tuple(
        Item(
            field=context.field(f.name, f.type),
            expr=value if value.type.as_nullable() == f.type else coerce(value, f.type),
        )
        for f, value in zip(fields, row, strict=True)
    )
    single = single_row(context, compiler.block)
    return LogicalCalc(input=single, filter=None, items=items, base=(compiler.block,), block=compiler.block)


def _check_value(context: Context, value: Expr, cell: exp.Expr) -> None:
    if value.type == NULL:
        raise context.source.error("a NULL in VALUES has no type", offset_of(cell), "write CAST(NULL AS STRING)")
    if value.type.root == "INTERVAL":
        raise context.source.error("VALUES does not take an INTERVAL", offset_of(cell), "write a number")
    if any(is_user_call(e) and not is_drawn(e) for e in walk(value)):
        message = "a function of your own in VALUES is not supported"
        raise context.source.error(message, offset_of(cell), "write SELECT f(x) FROM (VALUES (1)) AS t(x)")


def _field(context: Context, place: int, column: tuple[Expr, ...], node: exp.Select) -> Field:
    common = common_data_type([value.type for value in column])
    roots = {value.type.root for value in column}
    if common is None or (len(roots) > 1 and "DATE" in roots):
        types = " and ".join(dict.fromkeys(str(value.type.as_nullable()) for value in column))
        message = f"column {place + 1} of VALUES has the types {types}"
        raise context.source.error(message, select_offset(node), "convert them with CAST")
    return context.field(f"EXPR${place}", common)


def without_from(compiler: QueryCompiler, select: exp.Select) -> From:
    """Return the source of a SELECT without FROM: one row, without a column that the query can name."""
    source = compiler.context.source
    for key, clause in (("where", "WHERE"), ("group", "GROUP BY"), ("having", "HAVING")):
        if select.args.get(key) is not None:
            message = f"{clause} without FROM is not supported"
            raise source.error(message, offset_of(select.args[key]), "read from (VALUES (1)) AS t(x)")
    joined = [*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    if joined:
        raise source.error("a join needs FROM", offset_of(joined[0]), "write FROM and its first table before it")
    star = next((e for e in select.expressions if isinstance(e, exp.Star)), None)
    if star is not None:
        raise source.error("SELECT * needs FROM", offset_of(star), "write the values")
    row = single_row(compiler.context, compiler.block)
    return From(relation=row, scope=Scope(inputs=(), parent=compiler.outer), name=None)
