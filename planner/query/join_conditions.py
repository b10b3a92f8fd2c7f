"""Moves sub-queries from ON of inner joins to WHERE, where they mean the same and can be compiled.

The move happens in the syntax tree, before other modules decide which sub-queries become joins. Conditions below a
RIGHT or FULL JOIN stay, because that join adds rows to which the condition does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def move_to_where(query: exp.Query) -> None:
    """Move conditions with sub-queries from ON of inner joins to WHERE, in all blocks of ``query``."""
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
            present = [] if where is None else [where.this]
            select.set("where", exp.Where(this=_all_of([*map(_closed, present), *moved])))


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
    conjunction = parts[0]
    for part in parts[1:]:
        conjunction = exp.And(this=conjunction, expression=part)
    return conjunction
