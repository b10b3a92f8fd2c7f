"""OVER in a block with GROUP BY: rewrites it as a block over a sub-query that groups.

``SELECT k, RANK() OVER (ORDER BY SUM(v)) FROM t GROUP BY k`` means ``SELECT k, RANK() OVER (ORDER BY s) FROM (SELECT k,
SUM(v) AS s FROM t GROUP BY k)``. This module knows syntax trees only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from hintplan.planner.syntax.dialect import offset_of, select_at, select_offset
from hintplan.planner.syntax.group_windows import is_auxiliary

_ABOVE = ("qualify", "order", "limit", "offset", "distinct", "windows")
"""The clauses that belong to the block with OVER. All others belong to the block that groups."""


def above_groups(select: exp.Select, is_aggregate: Callable[[exp.Expr], bool]) -> exp.Select:
    """Return ``select``, which has GROUP BY and OVER, as a block over a block that only groups."""
    grouped = list(_grouped_by(select))
    columns: dict[exp.Expr, exp.Alias] = {}
    shown = {item.args["alias"].name for item in select.expressions if isinstance(item, exp.Alias)}

    def column_of(node: exp.Expr, name: str) -> exp.Expr:
        """Return a column of the upper block for ``node``, which the lower block computes."""
        if node not in columns:
            taken = {element.alias for element in columns.values()}
            while not name or name in taken or (name in shown and not isinstance(node, exp.Column)):
                name = f"EXPR${len(taken)}" if not name else f"{name}$"
            columns[node] = exp.Alias(this=node.copy(), alias=exp.Identifier(this=name, quoted=True))
        replacement = exp.Column(this=exp.Identifier(this=columns[node].alias, quoted=True))
        replacement.this.meta.update(_first(node).meta)
        return replacement

    def over(node: exp.Expr) -> exp.Expr:
        """Return ``node`` rewritten over the columns of the groups."""
        if isinstance(node, exp.Query):
            return node
        if isinstance(node, exp.Window):
            function, replacement = node.this, node.copy()
            replacement.set("this", _children(function, over))
            for part in ("partition_by", "order"):
                clause = node.args.get(part)
                if clause:
                    replacement.set(
                        part, [over(element) for element in clause] if isinstance(clause, list) else over(clause)
                    )
            return replacement
        if is_aggregate(node) or (isinstance(node, exp.Filter) and is_aggregate(node.this)) or node in grouped:
            return column_of(node, node.name if isinstance(node, exp.Column) else "")
        if isinstance(node, exp.Anonymous) and node.name.upper() in ("GROUPING", "GROUPING_ID", "GROUP_ID"):
            return column_of(node, "")
        if is_auxiliary(node):
            return column_of(node, "")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return column_of(node, node.name)  # the lower block reports a column that is not grouped
        return _children(node, over)

    # The offset of SELECT identifies its hints, and these belong to the block that groups.
    above = select_at(select_offset(select) + 1)
    above.set("expressions", [over(item) for item in select.expressions])
    for key in _ABOVE:
        clause = select.args.get(key)
        if clause:
            above.set(key, _clause(key, clause, over, shown))
    below = exp.Select(**{key: value for key, value in select.args.items() if key not in (*_ABOVE, "expressions")})
    below.set("expressions", list(columns.values()))
    source = exp.Subquery(this=below, alias=exp.TableAlias(this=exp.Identifier(this="grouped", quoted=True)))
    above.set("from_", exp.From(this=source))
    return above


def _grouped_by(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the expressions of GROUP BY, and the elements of its sets."""
    group = select.args.get("group")
    pending = [] if group is None else list(group.iter_expressions())
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, exp.Tuple | exp.Paren) or not isinstance(node, exp.Column | exp.Literal):
            pending += node.iter_expressions()


def _clause(key: str, given: object, over: Callable[[exp.Expr], exp.Expr], shown: set[str]) -> object:
    if key == "windows":
        assert isinstance(given, list)
        return [over(each) if isinstance(each, exp.Window) else each for each in given]
    if key in ("limit", "offset", "distinct"):
        return given.copy() if isinstance(given, exp.Expr) else given
    assert isinstance(given, exp.Expr)

    def unless_alias(node: exp.Expr) -> exp.Expr:
        """Keep an alias of the SELECT list: it is no column of the lower block."""
        if isinstance(node, exp.Column) and node.args.get("table") is None and node.name in shown:
            return node.copy()
        if isinstance(node, exp.Window | exp.Anonymous | exp.Filter):
            return over(node)
        return over(node) if isinstance(node, exp.Column) else _children(node, unless_alias)

    return unless_alias(given)


def _children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a copy of ``node`` with ``change`` applied to each of its parts."""
    changed = node.copy()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            changed.set(key, change(value) if not isinstance(value, exp.Identifier) else value.copy())
        elif isinstance(value, list):
            changed.set(key, [change(item) if isinstance(item, exp.Expr) else item for item in value])
    return changed


def _first(node: exp.Expr) -> exp.Expr:
    """Return the part of ``node`` at which its text begins."""
    place = offset_of(node)
    return next((part for part in node.walk() if part.meta and offset_of(part) == place), node)
