"""The translator of a clause's expressions: the names they may use, and a function for each kind of node.

This module refuses nodes, and parts of nodes, that no function translates.
:mod:`hintplan.planner.translation.expressions` lists the functions.
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
"""Translates one kind of node, with the translator for its child nodes."""


_JOIN_INSTEAD = "join the tables, or use IN (SELECT ...) or EXISTS as a condition of WHERE"


_REFUSED: dict[type, tuple[str, str]] = {
    exp.Window: ("window functions (OVER)", "use GROUP BY; batch mode allows them in SELECT, QUALIFY and ORDER BY"),
    exp.Star: ("'*' in expressions", "name the columns"),
    exp.Placeholder: ("placeholders", "write the value"),
    exp.All: ("such comparisons with ALL of a sub-query", _JOIN_INSTEAD),
    exp.Any: ("such comparisons with ANY of a sub-query", _JOIN_INSTEAD),
    exp.ILike: ("ILIKE conditions", "write UPPER(x) LIKE '...'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """The context of an expression: the names it may use, and the ``clause`` that it stands in, for messages.

    - ``functions`` are the user-defined functions by name in lower case.
    - ``failed`` are the names of functions whose declaration has an error.
    - ``values`` are the values of sub-queries, and of functions of a group window, by offset; it is empty where these
      are not allowed.
    - ``handlers`` translate each kind of node.
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
        """Return the typed expression for ``node``; for an error, record it and return UNKNOWN."""
        handler = self.handlers.get(type(node))
        problems = self.source.problems
        since = problems.doubts
        if self.source.budget.exceeded("expressions", 1) is not None:
            self.source.spend("expressions", 0, offset_of(node))
        try:
            if handler is None:
                what, advice = _REFUSED.get(type(node), (f"{node.key.upper()} expressions", "write it another way"))
                raise self.source.error(f"{what} are not supported", offset_of(node), advice)
            # Only LIKE reads this part; a version of sqlglot may set it on other nodes, too.
            if node.args.get("negate") and not isinstance(node, exp.Like | exp.Escape):
                raise self.source.error(f"NOT {node.key.upper()} is not supported", offset_of(node), "write NOT (...)")
            return handler(self, node)
        except SqlError as error:
            # An error in a child node is recorded already, and may be the cause of this one.
            problems.add(error, since, certain=True)
            return UNKNOWN

    def condition(self, node: exp.Expr) -> Expr:
        """Translate ``node``, which must be boolean."""
        condition = self.expression(node)
        return self.boolean(condition, node)

    def boolean(self, condition: Expr, node: exp.Expr) -> Expr:
        """Return ``condition``, the translation of ``node``, if it is boolean; else record an error."""
        if condition.type.root in ("BOOLEAN", "NULL"):
            return condition
        error = self.source.error(
            f"expected a condition, found {condition.type}", offset_of(node), "compare it with something"
        )
        self.source.problems.add(error, self.source.problems.doubts, certain=True)
        return UNKNOWN


def only(source: Source, node: exp.Expr, *known: str) -> None:
    """Refuse every part of ``node`` that the caller does not read."""
    for key, value in node.args.items():
        if key not in known and value:
            place = value[0] if isinstance(value, list) else value
            offset = offset_of(place) if isinstance(place, exp.Expr) else 0
            raise source.error(f"{keyword(key)} is not supported here", offset or offset_of(node), "remove it")


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


def keyword(key: str) -> str:
    """Return the SQL keyword for a part of a syntax tree."""
    return _WRITTEN.get(key, key.rstrip("_").replace("_", " ").upper())
