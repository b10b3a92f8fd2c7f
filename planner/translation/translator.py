"""What translates the expressions of a clause: the names they may use, and the function for each kind of node.

Owns the refusal of nodes, and of parts of nodes, that nothing translates. Which function translates what is said in
:mod:`hintplan.planner.translation.expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from hintplan.planner.context import FunctionEntry
from hintplan.planner.expressions.typed import UNKNOWN, Expr
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.source import Source
from hintplan.planner.translation.scope import Scope
from hintplan.plans.errors import SqlError

Handler = Callable[["Translator", exp.Expr], Expr]
"""Translates one kind of node; what is below it, by the translator."""


_JOIN_INSTEAD = "join the tables, or use IN (SELECT ...) or EXISTS as a condition of WHERE"


_REFUSED: dict[type, tuple[str, str]] = {
    exp.Window: ("window functions (OVER)", "use GROUP BY; in batch mode they stand in SELECT, QUALIFY and ORDER BY"),
    exp.Star: ("'*' in expressions", "name the columns"),
    exp.Placeholder: ("placeholders", "write the value"),
    exp.All: ("such comparisons with ALL of a sub-query", _JOIN_INSTEAD),
    exp.Any: ("such comparisons with ANY of a sub-query", _JOIN_INSTEAD),
    exp.ILike: ("ILIKE conditions", "write UPPER(x) LIKE '...'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """What an expression is translated in: the names it may use, and where it stands (``clause``, for messages).

    ``functions`` are the user-defined ones by name in lower case, ``failed`` the names of what could not be declared.
    ``values`` are what sub-queries that are values are worth, by their place; none where there can be none.
    ``handlers`` translate each kind of node.
    """

    source: Source
    scope: Scope
    clause: str
    aggregates: bool = False
    functions: Mapping[str, FunctionEntry]
    failed: Collection[str] = ()
    values: Mapping[int, Expr] = field(default_factory=dict)
    handlers: Mapping[type, Handler]

    def expression(self, node: exp.Expr) -> Expr:
        """The typed expression for ``node``; UNKNOWN, and the error taken down, where it is wrong or not supported."""
        handler = self.handlers.get(type(node))
        problems = self.source.problems
        since = problems.doubts
        if self.source.budget.exceeded("expressions", 1) is not None:
            self.source.spend("expressions", 0, offset_of(node))
        try:
            if handler is None:
                what, advice = _REFUSED.get(type(node), (f"{node.key.upper()} expressions", "write it another way"))
                raise self.source.error(f"{what} are not supported", offset_of(node), advice)
            # LIKE alone reads it; a version of sqlglot may say it of other nodes, too.
            if node.args.get("negate") and not isinstance(node, exp.Like | exp.Escape):
                raise self.source.error(f"NOT {node.key.upper()} is not supported", offset_of(node), "write NOT (...)")
            return handler(self, node)
        except SqlError as error:
            # An error in a part of it is taken down already, and what is wrong around that may follow from it.
            problems.add(error, since, certain=True)
            return UNKNOWN

    def condition(self, node: exp.Expr) -> Expr:
        """Like :meth:`expression`, but it must be boolean."""
        found = self.expression(node)
        return self.boolean(found, node)

    def boolean(self, found: Expr, node: exp.Expr) -> Expr:
        """``found``, which ``node`` means, if it is boolean; else UNKNOWN, and the error taken down."""
        if found.type.root in ("BOOLEAN", "NULL"):
            return found
        error = self.source.error(
            f"expected a condition, found {found.type}", offset_of(node), "compare it with something"
        )
        self.source.problems.add(error, self.source.problems.doubts, certain=True)
        return UNKNOWN


def only(source: Source, node: exp.Expr, *known: str) -> None:
    """Refuse every part of ``node`` that the caller does not read."""
    for key, value in node.args.items():
        if key not in known and value:
            place = value[0] if isinstance(value, list) else value
            offset = offset_of(place) if isinstance(place, exp.Expr) else 0
            raise source.error(f"{written(key)} is not supported here", offset or offset_of(node), "remove it")


_WRITTEN = {
    "with_": "WITH",
    "from_": "FROM",
    "group": "GROUP BY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "connect": "CONNECT BY",
    "locks": "FOR UPDATE",
    "sample": "TABLESAMPLE",
}


def written(key: str) -> str:
    """A part of a syntax tree as it is written in SQL."""
    return _WRITTEN.get(key, key.rstrip("_").replace("_", " ").upper())
