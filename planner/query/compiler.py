"""What compiles the queries inside a query, handed to everything that compiles a part of a query block.

A block has sub-queries in FROM, in WHERE and in its SELECT list, which are blocks themselves. The modules that compile
these parts know the compiler that they are given, and not each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context, Cte, Environment
from hintplan.planner.expressions.typed import UNKNOWN, Expr
from hintplan.planner.query.domains import Domain
from hintplan.planner.query.subquery_values import Value
from hintplan.planner.relations import Item, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class OneGroup:
    """The one row of a query that aggregates without GROUP BY, also of no rows: its ``items``, if ``having`` is true.

    Both are over the columns of the group, which are NULL where there are no rows.
    """

    items: tuple[Item, ...]
    having: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateral:
    """The rows of a query that refers to what stands before it, by ``conditions``; ``input`` is what it offers.

    With a ``domain``, it is joined by the values of that as well. If it has ``one_group``, ``relation`` are its groups.
    """

    relation: Relation
    input: Input
    conditions: tuple[Expr, ...]
    domain: Domain | None
    one_group: OneGroup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a block sees: ``ctes``, and the names of the block around it, its ``outer`` ones."""

    ctes: Mapping[str, Cte]
    outer: Scope | None


CompileQuery = Callable[["QueryCompiler", exp.Expr], Relation]
CompileValue = Callable[["QueryCompiler", Translator, exp.Expr], Value]
CompileLateral = Callable[["QueryCompiler", exp.Lateral, Scope, str], Lateral]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCompiler:
    """How the queries inside a block are compiled, and what these and the block itself are compiled in.

    ``outer`` are the names of the block around, which they can refer to as well; ``around`` says the same of the blocks
    around that one, and which CTEs each of them can use.
    """

    context: Context
    environment: Environment
    compile_query: CompileQuery
    compile_value: CompileValue
    compile_lateral: CompileLateral
    outer: Scope | None = None
    around: tuple[Around, ...] = ()

    @property
    def block(self) -> str:
        """The name of the block."""
        return self.environment.block

    def within(self, environment: Environment) -> QueryCompiler:
        """The compiler for what is in another environment."""
        return replace(self, environment=environment)

    def query(self, node: exp.Expr) -> Relation:
        """The relation of a query, which sees the names of the block around, and of this block its environment only."""
        return self.compile_query(self, node)

    def seeing(self, outer: Scope | None) -> QueryCompiler:
        """The compiler for queries that can refer to the names of ``outer``."""
        around = Around(ctes=self.environment.ctes, outer=self.outer)
        return replace(self, outer=outer, around=(around, *self.around))

    def of_declared(self, environment: Environment, cte: Cte | None = None) -> QueryCompiler:
        """The compiler for the query of a view or of a ``cte``, which sees what the block sees that declares it."""
        outer, around = self.outer, self.around
        while around and (cte is None or any(cte is each for each in around[0].ctes.values())):
            outer, around = around[0].outer, around[1:]
        return replace(self, environment=environment, outer=outer, around=around)

    def lateral(self, node: exp.Lateral, outer: Scope, called: str = "a LATERAL query") -> Lateral:
        """The query after LATERAL, which sees what stands before it, and is ``called`` so in messages."""
        return self.compile_lateral(self, node, outer, called)

    def values(self, translator: Translator, nodes: Iterable[exp.Expr]) -> dict[int, Value]:
        """What the sub-queries ``nodes`` are worth, by their place; ``translator`` is that of their clause.

        What IN looks for may be worth those before it.
        """
        found: dict[int, Value] = {}
        for node in nodes:
            worth = {place: value.worth for place, value in found.items()}
            place = offset_of(_placed(node))
            found[place] = Value(relation=None, on=(), worth=UNKNOWN, offset=place)
            with self.context.source.problems.going_on():
                found[place] = self.compile_value(self, replace(translator, values=worth), node)
        return found


def _placed(node: exp.Expr) -> exp.Expr:
    """The node whose place is that of the value: what stands before IN may be a value itself."""
    found: exp.Expr = node.args["query"] if isinstance(node, exp.In) else node
    return found
