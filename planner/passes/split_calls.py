"""Gives each call of a user-defined function an operator of its own.

Columns and literals are arguments directly; a calc below computes any other argument (FLIP-498, as in
``asyncTable(scalarFunction(x))``). The order is: the conditions of WHERE without calls, then each condition with a
call, then the expressions of SELECT. Equal calls over the same rows become one call, also of RAND and UUID, as in
Flink. A call in a branch of CASE, or after AND or OR within one condition, is made for each row that reaches its
operator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    USER,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    calls_user_code,
    conjunction,
    factored_conjuncts,
    is_drawn,
    is_user_call,
    walk,
)
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindowAggregate,
    Relation,
    identity,
    map_inputs,
)


def split_calls(context: Context, relation: Relation) -> Relation:
    """Replace all calls in ``relation`` by operators. The output remains the same."""
    relation_above = map_inputs(relation, lambda below: split_calls(context, below))
    match relation_above:
        case LogicalJoin():
            _refuse(context, relation_above.offset, "join", relation_above.condition)
        case LogicalLookupJoin():
            _refuse(
                context,
                relation_above.offset,
                "lookup join",
                relation_above.pre_filter,
                relation_above.filter,
                relation_above.condition,
            )
        case LogicalCorrelate():
            calls = _Calls(context, relation_above.input, relation_above.block)
            arguments = calls.arguments(relation_above.arguments)
            return replace(relation_above, input=calls.relation, arguments=arguments)
        case LogicalUnnest():
            calls = _Calls(context, relation_above.input, relation_above.block)
            return replace(relation_above, collection=calls.column(relation_above.collection), input=calls.relation)
        case LogicalCalc():
            return _calc(context, relation_above)
        case (
            LogicalScan()
            | LogicalValues()
            | LogicalUnion()
            | LogicalAggregate()
            | LogicalWindowAggregate()
            | LogicalExpand()
            | LogicalPassthrough()
        ):
            pass  # these have columns, and no expressions
        case _:
            assert_never(relation_above)
    return relation_above


def _refuse(context: Context, offset: int, what: str, *conditions: Expr | None) -> None:
    condition = next((c for c in conditions if c is not None and calls_user_code(c)), None)
    if condition is not None:
        calls = [e for e in walk(condition) if isinstance(e, Call) and is_user_call(e)]
        name = "RAND or UUID" if any(map(is_drawn, calls)) else "a user-defined function"
        raise context.source.error(
            f"{name} cannot be part of this condition of a {what}",
            getattr(condition, "offset", 0) or offset,
            "call it in a sub-query, and compare the column that it gives",
        )


def _calc(context: Context, calc: LogicalCalc) -> Relation:
    parts = factored_conjuncts(calc.filter)
    waiting = [p for p in parts if calls_user_code(p)]
    if not waiting and not any(calls_user_code(i.expr) for i in calc.items):
        return calc
    calls = _Calls(context, calc.input, calc.block)
    calls.keep(tuple(p for p in parts if p not in waiting))
    for part in waiting:
        calls.keep((calls.extracted(part),))
    items = tuple(replace(i, expr=calls.extracted(i.expr)) for i in calc.items)
    return replace(calc, input=calls.relation, filter=None, items=items)


class _Calls:
    """A relation, and the calls added on top of it, by function and arguments."""

    def __init__(self, context: Context, relation: Relation, block: str) -> None:
        self.context = context
        self.relation = relation
        self.block = block
        self.known: dict[Expr, Field] = {}

    def keep(self, parts: tuple[Expr, ...]) -> None:
        """Continue with the rows for which ``parts`` are true."""
        condition = conjunction(parts)
        if condition is not None:
            self._calc(condition, ())

    def extracted(self, expression: Expr) -> Expr:
        """Return ``expression`` with fields instead of its calls, innermost call first."""
        if not isinstance(expression, Call):
            return expression
        call = replace(expression, args=tuple(self.extracted(a) for a in expression.args))
        if not call.function.startswith(USER):
            return call
        if call not in self.known:
            self._call(call)
        return FieldRef(field=self.known[call], offset=expression.offset)

    def arguments(self, expressions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return fields and literals for ``expressions``. Relations below compute their calls and other expressions."""
        extracted = [self.extracted(e) for e in expressions]
        computed: dict[Expr, Field] = {}
        for e in extracted:
            if not isinstance(e, FieldRef | Literal) and e not in computed:
                computed[e] = self.context.field("", e.type)
        if computed:
            self._calc(None, tuple(Item(field=f, expr=e) for e, f in computed.items()))
        return tuple(FieldRef(field=computed[e]) if e in computed else e for e in extracted)

    def column(self, expression: Expr) -> FieldRef:
        """Return a field for ``expression``."""
        (argument,) = self.arguments((expression,))
        if isinstance(argument, FieldRef):
            return argument
        field = self.context.field("", argument.type)
        self._calc(None, (Item(field=field, expr=argument),))
        return FieldRef(field=field)

    def _calc(self, condition: Expr | None, computed: tuple[Item, ...]) -> None:
        self.relation = LogicalCalc(
            input=self.relation,
            filter=condition,
            items=(*identity(self.relation.fields), *computed),
            base=self.relation.base,
            block=self.block,
        )

    def _call(self, function_call: Call) -> None:
        name = function_call.function.removeprefix(USER)
        arguments = self.arguments(function_call.args)
        entry = self.context.catalog.function(name)
        returned = self.context.field(entry.function.output[0].name, function_call.type)
        result = self.context.field("", function_call.type)
        self.relation = LogicalCorrelate(
            input=self.relation,
            function=name,
            kind=entry.function.kind,
            join_type="inner",
            arguments=arguments,
            returned=(returned,),
            items=(*identity(self.relation.fields), Item(field=result, expr=FieldRef(field=returned))),
            offset=function_call.offset,
            base=self.relation.base,
            block=self.block,
        )
        self.known[function_call] = result
