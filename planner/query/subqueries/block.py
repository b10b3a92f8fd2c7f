"""A sub-query that is one SELECT and may refer to the outer block in its WHERE."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.typed import BOOLEAN, Call, Expr, Field, FieldRef, call, referenced_fields, walk
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query.columns import column_for, filtered, projections
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.decorrelation import Equality, decorrelated, is_correlated
from hintplan.planner.query.domains import Domain, domain_of
from hintplan.planner.query.from_clause import build_from
from hintplan.planner.query.hint_scope import block_hints
from hintplan.planner.query.subqueries.plain_blocks import check_idle
from hintplan.planner.query.subqueries.single_values import check_column_count, is_unique_by
from hintplan.planner.query.subquery_kinds import is_grouped
from hintplan.planner.query.where_clause import filtered_block
from hintplan.planner.relations import Item, LogicalCalc, LogicalJoin, Relation, StateInput, UnnamedInput, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQueryBlock:
    """A sub-query at ``node`` that is one SELECT: its rows, and the names that it can use.

    ``equalities`` compare the rows with the outer block: each holds the inner side, the outer side and the comparison.
    ``name`` is the name of the outer block. ``state`` is the input that a hint for an aggregate of the rows names.

    If some comparisons are not equalities, ``rows`` are joined with a ``domain``, which replaces all comparisons. Then
    ``unique`` is True if at most one row matches each value of the domain.
    """

    context: Context
    name: str
    node: exp.Expr
    select: exp.Select
    rows: Relation
    scope: Scope
    state: StateInput
    equalities: tuple[Equality, ...]
    domain: Domain | None = None
    unique: bool = False

    @property
    def exists(self) -> bool:
        """Return True if only the existence of a row matters."""
        return isinstance(self.node, exp.Exists)

    @property
    def grouped(self) -> bool:
        """Return True if the sub-query aggregates."""
        return is_grouped(self.select)

    @property
    def offset(self) -> int:
        """Return the offset of the sub-query in the SQL text."""
        return offset_of(self.node)

    @property
    def own(self) -> frozenset[int]:
        """Return the ids of the sub-query's own columns."""
        return frozenset(f.id for f in self.rows.fields)

    @property
    def keys(self) -> tuple[Expr, ...]:
        """Return the expressions over its rows that are compared with the outer block, and the domain's columns."""
        values = () if self.domain is None else tuple(FieldRef(field=f) for f in self.domain.fields)
        return tuple(dict.fromkeys((*(inner for inner, _, _ in self.equalities), *values)))


def read_block(
    compiler: QueryCompiler, scope: Scope, node: exp.Expr, select: exp.Select, written: exp.Select
) -> SubQueryBlock:
    """Compile the sub-query ``select`` at ``node``, in a block that can use the names of ``scope``.

    ``written`` is the original sub-query, which may have clauses without effect.
    """
    context = compiler.context
    aggregates = is_grouped(select) or not isinstance(node, exp.Query)
    hints = block_hints(context, compiler.environment, select, aggregates=aggregates)
    source = build_from(compiler, select, hints, scope)
    rows, correlated = filtered_block(compiler, source, select, hints, aggregates=aggregates)
    if isinstance(node, exp.Exists) or written is not select:
        check_idle(compiler, written, source, rows)
    block = SubQueryBlock(
        context=context,
        name=compiler.block,
        node=node,
        select=select,
        rows=rows,
        scope=source.scope,
        state=StateInput(name=source.name, hint=hints.of(source.name)),
        equalities=(),
    )
    if is_correlated(rows):
        whole = decorrelated(context, filtered(rows, correlated, block.name), block.name, block.offset)
        return replace(block, rows=whole.relation, equalities=whole.equalities, domain=whole.domain)
    equalities = tuple(filter(None, (_equality(block, part) for part in correlated)))
    if len(equalities) == len(correlated):
        return replace(block, equalities=equalities)
    domain, on = domain_of(context, correlated, block.own, block.name, block.offset)
    joined = LogicalJoin(
        left=domain.place,
        right=rows,
        join_type="inner",
        on=on,
        items=identity((*domain.fields, *rows.fields)),
        states=(UnnamedInput, UnnamedInput),
        offset=block.offset,
        base=rows.base,
        block=block.name,
    )
    keys = frozenset(inner.field.id for inner, _, _ in equalities if isinstance(inner, FieldRef))
    return replace(block, rows=joined, domain=domain, unique=is_unique_by(context, rows, keys))


def _equality(block: SubQueryBlock, part: Expr) -> Equality | None:
    """Return the inner side, the outer side and the whole of an equality with the outer block, or None."""
    if isinstance(part, Call) and part.function == "=":
        for inner, outer in (part.args, part.args[::-1]):
            sides = [{f.id in block.own for f in referenced_fields(e)} for e in (inner, outer)]
            if sides == [{True}, {False}]:
                return inner, outer, part
    return None


def selected_columns(block: SubQueryBlock, translator: Translator) -> tuple[Expr, ...]:
    """Return the columns of the sub-query, or none for EXISTS, after checking them."""
    columns = tuple(e for _, e in projections(block.context, block.select, translator))
    if block.exists:
        return ()
    check_column_count(block.context, block.node, len(columns))
    for expression in columns:
        _check_own(block, expression)
    return columns


def _check_own(block: SubQueryBlock, expression: Expr) -> None:
    for e in walk(expression):
        if isinstance(e, FieldRef) and e.field.id not in block.own:
            raise block.context.source.error(
                "a scalar sub-query can refer to the outer block in its WHERE only",
                e.offset,
                "compute with the value outside the sub-query",
            )


def block_columns(block: SubQueryBlock, wanted: list[Expr]) -> tuple[Relation, tuple[Field, ...], tuple[Field, ...]]:
    """Return the rows whose keys are not NULL, with columns for the keys and ``wanted``, and these columns."""
    computed: list[Item] = []
    keys, columns = (tuple(column_for(block.context, e, computed) for e in part) for part in (block.keys, wanted))
    compared_keys = dict.fromkeys(inner for inner, _, _ in block.equalities)
    nullable = (k for k in compared_keys if may_be_null(block.context, block.rows, k))
    rows = filtered(block.rows, tuple(call("IS NOT NULL", (k,), BOOLEAN, block.offset) for k in nullable), block.name)
    if computed:
        items = (*identity(rows.fields), *computed)
        rows = LogicalCalc(input=rows, filter=None, items=items, base=rows.base, block=block.name)
    return rows, keys, columns


def joined_on(block: SubQueryBlock, keys: tuple[Field, ...]) -> tuple[Expr, ...]:
    """Return the equalities with the outer block, except the ones with the domain."""
    fields = dict(zip(block.keys, keys, strict=True))
    return tuple(
        compared("=", (FieldRef(field=fields[inner], offset=inner.offset), outer), whole.offset)
        for inner, outer, whole in block.equalities
    )
