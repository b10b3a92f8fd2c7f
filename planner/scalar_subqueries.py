"""Scalar sub-queries: ``(SELECT MAX(x) FROM t WHERE t.k = o.k)``, and EXISTS anywhere but on its own in WHERE.

Such a sub-query becomes an aggregate by the columns that it compares with the outer block, which a LEFT JOIN brings to
the rows of that block; without such columns it has one row, for all. What its SELECT list makes of the aggregates is
computed above the join, where COUNT of no rows is 0. HAVING stands below it, so that COUNT of no rows is NULL beside
HAVING: that is so in Flink. A condition of WHERE that cannot be true without a partner makes the join an inner one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner import aggregates, from_clause, grouping, ordering, queries, subqueries
from planner.cached_results import has_cached_hint
from planner.context import Context, Environment
from planner.dialect import offset_of, select_offset
from planner.expressions import (
    BIGINT,
    BOOLEAN,
    INT,
    AggregateCallExpr,
    Call,
    Expr,
    Field,
    Ref,
    call,
    conjuncts,
    fields_of,
    literal,
    rewrite,
    walk,
)
from planner.from_clause import From
from planner.nullability import may_be_null
from planner.operands import comparable
from planner.relations import Aggregate, AggregateItem, Calc, Item, Join, Relation, StateInput, UnnamedInput, identity
from planner.scope import Scope
from planner.translation import Translator
from planner.unique_keys import unique_keys

__all__ = ["Value", "compile_values", "has_values", "join_values", "values_in"]

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "LIKE"))
_NULL_FROM_NULL = frozenset(("CAST", "+", "-", "*", "div", "%", "NEGATE", "abs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A sub-query: ``relation`` joined ``on`` equalities with the outer block, and what it then is worth."""

    relation: Relation
    on: tuple[Expr, ...]
    worth: Expr
    offset: int


def values_in(node: exp.Expr, *, filters: bool = False) -> Iterator[exp.Expr]:
    """The scalar sub-queries and EXISTS in an expression; not what ALL and ANY read, nor what is aggregated.

    IN with a sub-query is one of them only where its being NULL is as good as its being false: below AND and OR in what
    ``filters``.
    """
    below = filters and isinstance(node, exp.And | exp.Or | exp.Paren)
    is_in = isinstance(node, exp.In) and node.args.get("query") is not None
    if isinstance(node, exp.Query | exp.Exists) or (is_in and filters):
        yield node
    elif not isinstance(node, exp.All | exp.Any) and not _is_aggregate(node):
        for child in node.iter_expressions():
            if not (is_in and child is node.args.get("query")):
                yield from values_in(child, filters=below)


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in aggregates.NAMES


def has_values(select: exp.Select) -> bool:
    """Whether sub-queries in the clauses of ``select`` are values."""
    having = select.args.get("having")
    clauses = [*select.expressions, *([having] if having is not None else [])]
    found = [value for clause in clauses for value in values_in(clause)]
    found += [value for part in subqueries.plain_conditions(select) for value in values_in(part, filters=True)]
    return bool(found)


def compile_values(
    context: Context, environment: Environment, scope: Scope, nodes: list[exp.Expr], *, filters: bool = False
) -> dict[int, Value]:
    """The sub-queries in ``nodes`` by their place; ``scope`` is that of the block they stand in."""
    found = [each for node in nodes for each in values_in(node, filters=filters)]
    return {offset_of(_placed(node)): _value(context, environment, scope, node) for node in found}


def _placed(node: exp.Expr) -> exp.Expr:
    """The node whose place is that of the value: what stands before IN may be a value itself."""
    found: exp.Expr = node.args["query"] if isinstance(node, exp.In) else node
    return found


def join_values(
    context: Context,
    relation: Relation,
    values: Mapping[int, Value],
    state: StateInput,
    block: str,
    *,
    conditions: tuple[Expr, ...] = (),
    outer: Callable[[Expr], Expr] = lambda expression: expression,
) -> Relation:
    """``relation`` with the columns of all ``values``; ``conditions`` will be put above, and ``outer`` says what an
    expression of the outer block is over ``relation``.
    """
    for value in values.values():
        ids = {f.id for f in value.relation.fields}
        on = tuple(_over(part, ids, outer) for part in value.on)
        known = {f.id for f in relation.fields} | ids
        for part in on:
            if any(f.id not in known for f in fields_of(part)):
                raise context.source.error(
                    "a sub-query can refer to the block directly around it only", part.offset, "join the tables"
                )
        relation = Join(
            left=relation,
            right=value.relation,
            join_type="inner" if any(_rejects_null(c, ids) for c in conditions) else "left",
            on=on,
            items=identity((*relation.fields, *value.relation.fields)),
            states=(state, UnnamedInput),
            offset=value.offset,
            base=f"{relation.base}_{value.relation.base}",
            block=block,
        )
        state = UnnamedInput
    return relation


def _over(part: Expr, own: set[int], outer: Callable[[Expr], Expr]) -> Expr:
    """An equality with its side of the outer block replaced."""
    assert isinstance(part, Call)
    sides = (a if any(f.id in own for f in fields_of(a)) else outer(a) for a in part.args)
    return call(part.function, tuple(sides), BOOLEAN, part.offset)


def _rejects_null(condition: Expr, ids: set[int]) -> bool:
    """Whether ``condition`` is not true if the fields with ``ids`` are NULL."""

    def is_null(e: Expr) -> bool:
        if isinstance(e, Ref):
            return e.field.id in ids
        return isinstance(e, Call) and e.function in _NULL_FROM_NULL and any(map(is_null, e.args))

    return isinstance(condition, Call) and condition.function in _COMPARISONS and any(map(is_null, condition.args))


def _value(context: Context, environment: Environment, scope: Scope, node: exp.Expr) -> Value:
    if isinstance(node, exp.In):
        return _in(context, environment, scope, node)
    query = node.this if isinstance(node, exp.Exists) else node
    select = subqueries.plain_select(query)
    if select is None or not _is_block(context, select):
        return _apart(context, environment, query, node)
    queries.refuse_clauses(context, select)
    if select.args.get("from_") is None:
        raise context.source.error("a sub-query without FROM is not supported", offset_of(node), "write the value")
    return _Block(context, environment, scope, node, select).value()


def _apart(context: Context, environment: Environment, query: exp.Expr, node: exp.Expr) -> Value:
    """A query that is compiled by itself, as it cannot refer to the outer block."""
    relation = queries.build_query(context, environment, query)
    offset = offset_of(node)
    if isinstance(node, exp.Exists):
        count = _count(context)
        grouped = _aggregate(relation, (), (count,), UnnamedInput, offset, environment.block)
        return Value(relation=grouped, on=(), worth=_is_some(count, offset), offset=offset)
    _check_one_column(context, [f.name for f in relation.fields], offset)
    if not _has_one_row(context, relation, frozenset()):
        raise _several_rows(context, offset)
    return Value(relation=relation, on=(), worth=Ref(field=relation.fields[0], offset=offset), offset=offset)


def _in(context: Context, environment: Environment, scope: Scope, node: exp.In) -> Value:
    """``x IN (SELECT y ...)`` where NULL is as good as false: whether there is a group of ``y`` that equals ``x``."""
    offset = offset_of(node)
    functions = context.catalog.functions
    asked = Translator(source=context.source, scope=scope, clause="WHERE", functions=functions).expression(node.this)
    select = subqueries.plain_select(node.args["query"])
    if select is not None and _is_block(context, select) and not grouping.is_grouped(context, select):
        return _Block(context, environment, scope, node, select).contains(asked)
    relation = queries.build_query(context, environment, node.args["query"])
    _check_one_column(context, [f.name for f in relation.fields], offset)
    key = Ref(field=relation.fields[0], offset=offset)
    pair = comparable(context.source, "IN", (key, asked), offset)
    if may_be_null(context, relation, key):
        known = call("IS NOT NULL", (key,), BOOLEAN, offset)
        relation = queries.filtered(relation, (known,), environment.block)
    grouped = _aggregate(relation, (key.field,), (), UnnamedInput, offset, environment.block)
    worth = call("IS NOT NULL", (key,), BOOLEAN, offset)
    return Value(relation=grouped, on=(call("=", pair, BOOLEAN, offset),), worth=worth, offset=offset)


def _is_block(context: Context, select: exp.Select) -> bool:
    """Whether the FROM and WHERE of ``select`` say all about which rows there are."""
    if select.args.get("with_") or has_cached_hint(context, select_offset(select)):
        return False
    return not (context.batch and (ordering.is_ordered(select) or select.args.get("distinct")))


def _count(context: Context) -> AggregateItem:
    return AggregateItem(
        field=context.field("", BIGINT), function="COUNT", argument=None, distinct=False, filter=None, separator=None
    )


def _is_some(count: AggregateItem, offset: int) -> Expr:
    some = call(">", (Ref(field=count.field), literal(0, INT)), BOOLEAN, offset)
    return call("coalesce", (some, literal("FALSE", BOOLEAN)), BOOLEAN, offset)


def _aggregate(
    relation: Relation,
    keys: tuple[Field, ...],
    calls: tuple[AggregateItem, ...],
    state: StateInput,
    offset: int,
    block: str,
) -> Aggregate:
    return Aggregate(
        input=relation, keys=keys, calls=calls, state=state, offset=offset, base=relation.base, block=block
    )


def _check_one_column(context: Context, names: list[str], offset: int) -> None:
    if len(names) != 1:
        message = f"a scalar sub-query has one column, found {len(names)}"
        raise context.source.error(message, offset, "select one column")


def _several_rows(context: Context, offset: int) -> Exception:
    return context.source.error(
        "this scalar sub-query may have more than one row",
        offset,
        "aggregate it, such as (SELECT MAX(x) FROM ...), or join the tables",
    )


def _has_one_row(context: Context, relation: Relation, keys: frozenset[int]) -> bool:
    """Whether at most one row of ``relation`` has given values of ``keys``."""
    below = relation
    while isinstance(below, Calc):
        below = below.input
    if isinstance(below, Join):  # what is a key of it is known only later
        return False
    tables = {name: entry.table for name, entry in context.catalog.tables.items()}
    return any(key <= keys for key in unique_keys(relation, tables))


class _Block:
    """A sub-query that is one SELECT, and may refer to the block around it in its WHERE."""

    def __init__(
        self, context: Context, environment: Environment, scope: Scope, node: exp.Expr, select: exp.Select
    ) -> None:
        self.context = context
        self.block = environment.block
        self.select = select
        self.exists = isinstance(node, exp.Exists)
        self.offset = offset_of(node)
        self.grouped = grouping.is_grouped(context, select)
        own = queries.block_hints(context, environment, select, aggregates=True)
        self.found: From = from_clause.build_from(context, environment, select, own, scope)
        self.input, correlated = subqueries.filtered_block(context, environment, self.found, select, own)
        self.own = {f.id for f in self.input.fields}
        self.state = StateInput(name=self.found.name, hint=own.of(self.found.name))
        self.equalities = tuple(self._equality(part) for part in correlated)
        self.keys = tuple(dict.fromkeys(inner for inner, _, _ in self.equalities))

    def _equality(self, part: Expr) -> tuple[Expr, Expr, Expr]:
        """The inner side of a condition on the outer block, the outer side, and the whole."""
        if isinstance(part, Call) and part.function == "=":
            for inner, outer in (part.args, part.args[::-1]):
                sides = [{f.id in self.own for f in fields_of(e)} for e in (inner, outer)]
                if sides == [{True}, {False}]:
                    return inner, outer, part
        raise self.context.source.error(
            "a scalar sub-query can refer to the outer block by equality only",
            part.offset or self.offset,
            "write inner.column = outer.column, or join the tables and group the result",
        )

    def value(self) -> Value:
        if self.exists and not self.grouped:
            return self._exists()
        if self.exists or self.select.args.get("distinct"):
            advice = "put it in WHERE, joined to the rest with AND" if self.exists else "aggregate the column"
            what = "EXISTS of an aggregate" if self.exists else "a sub-query with DISTINCT"
            raise self.context.source.error(f"{what} is not supported here", self.offset, advice)
        scope = self.found.scope
        functions = self.context.catalog.functions
        translator = Translator(source=self.context.source, scope=scope, clause="SELECT", functions=functions)
        if not self.grouped:
            return self._one_row(translator)
        return self._aggregated(
            Translator(source=self.context.source, scope=scope, clause="SELECT", functions=functions, aggregates=True)
        )

    def _selected(self, translator: Translator) -> Expr:
        found = queries.projections(self.context, self.select, translator)
        _check_one_column(self.context, [name for name, _ in found], self.offset)
        self._check_own(found[0][1])
        return found[0][1]

    def _check_own(self, expression: Expr) -> None:
        for e in walk(expression):
            if isinstance(e, Ref) and e.field.id not in self.own:
                raise self.context.source.error(
                    "a scalar sub-query can refer to the outer block in its WHERE only",
                    e.offset,
                    "compute with the value outside the sub-query",
                )

    def contains(self, asked: Expr) -> Value:
        """Whether the one column of the sub-query has the value ``asked``."""
        functions = self.context.catalog.functions
        selected = self._selected(
            Translator(source=self.context.source, scope=self.found.scope, clause="SELECT", functions=functions)
        )
        inner, outer = comparable(self.context.source, "IN", (selected, asked), self.offset)
        same = call("=", (inner, outer), BOOLEAN, self.offset)
        self.equalities = ((inner, outer, same), *self.equalities)
        self.keys = tuple(dict.fromkeys(each for each, _, _ in self.equalities))
        return self._exists()

    def _exists(self) -> Value:
        if not self.keys:
            count = _count(self.context)
            grouped = _aggregate(self.input, (), (count,), self.state, self.offset, self.block)
            return Value(relation=grouped, on=(), worth=_is_some(count, self.offset), offset=self.offset)
        relation, keys, _ = self._columns([])
        grouped = _aggregate(relation, keys, (), self.state, self.offset, self.block)
        found = call("IS NOT NULL", (Ref(field=keys[0]),), BOOLEAN, self.offset)
        return Value(relation=grouped, on=self._on(keys), worth=found, offset=self.offset)

    def _one_row(self, translator: Translator) -> Value:
        """A column of rows that are unique by what they are compared by."""
        selected = self._selected(translator)
        relation, keys, (column,) = self._columns([selected])
        if not _has_one_row(self.context, relation, frozenset(f.id for f in keys)):
            raise _several_rows(self.context, self.offset)
        return Value(relation=relation, on=self._on(keys), worth=Ref(field=column), offset=self.offset)

    def _aggregated(self, translator: Translator) -> Value:
        selected = self._selected(translator)
        having = self.select.args.get("having")
        conditions: tuple[Expr, ...] = ()
        if having is not None:
            conditions = conjuncts(translator.condition(having.this))
        groups = self._groups(translator)
        calls = tuple(
            dict.fromkeys(e for root in (selected, *conditions) for e in walk(root) if isinstance(e, AggregateCallExpr))
        )
        wanted = [e for c in calls for e in (c.argument, c.filter) if e is not None]
        relation, keys, columns = self._columns(wanted)
        columns_of = dict(zip(wanted, columns, strict=True))
        items = tuple(
            AggregateItem(
                field=self.context.field("", c.type),
                function=c.function,
                distinct=c.distinct,
                argument=None if c.argument is None else columns_of[c.argument],
                filter=None if c.filter is None else columns_of[c.filter],
                separator=c.separator,
            )
            for c in calls
        )
        grouped = _aggregate(relation, keys, items, self.state, select_offset(self.select), self.block)
        results: dict[Expr, Expr] = {k: Ref(field=f) for k, f in zip(self.keys, keys, strict=True) if k in groups}
        results |= {c: Ref(field=item.field) for c, item in zip(calls, items, strict=True)}
        below = tuple(self._over(condition, results) for condition in conditions)
        if self.keys and not groups and not conditions:  # of no rows, for which there is no group
            results |= {
                c: call("coalesce", (results[c], literal(0, BIGINT)), BIGINT, c.offset)
                for c in calls
                if c.function == "COUNT"
            }
        return Value(
            relation=queries.filtered(grouped, below, self.block),
            on=self._on(keys),
            worth=self._over(selected, results),
            offset=self.offset,
        )

    def _groups(self, translator: Translator) -> tuple[Expr, ...]:
        """What the sub-query itself groups by: only what it is compared by, or it would have several rows."""
        group = self.select.args.get("group")
        if group is None:
            return ()
        found = tuple(translator.expression(node) for node in group.expressions)
        if any(e not in self.keys for e in found):
            raise _several_rows(self.context, self.offset)
        return found

    def _over(self, expression: Expr, results: Mapping[Expr, Expr]) -> Expr:
        found = rewrite(expression, results.get)
        for e in walk(found):
            if isinstance(e, Ref) and e.field.id in self.own and e not in results.values():
                raise self.context.source.error(
                    f"column '{e.field.name}' is neither grouped nor aggregated",
                    e.offset,
                    f"aggregate it, such as MAX({e.field.name})",
                )
        return found

    def _columns(self, wanted: list[Expr]) -> tuple[Relation, tuple[Field, ...], tuple[Field, ...]]:
        """The rows that can be compared, with the keys and all that is ``wanted`` as columns, and these columns."""
        computed: list[Item] = []
        keys, columns = (
            tuple(grouping.column_for(self.context, e, computed) for e in part) for part in (self.keys, wanted)
        )
        nullable = (k for k in self.keys if may_be_null(self.context, self.input, k))
        rows = queries.filtered(
            self.input, tuple(call("IS NOT NULL", (k,), BOOLEAN, self.offset) for k in nullable), self.block
        )
        if computed:
            items = (*identity(rows.fields), *computed)
            rows = Calc(input=rows, filter=None, items=items, base=rows.base, block=self.block)
        return rows, keys, columns

    def _on(self, keys: tuple[Field, ...]) -> tuple[Expr, ...]:
        fields = dict(zip(self.keys, keys, strict=True))
        return tuple(
            call("=", (Ref(field=fields[inner], offset=inner.offset), outer), BOOLEAN, whole.offset)
            for inner, outer, whole in self.equalities
        )
