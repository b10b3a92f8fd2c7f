"""Refuses names and positions of the SELECT list where Flink does not accept them, and suggests a replacement."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from hintplan.planner.syntax.dialect import Flink, offset_of
from hintplan.planner.syntax.source import Source
from hintplan.planner.translation import aggregates
from hintplan.planner.translation.scope import Scope

_AS = re.compile(r"\s+AS$", re.IGNORECASE)


def refuse_aliases(source: Source, scope: Scope, select: exp.Select, node: exp.Expr, clause: str) -> None:
    """Raise SqlError for a name in GROUP BY or HAVING that is an alias of the SELECT list and not a column."""
    aliases = {e.alias: e for e in select.expressions if isinstance(e, exp.Alias)}
    for column in _columns(node):
        item = aliases.get(column.name)
        if item is None or column.args.get("table") is not None or _is_known(scope, column.name):
            continue
        advice = f"write the expression itself: {_written(source, item)}"
        if clause == "GROUP BY" and any(map(aggregates.is_aggregate, item.find_all(exp.Expr))):
            advice = "group by the columns that are not aggregated"
        message = f"'{column.name}' in {clause} is an alias of the SELECT list, which {clause} does not know"
        raise source.error(message, offset_of(column), advice)


def instead_of_position(source: Source, select: exp.Select, position: int) -> str:
    """Return the advice for a number in GROUP BY that was meant as a position in the SELECT list."""
    item = select.expressions[position - 1] if 0 < position <= len(select.expressions) else None
    instead = "repeat the expression there"
    if isinstance(item, exp.Alias):
        instead = f"write {_written(source, item)}"
    elif isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
        instead = f"write {item.sql(dialect=Flink)}"
    return f"a number in GROUP BY is no position of the SELECT list: {instead}"


def _written(source: Source, item: exp.Alias) -> str:
    """Return the source text of the aliased expression on one line.

    Leading parentheses are added by count, because the syntax tree does not record them.
    """
    text = source.text[offset_of(item.this) : offset_of(item.args["alias"])].rstrip()
    text = " ".join(_AS.sub("", text).split())
    return "(" * (text.count(")") - text.count("(")) + text


def _columns(node: exp.Expr) -> Iterator[exp.Column]:
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _columns(child)


def _is_known(scope: Scope, name: str) -> bool:
    return bool(scope.find(None, name)) or (scope.parent is not None and _is_known(scope.parent, name))
