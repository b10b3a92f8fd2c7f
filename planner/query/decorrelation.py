"""Decorrelation turns a query that reads columns of its outer block into a query that can be joined with that block.

The query is compiled first, with references to fields that no part of it produces. Decorrelation then computes it for
all values of the outer block at once. Each expression over outer fields becomes a column of the rows, on which the
outer block is joined. If a condition equates such an expression with a column of the query, this column is used.
Otherwise the rows are joined with the distinct values in the outer block, the query's
:class:`hintplan.planner.query.domains.Domain`.

Aggregates also group by these columns. Row numbers and windows are also partitioned by them, and the two sides of a
join must agree on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import is_not_distinct
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    Call,
    Expr,
    Field,
    FieldRef,
    call,
    conjunction,
    factored_conjuncts,
    literal,
    referenced_fields,
    replace_outermost,
)
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.properties.unique_keys import unique_keys
from hintplan.planner.query.domains import Domain, outer_values
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCache,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalOver,
    LogicalRowNumber,
    LogicalScan,
    LogicalSort,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
    UnnamedInput,
    identity,
    inputs_of,
    map_inputs,
)
from hintplan.planner.translation.aggregates import check_retracts
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators.rank import NUMBER_TYPE

Equality = tuple[Expr, Expr, Expr]
"""A value of the query, a value of the outer block, and the comparison of both."""

_APPROXIMATE = ("FLOAT", "DOUBLE", "ARRAY", "MAP", "MULTISET", "ROW")
"""The types whose values may compare as equal without being identical."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorrelated:
    """A query without references to the outer block, ``relation``, with its rows for each value of that block.

    The outer block joins it by ``equalities``, and also by the values of ``domain`` unless that is None.
    """

    relation: Relation
    equalities: tuple[Equality, ...]
    domain: Domain | None

    @property
    def on(self) -> tuple[Expr, ...]:
        """Return the equalities as conditions."""
        return tuple(whole for _, _, whole in self.equalities)

    @property
    def keys(self) -> tuple[Field, ...]:
        """Return the columns of the query that are compared with the outer block."""
        own = tuple(inner.field for inner, _, _ in self.equalities if isinstance(inner, FieldRef))
        return own if self.domain is None else (*own, *self.domain.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The column of a relation that holds a value of the outer block.

    A ``bound`` column comes from an equality, and so is never NULL.
    """

    field: Field
    bound: bool


_Held = dict[Expr, _Column]


@dataclass(slots=True, kw_only=True)
class _Query:
    """A query to decorrelate: the ids of its ``own`` fields, and the ``places`` where outer values are joined to it."""

    context: Context
    block: str
    offset: int
    own: frozenset[int]
    values: dict[Expr, Field] = field(default_factory=dict)
    places: list[tuple[LogicalValues, tuple[Expr, ...]]] = field(default_factory=list)

    def outer(self, expressions: Iterable[Expr]) -> list[Expr]:
        """Return the values of the outer block that ``expressions`` read, each once."""
        return outer_values(self.context, expressions, self.own, self.offset)

    def is_correlated(self, relation: Relation) -> bool:
        """Return True if ``relation`` reads fields of the outer block."""
        return any(f.id not in self.own for f in _read(relation)) or any(map(self.is_correlated, inputs_of(relation)))


def is_correlated(relation: Relation) -> bool:
    """Return True if ``relation`` reads fields that no part of it produces."""
    produced = _produced(relation)
    return any(f.id not in produced for f in _all_read(relation))


def decorrelated(context: Context, relation: Relation, block: str, offset: int, *, group: bool = False) -> Decorrelated:
    """Return ``relation`` without references to the outer block, and the values that join it to that block.

    ``group`` is true for an aggregate without keys whose reader supplies the row for empty input.
    """
    own = _produced(relation)
    query = _Query(context=context, block=block, offset=offset, own=own)
    if group and isinstance(relation, LogicalAggregate):
        below, held = _for_each(query, relation.input)
        result: Relation = _grouped(relation, below, held)
    else:
        result, held = _for_each(query, relation)
    equalities = tuple(
        (
            FieldRef(field=column.field),
            outer,
            compared("=", (FieldRef(field=column.field), outer), outer.offset or offset),
        )
        for outer, column in held.items()
        if column.bound
    )
    if not query.places:
        return Decorrelated(relation=result, equalities=equalities, domain=None)
    if not context.batch:
        _check_taken_back(context, result)
    place = LogicalValues(fields=tuple(query.values.values()), rows=(), base=(), block=block)
    domain = Domain(
        items=tuple(Item(field=f, expr=e) for e, f in query.values.items()),
        shown=tuple(Item(field=column.field, expr=e) for e, column in held.items() if not column.bound),
        place=place,
        offset=offset,
        called="a sub-query that is computed for each value of the block around it",
    )
    sources = {id(joined): _source(query, place, joined, values) for joined, values in query.places}
    return Decorrelated(relation=_put(result, sources), equalities=equalities, domain=domain)


def _check_taken_back(context: Context, relation: Relation) -> None:
    """Refuse user-defined functions that cannot retract rows.

    The rows of a value are retracted when the outer block loses the value.
    """
    for node in _all(relation):
        if isinstance(node, LogicalAggregate):
            for item in node.calls:
                check_retracts(context, item.function, node.offset)


def _produced(relation: Relation) -> frozenset[int]:
    return (
        frozenset(f.id for each in _all(relation) for f in each.fields)
        | frozenset(f.id for each in _all(relation) if isinstance(each, LogicalLookupJoin) for f in each.fetched)
        | frozenset(
            f.id for each in _all(relation) if isinstance(each, LogicalCorrelate | LogicalUnnest) for f in each.returned
        )
    )


def _all(relation: Relation) -> Iterator[Relation]:
    yield relation
    for each in inputs_of(relation):
        yield from _all(each)


def _all_read(relation: Relation) -> Iterator[Field]:
    return (f for each in _all(relation) for f in _read(each))


def _read(relation: Relation) -> Iterator[Field]:
    """Return the fields that expressions of ``relation`` itself name."""
    return (f for e in _expressions(relation) for f in referenced_fields(e))


def _expressions(relation: Relation) -> tuple[Expr, ...]:
    match relation:
        case LogicalCalc():
            return (*factored_conjuncts(relation.filter), *(i.expr for i in relation.items))
        case LogicalJoin() | LogicalLookupJoin():
            return relation.on
        case LogicalCorrelate():
            return relation.arguments
        case LogicalUnnest():
            return (relation.collection,)
        case _:  # other relations read only columns of their inputs
            return ()


def _for_each(query: _Query, relation: Relation) -> tuple[Relation, _Held]:
    """Compute ``relation`` for each value of the outer block; return the rows and the columns with these values."""
    if not query.is_correlated(relation):
        return relation, {}
    match relation:
        case LogicalCalc():
            below, held = _for_each(query, relation.input)
            return _calc(query, relation, below, held)
        case LogicalJoin():
            return _join(query, relation)
        case LogicalAggregate():
            return _aggregate(query, relation)
        case LogicalUnion():
            return _union(query, relation)
        case LogicalSort():
            return _first(query, relation)
        case LogicalRowNumber() | LogicalOver():
            below, held = _for_each(query, relation.input)
            return replace(relation, input=below, partition=(*_fields(held), *relation.partition)), held
        case LogicalWindow():
            below, held = _for_each(query, relation.input)
            keys = (*_fields(held), *relation.keys) if relation.is_session else ()
            return replace(relation, input=below, keys=keys), held
        case LogicalExpand():
            below, held = _for_each(query, relation.input)
            return replace(relation, input=below, passed=(*_fields(held), *relation.passed)), held
        case LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            return _called(query, relation)
        case LogicalCache():
            message = "a cached result cannot refer to the block around its sub-query"
            raise query.context.source.error(message, query.offset, "remove the hint, or join the tables")
        case LogicalScan() | LogicalValues() | LogicalWatermark() | LogicalWindowAggregate():
            return relation, {}  # passes create the last two later


def _fields(held: _Held) -> tuple[Field, ...]:
    return tuple(column.field for column in held.values())


def _refs(held: _Held) -> dict[Expr, Expr]:
    return {e: FieldRef(field=column.field, offset=e.offset) for e, column in held.items()}


def _over(expression: Expr, known: Mapping[Expr, Expr]) -> Expr:
    return replace_outermost(expression, known.get)


def _calc(query: _Query, calc: LogicalCalc, below: Relation, held: _Held) -> tuple[Relation, _Held]:
    """Put ``calc`` over ``below``; a column that its filter equates with an outer value is used as that value."""
    context, parts = query.context, factored_conjuncts(calc.filter)
    replacements = _refs(held)
    wanted = query.outer(_expressions(calc))
    bound: dict[Expr, Expr] = {}
    filters: list[Expr] = []
    for part in parts:
        binding = _binding(query, part)
        if binding is None or binding[0] in replacements:
            filters.append(part)
            continue
        value, inner = binding
        replacements[value] = bound[value] = inner
        if may_be_null(context, below, inner):
            filters.append(call("IS NOT NULL", (inner,), BOOLEAN, part.offset))
    below, held = _with_values(query, below, held, [e for e in wanted if e not in bound])
    replacements |= _refs(held)
    columns = {e: _Column(field=context.field(_name(e), inner.type), bound=True) for e, inner in bound.items()}
    items = (
        *identity(_fields(held)),
        *(Item(field=column.field, expr=bound[e]) for e, column in columns.items()),
        *(replace(i, expr=_over(i.expr, replacements)) for i in calc.items),
    )
    result = replace(calc, input=below, filter=conjunction(tuple(_over(f, replacements) for f in filters)), items=items)
    return result, {**held, **columns}


def _name(expression: Expr) -> str:
    return expression.field.name if isinstance(expression, FieldRef) else ""


def _binding(query: _Query, part: Expr) -> tuple[Expr, Expr] | None:
    """Return the outer value and the value of the query that the condition ``part`` equates, or None."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for outer, inner in (part.args, part.args[::-1]):
        sides = [{f.id in query.own for f in referenced_fields(e)} for e in (outer, inner)]
        same_type = outer.type.as_nullable() == inner.type.as_nullable()
        if sides == [{False}, {True}] and same_type and outer.type.root not in _APPROXIMATE:
            return outer, inner
    return None


def _with_values(query: _Query, relation: Relation, held: _Held, wanted: Sequence[Expr]) -> tuple[Relation, _Held]:
    """Join ``relation`` with the values in ``wanted`` that it does not hold yet."""
    missing = tuple(e for e in wanted if e not in held)
    if not missing:
        return relation, held
    for e in missing:
        query.values.setdefault(e, query.context.field(_name(e), e.type))
    columns = {e: _Column(field=query.context.field(_name(e), e.type), bound=False) for e in missing}
    place = LogicalValues(fields=_fields(columns), rows=(), base=(), block=query.block)
    query.places.append((place, missing))
    joined = LogicalJoin(
        left=place,
        right=relation,
        join_type="inner",
        on=(),
        items=identity((*place.fields, *relation.fields)),
        states=(UnnamedInput, UnnamedInput),
        offset=query.offset,
        base=relation.base,
        block=query.block,
    )
    return joined, {**columns, **held}


def _source(query: _Query, place: LogicalValues, held: LogicalValues, values: tuple[Expr, ...]) -> Relation:
    """Return the rows of ``place`` with the columns of ``held``, which hold some of its ``values``."""
    items = tuple(Item(field=f, expr=FieldRef(field=query.values[e])) for f, e in zip(held.fields, values, strict=True))
    columns = LogicalCalc(input=place, filter=None, items=items, base=(), block=query.block)
    if len(values) == len(query.values):
        return columns
    return LogicalAggregate(
        input=columns,
        keys=columns.fields,
        calls=(),
        state=UnnamedInput,
        offset=query.offset,
        base=(),
        block=query.block,
    )


def _put(relation: Relation, sources: Mapping[int, Relation]) -> Relation:
    replacement = sources.get(id(relation))
    return replacement if replacement is not None else map_inputs(relation, lambda below: _put(below, sources))


def _same(query: _Query, left: tuple[Relation, _Held], right: tuple[Relation, _Held]) -> tuple[Expr, ...]:
    """Return the conditions under which two relations agree on the outer values that both hold."""
    conditions: list[Expr] = []
    for e, mine in left[1].items():
        other = right[1].get(e)
        if other is None:
            continue
        pair = FieldRef(field=mine.field), FieldRef(field=other.field)
        if mine.bound or other.bound:
            conditions.append(compared("=", pair, query.offset))
        else:
            conditions.append(is_not_distinct(query.context.source, "a sub-query", *pair, query.offset))
    return tuple(conditions)


def _join(query: _Query, join: LogicalJoin) -> tuple[Relation, _Held]:
    left, right = (_for_each(query, side) for side in (join.left, join.right))
    kind, own = join.join_type, query.outer(join.on)
    wanted = list(dict.fromkeys((*left[1], *right[1], *own)))
    # A row without a partner needs the values of its own side.
    if kind in ("left", "semi", "anti", "full"):
        left = _with_values(query, *left, wanted)
    if kind in ("right", "full"):
        right = _with_values(query, *right, wanted)
    held = {**right[1], **left[1]}
    if kind == "inner":
        held |= {e: column for e, column in right[1].items() if column.bound}
    elif kind == "right":
        held = right[1]
    replacements = _refs(held)
    missing = [e for e in own if e not in held]  # only for an inner join, whose conditions may move above it
    above = [part for part in join.on if any(e in missing for e in query.outer([part]))]
    on = tuple(_over(part, replacements) for part in join.on if part not in above)
    shown = _fields(left[1]) if kind in ("semi", "anti") else (*_fields(left[1]), *_fields(right[1]))
    joined: Relation = replace(
        join,
        left=left[0],
        right=right[0],
        on=(*on, *_same(query, left, right)),
        items=(*identity(shown), *join.items),
    )
    if kind == "full":
        return _either(query, join, joined, left[1], right[1])
    if above:
        calc = LogicalCalc(
            input=joined,
            filter=conjunction(tuple(above)),
            items=identity(join.fields),
            base=join.base,
            block=join.block,
        )
        return _calc(query, calc, joined, held)
    return joined, held


def _either(query: _Query, join: LogicalJoin, joined: Relation, left: _Held, right: _Held) -> tuple[Relation, _Held]:
    """Return a FULL JOIN that takes each outer value from whichever side has a row."""
    held: _Held = {}
    items: list[Item] = []
    for e, mine in left.items():
        other = right[e]
        values = (FieldRef(field=mine.field), FieldRef(field=other.field))
        column = _Column(field=query.context.field(_name(e), mine.field.type), bound=mine.bound and other.bound)
        items.append(Item(field=column.field, expr=call("coalesce", values, mine.field.type, query.offset)))
        held[e] = column
    items += identity(join.fields)
    return LogicalCalc(input=joined, filter=None, items=tuple(items), base=join.base, block=join.block), held


def _grouped(aggregate: LogicalAggregate, below: Relation, held: _Held) -> LogicalAggregate:
    return replace(aggregate, input=below, keys=(*_fields(held), *aggregate.keys))


def _aggregate(query: _Query, aggregate: LogicalAggregate) -> tuple[Relation, _Held]:
    below, held = _for_each(query, aggregate.input)
    if aggregate.keys:
        return _grouped(aggregate, below, held), held
    # Without keys, empty input gives a row, too: one for each value of the outer block.
    context = query.context
    fresh = {c.field.id: context.field(c.field.name, c.field.type) for c in aggregate.calls}
    calls = tuple(replace(c, field=fresh[c.field.id]) for c in aggregate.calls)
    grouped = _grouped(replace(aggregate, calls=calls), below, held)
    columns = {e: _Column(field=context.field(_name(e), e.type), bound=False) for e in held}
    for e in held:
        query.values.setdefault(e, context.field(_name(e), e.type))
    place = LogicalValues(fields=_fields(columns), rows=(), base=(), block=query.block)
    query.places.append((place, tuple(held)))
    joined = LogicalJoin(
        left=place,
        right=grouped,
        join_type="left",
        on=_same(query, (place, columns), (grouped, held)),
        items=identity((*place.fields, *grouped.fields)),
        states=(UnnamedInput, UnnamedInput),
        offset=query.offset,
        base=aggregate.base,
        block=aggregate.block,
    )
    items = tuple(
        Item(field=old.field, expr=_or_none(new.function, FieldRef(field=new.field)))
        for old, new in zip(aggregate.calls, calls, strict=True)
    )
    result = LogicalCalc(
        input=joined, filter=None, items=(*identity(place.fields), *items), base=aggregate.base, block=aggregate.block
    )
    return result, columns


def _or_none(function: str, value: Expr) -> Expr:
    if function != "COUNT":
        return value
    return call("coalesce", (value, literal(0, value.type)), value.type, value.offset)


def _union(query: _Query, union: LogicalUnion) -> tuple[Relation, _Held]:
    context = query.context
    branches = [_for_each(query, branch) for branch in union.inputs]
    wanted = list(dict.fromkeys(e for _, held in branches for e in held))
    branches = [_with_values(query, *branch, wanted) for branch in branches]
    columns = {
        e: _Column(field=context.field(_name(e), e.type), bound=all(held[e].bound for _, held in branches))
        for e in wanted
    }
    inputs = tuple(
        LogicalCalc(
            input=relation,
            filter=None,
            items=(
                *(Item(field=context.field(_name(e), e.type), expr=FieldRef(field=held[e].field)) for e in wanted),
                *identity(branch.fields),
            ),
            base=branch.base,
            block=branch.block,
        )
        for branch, (relation, held) in zip(union.inputs, branches, strict=True)
    )
    return replace(union, inputs=inputs, fields=(*_fields(columns), *union.fields)), columns


def _first(query: _Query, sort: LogicalSort) -> tuple[Relation, _Held]:
    """Keep the first rows for each value of the outer block; drop an order without a limit, which has no effect."""
    source, place = query.context.source, sort.place or query.offset
    below, held = _for_each(query, sort.input)
    nothing = sort.limit == 0
    if frozenset[int]() in unique_keys(sort.input, query.context.plan_tables()):  # one row, whatever the order
        nothing = nothing or sort.offset > 0
        if not nothing:
            return below, held
    if nothing:
        items, never = identity(below.fields), literal("FALSE", BOOLEAN)
        return LogicalCalc(input=below, filter=never, items=items, base=sort.base, block=sort.block), held
    if sort.limit is None:
        if sort.offset:
            message = "OFFSET without LIMIT in a sub-query that refers to the block around it is not supported"
            raise source.error(message, place, "add LIMIT, or filter by ROW_NUMBER()")
        return below, held
    if not sort.order:
        raise source.error("rows of a batch job have no order of arrival", place, "add ORDER BY")
    first = LogicalRowNumber(
        input=below,
        partition=_fields(held),
        order=sort.order,
        latest=False,
        by_time=False,
        number=query.context.field("", parse_type(NUMBER_TYPE)),
        is_shown=False,
        first=sort.offset + 1,
        last=sort.offset + sort.limit,
        base=sort.base,
        block=sort.block,
    )
    return first, held


def _called(query: _Query, relation: LogicalLookupJoin | LogicalCorrelate | LogicalUnnest) -> tuple[Relation, _Held]:
    below, held = _for_each(query, relation.input)
    below, held = _with_values(query, below, held, query.outer(_expressions(relation)))
    replacements, items = _refs(held), (*identity(_fields(held)), *relation.items)
    match relation:
        case LogicalLookupJoin():
            on = tuple(_over(part, replacements) for part in relation.on)
            return replace(relation, input=below, on=on, items=items), held
        case LogicalCorrelate():
            arguments = tuple(_over(argument, replacements) for argument in relation.arguments)
            return replace(relation, input=below, arguments=arguments, items=items), held
        case LogicalUnnest():
            return replace(
                relation, input=below, collection=_over(relation.collection, replacements), items=items
            ), held
