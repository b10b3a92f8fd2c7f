"""OVER in a block that groups, which is of the groups: the block becomes one above a sub-query that groups.

``SELECT k, RANK() OVER (ORDER BY SUM(v)) FROM t GROUP BY k`` means ``SELECT k, RANK() OVER (ORDER BY s) FROM (SELECT k,
SUM(v) AS s FROM t GROUP BY k)``. Knows syntax trees only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from hintplan.planner.syntax.dialect import offset_of, select_at, select_offset

_ABOVE = ("qualify", "order", "limit", "offset", "distinct", "windows")
"""The clauses that are of what OVER computes; all others are of what is grouped."""


def above_groups(select: exp.Select, is_aggregate: Callable[[exp.Expr], bool]) -> exp.Select:
    """``select``, which groups and has OVER, as a block above one that only groups."""
    grouped = list(_grouped_by(select))
    columns: dict[exp.Expr, exp.Alias] = {}
    shown = {item.args["alias"].name for item in select.expressions if isinstance(item, exp.Alias)}

    def column_of(node: exp.Expr, name: str) -> exp.Expr:
        """A column that stands for ``node``, which is computed below."""
        if node not in columns:
            taken = {each.alias for each in columns.values()}
            while not name or name in taken or (name in shown and not isinstance(node, exp.Column)):
                name = f"EXPR${len(taken)}" if not name else f"{name}$"
            columns[node] = exp.Alias(this=node.copy(), alias=exp.Identifier(this=name, quoted=True))
        found = exp.Column(this=exp.Identifier(this=columns[node].alias, quoted=True))
        found.this.meta.update(_first(node).meta)
        return found

    def over(node: exp.Expr) -> exp.Expr:
        """``node`` over the columns of the groups."""
        if isinstance(node, exp.Query):
            return node
        if isinstance(node, exp.Window):
            function, found = node.this, node.copy()
            found.set("this", _children(function, over))
            for part in ("partition_by", "order"):
                given = node.args.get(part)
                if given:
                    found.set(part, [over(each) for each in given] if isinstance(given, list) else over(given))
            return found
        if is_aggregate(node) or (isinstance(node, exp.Filter) and is_aggregate(node.this)) or node in grouped:
            return column_of(node, node.name if isinstance(node, exp.Column) else "")
        if isinstance(node, exp.Anonymous) and node.name.upper() in ("GROUPING", "GROUPING_ID", "GROUP_ID"):
            return column_of(node, "")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return column_of(node, node.name)  # if it is no column of the groups, that is said where it is computed
        return _children(node, over)

    # Hints are found by the place of SELECT, and are of what is grouped.
    above = select_at(select_offset(select) + 1)
    above.set("expressions", [over(item) for item in select.expressions])
    for key in _ABOVE:
        given = select.args.get(key)
        if given:
            above.set(key, _clause(key, given, over, shown))
    below = exp.Select(**{key: value for key, value in select.args.items() if key not in (*_ABOVE, "expressions")})
    below.set("expressions", list(columns.values()))
    source = exp.Subquery(this=below, alias=exp.TableAlias(this=exp.Identifier(this="grouped", quoted=True)))
    above.set("from_", exp.From(this=source))
    return above


def _grouped_by(select: exp.Select) -> Iterator[exp.Expr]:
    """What GROUP BY lists, down to the elements of its sets."""
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
        """An alias of the SELECT list stays one; it is not a column of what is grouped."""
        if isinstance(node, exp.Column) and node.args.get("table") is None and node.name in shown:
            return node.copy()
        if isinstance(node, exp.Window | exp.Anonymous | exp.Filter):
            return over(node)
        return over(node) if isinstance(node, exp.Column) else _children(node, unless_alias)

    return unless_alias(given)


def _children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of ``node`` with ``change`` made of each of its parts."""
    found = node.copy()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            found.set(key, change(value) if not isinstance(value, exp.Identifier) else value.copy())
        elif isinstance(value, list):
            found.set(key, [change(each) if isinstance(each, exp.Expr) else each for each in value])
    return found


def _first(node: exp.Expr) -> exp.Expr:
    """The part of ``node`` that begins where it begins."""
    place = offset_of(node)
    return next((each for each in node.walk() if each.meta and offset_of(each) == place), node)
