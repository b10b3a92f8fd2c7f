"""Sub-queries in ON of inner joins, which mean the same in WHERE, where they can be compiled.

They are moved in the syntax tree, before anything asks which sub-queries become joins. Not from below a RIGHT or FULL
JOIN, which adds rows that the condition is not asked of.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def move_to_where(query: exp.Query) -> None:
    """Move the conditions with sub-queries from ON of inner joins of all blocks of ``query`` to their WHERE."""
    for select in query.find_all(exp.Select):
        for join in _movable(select):
            parts = list(_parts(join.args.get("on")))
            moved = [part for part in parts if part.find(exp.Query, exp.Exists) is not None]
            if not moved:
                continue
            kept = [part for part in parts if part not in moved]
            join.set("on", _all_of(kept) if kept else None)
            join.set("kind", join.args.get("kind") if kept else "CROSS")
            where = select.args.get("where")
            given = [] if where is None else [where.this]
            select.set("where", exp.Where(this=_all_of([*map(_closed, given), *moved])))


def _movable(select: exp.Select) -> Iterator[exp.Join]:
    for join in reversed(select.args.get("joins") or []):
        side = str(join.args.get("side") or "").upper()
        if side in ("RIGHT", "FULL"):
            return
        if not side and isinstance(join.this, exp.Table | exp.Subquery) and join.this.args.get("version") is None:
            yield join


def _parts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif node is not None:
        yield node


def _closed(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Paren | exp.And) else exp.Paren(this=node)


def _all_of(parts: list[exp.Expr]) -> exp.Expr:
    found = parts[0]
    for part in parts[1:]:
        found = exp.And(this=found, expression=part)
    return found
