"""Drops window functions (OVER) in the SELECT list of EXISTS, whose reader only needs to know that a row exists.

In a stream, the columns and aggregates that the windows read replace the list. So all names are still resolved, but no
window is computed. Flink's planner drops the list, too. A batch job compiles the windows in order to check them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hintplan.planner.query.subquery_kinds import plain_select
from hintplan.planner.syntax.dialect import offset_of, place_at
from hintplan.planner.translation.aggregates import is_aggregate
from hintplan.plans.operators.over_aggregate import OVER_FUNCTIONS

_READ_BY = ("qualify", "order", "distinct", "windows")
"""The clauses that read the SELECT list, or that the list reads."""


def drop_unread_windows(node: exp.Exists) -> None:
    """Replace each column with OVER in the SELECT list of ``node``'s query by its operands."""
    select = plain_select(node.this)
    if select is None or any(select.args.get(clause) for clause in _READ_BY):
        return
    group = select.args.get("group")
    grouped = () if group is None else tuple(group.expressions)
    items: list[exp.Expr] = []
    for item in select.expressions:
        windows = list(item.find_all(exp.Window))
        if windows and all(map(_is_known, windows)):
            read = list(_operands(item, grouped)) or [place_at(exp.Literal.number(1), offset_of(item))]
            items += [operand.copy() for operand in read]
        else:
            items.append(item)
    select.set("expressions", items)


def _is_known(window: exp.Window) -> bool:
    """Return True for a function that exists; the compilation of the block refuses any other function."""
    return window.this.name.upper() in OVER_FUNCTIONS


def _operands(node: exp.Expr, grouped: tuple[exp.Expr, ...]) -> Iterator[exp.Expr]:
    """Yield the columns, aggregates, sub-queries and GROUP BY expressions in ``node`` and in its windows."""
    call = node.this if isinstance(node, exp.Filter) else node
    is_group = is_aggregate(call) and not isinstance(node.parent, exp.Window)
    if is_group or isinstance(node, exp.Column | exp.Query) or node in grouped:
        yield node
        return
    for child in node.iter_expressions():
        yield from _operands(child, grouped)
