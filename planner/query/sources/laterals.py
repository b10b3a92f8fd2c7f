"""LATERAL TABLE(f(x)): a join whose right side is the rows that a function returns for a row of the left side.

This module accepts the supported forms of such a join and refuses all others. The arguments of the call stay
expressions here; :mod:`hintplan.planner.passes.split_calls` gives each call its own operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from hintplan.planner.context import Context, FunctionEntry
from hintplan.planner.expressions.typed import Expr, FieldRef
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.query.clauses import read_clauses
from hintplan.planner.relations import Item, LogicalCorrelate, Relation, identity
from hintplan.planner.syntax.dialect import is_comma_join, offset_of
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import only
from hintplan.planner.translation.user_calls import find_function, fitted_arguments

_FORM = "write LATERAL TABLE(f(x)) AS T(a)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A relation with the columns that a function returned, and the new input; ``condition`` is the ON condition."""

    relation: Relation
    input: Input
    condition: exp.Expr | None


def lateral(context: Context, left: Relation, scope: Scope, join: exp.Join, block: str) -> Called:
    """Compile the call that ``join`` makes for each row of ``left``; raise SqlError for an unsupported form."""
    node = join.this
    outer, condition = join_type(context, join, "LATERAL")
    function, alias, columns = _parts(context, node)
    name, offset = function.name, offset_of(function)
    catalog = context.catalog
    entry = find_function(context.source, catalog.functions, name, offset, catalog.failed)
    arguments = _arguments(context, scope, entry, function, offset)
    declared = zip(entry.function.output, entry.columns, strict=True)
    returned = tuple(context.field(column.name, data_type) for column, data_type in declared)
    names = tuple(field.name for field in returned)
    if columns and len(columns) != len(returned):
        message = f"'{name}' returns {len(returned)} columns ({', '.join(names)}), found {len(columns)} names"
        raise context.source.error(message, offset_of(node.args["alias"]), "name each column once")
    named = zip(columns or names, returned, strict=True)
    shown = tuple(Item(field=context.field(n, f.type), expr=FieldRef(field=f)) for n, f in named)
    if not context.batch and not is_insert_only(left):
        context.report.note(
            f"rows that '{name}' is called for can change: to retract a row, the function is called again, and must "
            f"return the same rows",
            offset,
            "if it may not, call it before the join or aggregation that changes rows",
        )
    relation = LogicalCorrelate(
        input=left,
        function=name.lower(),
        kind=entry.function.kind,
        join_type="left" if outer else "inner",
        arguments=arguments,
        returned=returned,
        items=(*identity(left.fields), *shown),
        offset=offset,
        base=(*left.base, alias or name),
        block=block,
    )
    fields = tuple(item.field for item in shown)
    added = Input(name=alias, kind="function", fields=fields, offset=offset_of(node), called=True)
    return Called(relation=relation, input=added, condition=condition)


def join_type(context: Context, join: exp.Join, word: Literal["LATERAL", "UNNEST"]) -> tuple[bool, exp.Expr | None]:
    """Return True if rows without a match on the right are kept, and the condition of an inner join."""
    source, offset = context.source, offset_of(join)
    method, kind, side = (str(join.args.get(k) or "").upper() for k in ("method", "kind", "side"))
    if side not in ("", "LEFT"):
        what = "a function cannot be called" if word == "LATERAL" else "UNNEST cannot stand"
        message = f"{what} in a {side} JOIN: it is called for the rows of the left side"
        form = "LATERAL TABLE(...)" if word == "LATERAL" else "UNNEST(...)"
        raise source.error(message, offset, f"write JOIN or LEFT JOIN {form} ON TRUE")
    if join.args.get("using") or method:
        what = "USING" if join.args.get("using") else method
        raise source.error(f"{what} is not supported with {word}", offset, "write ON TRUE, and compare in WHERE")
    condition = join.args.get("on")
    if isinstance(condition, exp.Boolean) and condition.this:
        return side == "LEFT", None
    if condition is None and not is_comma_join(join) and kind != "CROSS":
        raise source.error("this JOIN has no condition", offset, "add ON TRUE")
    if condition is not None and side == "LEFT":
        raise source.error(
            f"LEFT JOIN {word} takes the condition TRUE only",
            offset_of(condition),
            "write ON TRUE, and compare in WHERE or in a query around this one",
        )
    return side == "LEFT", condition


def _parts(context: Context, node: exp.Lateral) -> tuple[exp.Anonymous, str | None, tuple[str, ...]]:
    """Return the call, and the alias and column names of its result."""
    alias, columns = _alias(node)
    if isinstance(node.this, exp.Subquery):
        function, renamed = _only_call(context, node.this)
        return function, alias, columns or renamed
    return _call(context, node.this, offset_of(node)), alias, columns


def _alias(node: exp.Expr) -> tuple[str | None, tuple[str, ...]]:
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return None, ()
    return alias.name or None, tuple(c.name for c in alias.args.get("columns") or ())


def _call(context: Context, node: exp.Expr, offset: int) -> exp.Anonymous:
    """Return the call in ``TABLE(call)``; raise SqlError for anything else."""
    source = context.source
    if isinstance(node, exp.Unnest):
        raise source.error("UNNEST takes no LATERAL", offset_of(node), "write CROSS JOIN UNNEST(arr) AS u(x)")
    if not isinstance(node, exp.Anonymous) or node.name.upper() != "TABLE":
        what = f"'{node.name}'" if isinstance(node, exp.Anonymous) else "this"
        raise source.error(f"{what} is not supported after LATERAL", offset_of(node) or offset, _FORM)
    function = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(function, exp.Dot):
        message = "a function has no path here: functions live in default_catalog.default_database"
        raise source.error(message, offset_of(function) or offset, "write its name alone")
    if not isinstance(function, exp.Anonymous):
        raise source.error("TABLE takes one call of a function", offset_of(node) or offset, _FORM)
    return function


def _only_call(context: Context, node: exp.Subquery) -> tuple[exp.Anonymous, tuple[str, ...]]:
    """Return the call in ``(SELECT * FROM TABLE(f(x)))`` and its column names; raise SqlError for other queries."""
    source, select = context.source, node.this
    if not isinstance(select, exp.Select):
        advice = "write one SELECT there, with this query in its FROM"
        raise source.error("this query is not supported after LATERAL", offset_of(node), advice)
    table = select.args["from_"].this if select.args.get("from_") else None
    if table is None or table.args.get("joins"):
        raise source.error("a LATERAL query without FROM is not supported", offset_of(select), _FORM)
    place = next((select.args[k] for k in ("where", "group", "having") if select.args.get(k)), None)
    if place is not None:
        message = "a condition inside LATERAL is not supported: its operator makes the call and nothing else"
        raise source.error(message, offset_of(place), "put it into the WHERE of the query around it")
    first = next(iter(select.expressions), select)
    if len(select.expressions) != 1 or not isinstance(first, exp.Star):
        message = "a SELECT list inside LATERAL is not supported: its operator makes the call and nothing else"
        raise source.error(message, offset_of(first), f"{_FORM}, and select in the query around it")
    read_clauses(context, node, "this")
    read_clauses(context, select, "hint", "expressions", "from_")
    read_clauses(context, table, "this", "alias")
    only(source, first)
    return _call(context, table.this, offset_of(table)), _alias(table)[1]


def _arguments(
    context: Context, scope: Scope, entry: FunctionEntry, function: exp.Anonymous, offset: int
) -> tuple[Expr, ...]:
    source, name = context.source, function.name
    for node in function.expressions:
        if isinstance(node, exp.Distinct | exp.Kwarg | exp.Star):
            raise source.error(f"'{name}' takes plain values", offset_of(node) or offset, f"write {name}(a, b)")
    translator = clause_translator(context, scope, "LATERAL")
    args = tuple(translator.expression(node) for node in function.expressions)
    return fitted_arguments(source, entry, name, args, offset)
