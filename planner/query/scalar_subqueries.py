"""Scalar sub-queries: ``(SELECT MAX(x) FROM t WHERE t.k = o.k)``, and EXISTS anywhere but on its own in WHERE.

Such a sub-query becomes an aggregate by the columns that it compares with the outer block, which a LEFT JOIN brings to
the rows of that block; without such columns it has one row, for all. Without GROUP BY, its SELECT list and HAVING are
computed above the join, so that no rows are a group, too, in which COUNT is 0; with GROUP BY they are computed below. A
condition of WHERE that cannot be true without a partner makes the join an inner one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from planner.context import Context, Environment
from planner.expressions.comparisons import compared
from planner.expressions.operands import comparable
from planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    INT,
    AggregateCallExpr,
    Call,
    Expr,
    Field,
    Ref,
    call,
    conjunction,
    conjuncts,
    fields_of,
    literal,
    rewrite,
    walk,
)
from planner.properties.nullability import may_be_null
from planner.properties.unique_keys import unique_keys
from planner.query import from_clause, grouping, ordering, queries, subqueries
from planner.query.cached_results import has_cached_hint
from planner.query.empty_groups import Group, group_of, may_hold_for_nothing, zero_if_absent
from planner.query.from_clause import From
from planner.query.subquery_values import Value
from planner.relations import Aggregate, AggregateItem, Calc, Item, Join, Relation, StateInput, UnnamedInput, identity
from planner.syntax.dialect import offset_of, select_offset
from planner.translation import aggregates
from planner.translation.expressions import clause_translator
from planner.translation.scope import Scope
from planner.translation.translator import Translator

__all__ = ["compile_values", "has_values", "is_one_group", "values_in"]


def values_in(node: exp.Expr, *, filters: bool = False) -> Iterator[exp.Expr]:
    """The scalar sub-queries and EXISTS in an expression; not what ALL and ANY read, nor what is aggregated.

    IN with a sub-query is one of them where its being NULL is as good as its being false: below AND and OR in what
    ``filters``; and wherever the sub-query is one group.
    """
    below = filters and isinstance(node, exp.And | exp.Or | exp.Paren)
    is_in = isinstance(node, exp.In) and node.args.get("query") is not None
    if isinstance(node, exp.Query | exp.Exists) or (is_in and (filters or is_one_group(node.args["query"]))):
        yield node
    elif not isinstance(node, exp.All | exp.Any | exp.Filter) and not _is_aggregate(node):
        for child in node.iter_expressions():
            if not (is_in and child is node.args.get("query")):
                yield from values_in(child, filters=below)


def is_one_group(query: exp.Expr) -> bool:
    """Whether ``query`` aggregates without GROUP BY, so that it has one row."""
    while isinstance(query, exp.Subquery) and not ordering.is_ordered(query):
        query = query.this
    return isinstance(query, exp.Select) and query.args.get("group") is None and grouping.is_grouped(query)


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
    context: Context,
    environment: Environment,
    translator: Translator,
    nodes: list[exp.Expr],
    *,
    filters: bool = False,
) -> dict[int, Value]:
    """The sub-queries in ``nodes`` by their place; ``translator`` is that of the block they stand in."""
    found = [each for node in nodes for each in values_in(node, filters=filters)]
    return {offset_of(_placed(node)): _value(context, environment, translator, node) for node in found}


def _placed(node: exp.Expr) -> exp.Expr:
    """The node whose place is that of the value: what stands before IN may be a value itself."""
    found: exp.Expr = node.args["query"] if isinstance(node, exp.In) else node
    return found


def _value(context: Context, environment: Environment, translator: Translator, node: exp.Expr) -> Value:
    query = node.args["query"] if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else node
    select = subqueries.plain_select(query)
    block = select is not None and _is_block(context, select)
    if block:
        assert select is not None
        queries.refuse_clauses(context, select)
    asked: tuple[Expr, ...] | None = None
    if isinstance(node, exp.In):
        if not is_one_group(query):
            value = translator.expression(node.this)
            return _in(context, environment, translator.scope, node, value, select if block else None)
        asked = tuple(map(translator.expression, _asked(node)))
    if not block:
        return _apart(context, environment, query, node, asked)
    assert select is not None
    return _Block(context, environment, translator.scope, node, select).value(asked)


def _asked(node: exp.Expr) -> list[exp.Expr]:
    """What stands before IN."""
    return list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]


def _apart(
    context: Context, environment: Environment, query: exp.Expr, node: exp.Expr, asked: tuple[Expr, ...] | None
) -> Value:
    """A query that is compiled by itself, as it cannot refer to the outer block."""
    relation = queries.build_query(context, environment, query)
    offset = offset_of(node)
    _check_columns(context, node, len(relation.fields))
    group = group_of(relation)
    if group is not None:
        return _of_group(context, node, group, (), asked)
    if isinstance(node, exp.Exists):
        count = _count(context)
        grouped = _aggregate(relation, (), (count,), UnnamedInput, offset, environment.block)
        return Value(relation=grouped, on=(), worth=_is_some(count, offset), offset=offset)
    if not _has_one_row(context, relation, frozenset()):
        raise _several_rows(context, offset)
    value = Ref(field=relation.fields[0], offset=offset)
    worth = value if asked is None else _same(context, relation.fields, asked, offset)
    return Value(relation=relation, on=(), worth=worth, offset=offset)


def _same(context: Context, values: Iterable[Expr | Field], asked: tuple[Expr, ...], offset: int) -> Expr:
    """Whether all that is ``asked`` equals the ``values``."""
    found = (e if not isinstance(e, Field) else Ref(field=e, offset=offset) for e in values)
    pairs = (comparable(context.source, "IN", pair, offset) for pair in zip(asked, found, strict=True))
    same = conjunction(tuple(compared("=", pair, offset) for pair in pairs))
    assert same is not None
    return same


def _of_group(
    context: Context, node: exp.Expr, group: Group, on: tuple[Expr, ...], asked: tuple[Expr, ...] | None
) -> Value:
    """A sub-query that is one group, if there are any rows or not; without its row if its HAVING is not true."""
    offset = offset_of(node)
    there = conjunction(group.conditions)
    if there is not None and not isinstance(node, exp.Query):
        there = call("coalesce", (there, literal("FALSE", BOOLEAN)), BOOLEAN, offset)
    if isinstance(node, exp.Exists):
        worth = literal("TRUE", BOOLEAN, offset) if there is None else there
        return Value(relation=None if there is None else group.relation, on=on, worth=worth, offset=offset)
    worth = group.values[0]
    if asked is not None:
        worth = _same(context, group.values, asked, offset)
        worth = worth if there is None else call("AND", (there, worth), BOOLEAN, offset)
    elif there is not None:
        worth = call("CASE", (there, worth, literal(None, worth.type)), worth.type, offset)
    return Value(relation=group.relation, on=on, worth=worth, offset=offset)


def _in(
    context: Context,
    environment: Environment,
    scope: Scope,
    node: exp.In,
    asked: Expr,
    select: exp.Select | None,
) -> Value:
    """``x IN (SELECT y ...)`` where NULL is as good as false: whether there is a group of ``y`` that equals ``x``."""
    offset = offset_of(node)
    if select is not None and not grouping.is_grouped(select):
        return _Block(context, environment, scope, node, select).contains(asked)
    relation = queries.build_query(context, environment, node.args["query"])
    _check_columns(context, node, len(relation.fields))
    key = Ref(field=relation.fields[0], offset=offset)
    pair = comparable(context.source, "IN", (key, asked), offset)
    if may_be_null(context, relation, key):
        known = call("IS NOT NULL", (key,), BOOLEAN, offset)
        relation = queries.filtered(relation, (known,), environment.block)
    grouped = _aggregate(relation, (key.field,), (), UnnamedInput, offset, environment.block)
    worth = call("IS NOT NULL", (key,), BOOLEAN, offset)
    return Value(relation=grouped, on=(compared("=", pair, offset),), worth=worth, offset=offset)


def _is_block(context: Context, select: exp.Select) -> bool:
    """Whether the FROM and WHERE of ``select`` say all about which rows there are."""
    if select.args.get("with_") or has_cached_hint(context, select_offset(select)):
        return False
    distinct = select.args.get("distinct") and not is_one_group(select)
    return not (context.batch and (ordering.is_ordered(select) or distinct))


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


def _check_columns(context: Context, node: exp.Expr, found: int) -> None:
    """Refuse a value of several columns, and IN of more or fewer than it asks for; EXISTS takes any."""
    wanted = len(_asked(node)) if isinstance(node, exp.In) else 1
    if isinstance(node, exp.Exists) or found == wanted:
        return
    columns = f"{found} column{'s' * (found != 1)}"
    message = f"a scalar sub-query has one column, found {found}"
    if isinstance(node, exp.In):
        message = f"IN compares {'one value' if wanted == 1 else f'{wanted} values'} with {columns}"
    advice = "select one column" if wanted == 1 else f"select {wanted} columns"
    raise context.source.error(message, offset_of(node), advice)


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
        self.node = node
        self.exists = isinstance(node, exp.Exists)
        self.offset = offset_of(node)
        self.grouped = grouping.is_grouped(select)
        aggregates = self.grouped or not isinstance(node, exp.Query)
        own = queries.block_hints(context, environment, select, aggregates=aggregates)
        self.found: From = from_clause.build_from(context, environment, select, own, scope)
        self.input, correlated = subqueries.filtered_block(
            context, environment, self.found, select, own, aggregates=aggregates
        )
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

    def value(self, asked: tuple[Expr, ...] | None) -> Value:
        """What the sub-query is worth: its value, or whether that is ``asked``, or whether it has a row."""
        one_group = self.grouped and self.select.args.get("group") is None
        if self.exists and not self.grouped:
            return self._exists()
        if not one_group and (self.exists or self.select.args.get("distinct")):
            advice = "put it in WHERE, joined to the rest with AND" if self.exists else "aggregate the column"
            what = "EXISTS of an aggregate" if self.exists else "a sub-query with DISTINCT"
            raise self.context.source.error(f"{what} is not supported here", self.offset, advice)
        scope = self.found.scope
        translator = clause_translator(self.context, scope, "SELECT")
        if not self.grouped:
            return self._one_row(translator)
        return self._aggregated(
            clause_translator(self.context, scope, "SELECT", aggregates=True),
            asked,
        )

    def _selected(self, translator: Translator) -> tuple[Expr, ...]:
        """The columns of the sub-query; none if it is not asked for any."""
        found = tuple(e for _, e in queries.projections(self.context, self.select, translator))
        if self.exists:
            return ()
        _check_columns(self.context, self.node, len(found))
        for expression in found:
            self._check_own(expression)
        return found

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
        (selected,) = self._selected(clause_translator(self.context, self.found.scope, "SELECT"))
        inner, outer = comparable(self.context.source, "IN", (selected, asked), self.offset)
        same = compared("=", (inner, outer), self.offset)
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
        (selected,) = self._selected(translator)
        relation, keys, (column,) = self._columns([selected])
        if not keys:
            items = (Item(field=self.context.field_for(selected, ""), expr=selected),)
            shown = Calc(input=self.input, filter=None, items=items, base=self.input.base, block=self.block)
            group = group_of(shown)
            if group is not None:
                return _of_group(self.context, self.node, group, (), None)
        if not _has_one_row(self.context, relation, frozenset(f.id for f in keys)):
            raise _several_rows(self.context, self.offset)
        return Value(relation=relation, on=self._on(keys), worth=Ref(field=column), offset=self.offset)

    def _aggregated(self, translator: Translator, asked: tuple[Expr, ...] | None) -> Value:
        selected = self._selected(translator)
        having = self.select.args.get("having")
        conditions: tuple[Expr, ...] = ()
        if having is not None:
            conditions = conjuncts(translator.condition(having.this))
        groups = self._groups(translator)
        calls = tuple(
            dict.fromkeys(
                e for root in (*selected, *conditions) for e in walk(root) if isinstance(e, AggregateCallExpr)
            )
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
        values = tuple(self._over(e, results) for e in selected)
        if self.select.args.get("group") is not None or (
            isinstance(self.node, exp.Query) and not all(map(may_hold_for_nothing, conditions))
        ):
            return self._of_groups(queries.filtered(grouped, below, self.block), keys, values[0])
        counts = {Ref(field=item.field) for item in items if item.function == "COUNT"}

        def absent(e: Expr) -> Expr | None:
            return zero_if_absent(e) if e in counts else None

        group = Group(
            relation=grouped,
            values=tuple(rewrite(e, absent) for e in values),
            conditions=tuple(rewrite(condition, absent) for condition in below),
        )
        return _of_group(self.context, self.node, group, self._on(keys), asked)

    def _of_groups(self, relation: Relation, keys: tuple[Field, ...], value: Expr) -> Value:
        """A value that is NULL without a group, whatever it is computed from."""
        if not isinstance(value, Ref):
            item = Item(field=self.context.field("", value.type), expr=value)
            relation = Calc(
                input=relation, filter=None, items=(*identity(keys), item), base=relation.base, block=self.block
            )
            value = Ref(field=item.field, offset=self.offset)
        return Value(relation=relation, on=self._on(keys), worth=value, offset=self.offset)

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
            compared("=", (Ref(field=fields[inner], offset=inner.offset), outer), whole.offset)
            for inner, outer, whole in self.equalities
        )
