"""The compiler of nested queries, which all code that compiles a part of a query block receives.

A block has sub-queries in FROM, in WHERE and in its SELECT list, and these are blocks themselves. The modules that
compile the parts of a block call the compiler that they receive, and do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context, Cte, QueryEnvironment
from hintplan.planner.expressions.typed import UNKNOWN, Expr
from hintplan.planner.query.domains import Domain
from hintplan.planner.query.subquery_values import SubqueryValue
from hintplan.planner.relations import Item, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class OneGroup:
    """The only row of a query that aggregates without GROUP BY: its ``items``, provided that ``having`` is true.

    The row exists for empty input, too. Items and conditions read the columns of the group, which are NULL for empty
    input.
    """

    items: tuple[Item, ...]
    having: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateral:
    """A query after LATERAL: its rows, the ``conditions`` that join them to the left side, and the new ``input``.

    With a ``domain``, the join also compares the values of the domain. With ``one_group``, ``relation`` holds only
    groups that have rows, and the reader adds the row for empty input.
    """

    relation: Relation
    input: Input
    conditions: tuple[Expr, ...]
    domain: Domain | None
    one_group: OneGroup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The names that a block can use: its ``ctes``, and ``outer``, the names of the outer block."""

    ctes: Mapping[str, Cte]
    outer: Scope | None


CompileQuery = Callable[["QueryCompiler", exp.Expr], Relation]
CompileValue = Callable[["QueryCompiler", Translator, exp.Expr], SubqueryValue]
CompileLateral = Callable[["QueryCompiler", exp.Lateral, Scope, str], Lateral]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCompiler:
    """Compiles the queries inside a block, with the environment of the block.

    These queries can refer to the names of the outer block, ``outer``. ``around`` holds the CTEs and the outer names of
    each enclosing block, from the inside out.
    """

    context: Context
    environment: QueryEnvironment
    compile_query: CompileQuery
    compile_value: CompileValue
    compile_lateral: CompileLateral
    outer: Scope | None = None
    around: tuple[Around, ...] = ()

    @property
    def block(self) -> str:
        """Return the name of the block."""
        return self.environment.block

    def within(self, environment: QueryEnvironment) -> QueryCompiler:
        """Return a compiler for queries in another environment."""
        return replace(self, environment=environment)

    def query(self, node: exp.Expr) -> Relation:
        """Compile a query that can use the environment of this block and the names of ``outer``.

        It cannot refer to the inputs of this block.
        """
        return self.compile_query(self, node)

    def seeing(self, outer: Scope | None) -> QueryCompiler:
        """Return a compiler for queries that can refer to the names of ``outer``."""
        around = Around(ctes=self.environment.ctes, outer=self.outer)
        return replace(self, outer=outer, around=(around, *self.around))

    def of_declared(self, environment: QueryEnvironment, cte: Cte | None = None) -> QueryCompiler:
        """Return a compiler for the query of a view or of ``cte``.

        The query can refer to the names that are visible to the block that declares the view or CTE.
        """
        outer, around = self.outer, self.around
        while around and (cte is None or any(cte is declared for declared in around[0].ctes.values())):
            outer, around = around[0].outer, around[1:]
        return replace(self, environment=environment, outer=outer, around=around)

    def lateral(self, node: exp.Lateral, outer: Scope, called: str = "a LATERAL query") -> Lateral:
        """Compile the query after LATERAL, which can refer to the inputs before it.

        Messages name the query as ``called``.
        """
        return self.compile_lateral(self, node, outer, called)

    def values(self, translator: Translator, nodes: Iterable[exp.Expr]) -> dict[int, SubqueryValue]:
        """Return the values of the sub-queries ``nodes`` by offset; ``translator`` belongs to their clause.

        The left side of IN may itself contain the value of an earlier sub-query.
        """
        values: dict[int, SubqueryValue] = {}
        for node in nodes:
            worth = {place: value.worth for place, value in values.items()}
            place = offset_of(_placed(node))
            values[place] = SubqueryValue(relation=None, on=(), worth=UNKNOWN, offset=place)
            with self.context.source.problems.going_on():
                values[place] = self.compile_value(self, replace(translator, values=worth), node)
        return values


def _placed(node: exp.Expr) -> exp.Expr:
    """Return the node whose offset identifies the value.

    For IN, this is the query, because the left side may be a value itself.
    """
    placed: exp.Expr = node.args["query"] if isinstance(node, exp.In) else node
    return placed
