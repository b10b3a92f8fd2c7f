"""Gives every call of a user-defined function an operator of its own, so that an operator makes one call.

What a call needs is computed below it: columns and literals are passed as they are, anything else comes from a calc
(FLIP-498, as ``asyncTable(scalarFunction(x))`` there). Of a WHERE clause, what needs no call is decided first, then one
condition after the other, then what SELECT computes; equal calls above the same rows are one call, also of RAND and
UUID, as in Flink. A call in a branch of CASE, or behind AND and OR inside one condition, is made for every row that
comes so far.
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
    Literal,
    Ref,
    calls_user_code,
    conjunction,
    conjuncts,
    is_drawn,
    is_user_call,
    walk,
)
from hintplan.planner.relations import (
    Aggregate,
    Calc,
    Correlate,
    Expand,
    Item,
    Join,
    LookupJoin,
    Passing,
    Relation,
    Scan,
    Union,
    Unnest,
    Values,
    identity,
    map_inputs,
)


def split_calls(context: Context, relation: Relation) -> Relation:
    """Make operators of all calls in ``relation``; its output stays the same."""
    found = map_inputs(relation, lambda below: split_calls(context, below))
    match found:
        case Join():
            _refuse(context, found.offset, "join", found.condition)
        case LookupJoin():
            _refuse(context, found.offset, "lookup join", found.pre_filter, found.filter, found.condition)
        case Correlate():
            calls = _Calls(context, found.input, found.block)
            arguments = calls.arguments(found.arguments)
            return replace(found, input=calls.relation, arguments=arguments)
        case Unnest():
            calls = _Calls(context, found.input, found.block)
            return replace(found, collection=calls.column(found.collection), input=calls.relation)
        case Calc():
            return _calc(context, found)
        case Scan() | Values() | Union() | Aggregate() | Expand() | Passing():
            pass  # they have columns, no expressions
        case _:
            assert_never(found)
    return found


def _refuse(context: Context, offset: int, what: str, *conditions: Expr | None) -> None:
    found = next((c for c in conditions if c is not None and calls_user_code(c)), None)
    if found is not None:
        calls = [e for e in walk(found) if isinstance(e, Call) and is_user_call(e)]
        name = "RAND or UUID" if any(map(is_drawn, calls)) else "a user-defined function"
        raise context.source.error(
            f"{name} cannot be part of this condition of a {what}",
            getattr(found, "offset", 0) or offset,
            "call it in a sub-query, and compare the column that it gives",
        )


def _calc(context: Context, calc: Calc) -> Relation:
    parts = conjuncts(calc.filter)
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
    """A relation, and the calls made on top of it so far, by what was called with what."""

    def __init__(self, context: Context, relation: Relation, block: str) -> None:
        self.context = context
        self.relation = relation
        self.block = block
        self.known: dict[Expr, Field] = {}

    def keep(self, parts: tuple[Expr, ...]) -> None:
        """Go on with the rows for which ``parts`` are true."""
        condition = conjunction(parts)
        if condition is not None:
            self._calc(condition, ())

    def extracted(self, expression: Expr) -> Expr:
        """``expression`` with the results of calls for the calls, innermost first."""
        if not isinstance(expression, Call):
            return expression
        found = replace(expression, args=tuple(self.extracted(a) for a in expression.args))
        if not found.function.startswith(USER):
            return found
        if found not in self.known:
            self._call(found)
        return Ref(field=self.known[found], offset=expression.offset)

    def arguments(self, expressions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Fields and literals for ``expressions``, whose calls and computations are made below."""
        found = [self.extracted(e) for e in expressions]
        computed: dict[Expr, Field] = {}
        for e in found:
            if not isinstance(e, Ref | Literal) and e not in computed:
                computed[e] = self.context.field("", e.type)
        if computed:
            self._calc(None, tuple(Item(field=f, expr=e) for e, f in computed.items()))
        return tuple(Ref(field=computed[e]) if e in computed else e for e in found)

    def column(self, expression: Expr) -> Ref:
        """A field for ``expression``."""
        (found,) = self.arguments((expression,))
        if isinstance(found, Ref):
            return found
        field = self.context.field("", found.type)
        self._calc(None, (Item(field=field, expr=found),))
        return Ref(field=field)

    def _calc(self, condition: Expr | None, computed: tuple[Item, ...]) -> None:
        self.relation = Calc(
            input=self.relation,
            filter=condition,
            items=(*identity(self.relation.fields), *computed),
            base=self.relation.base,
            block=self.block,
        )

    def _call(self, found: Call) -> None:
        name = found.function.removeprefix(USER)
        arguments = self.arguments(found.args)
        entry = self.context.catalog.function(name)
        returned = self.context.field(entry.function.output[0].name, found.type)
        result = self.context.field("", found.type)
        self.relation = Correlate(
            input=self.relation,
            function=name,
            kind=entry.function.kind,
            join_type="inner",
            arguments=arguments,
            returned=(returned,),
            items=(*identity(self.relation.fields), Item(field=result, expr=Ref(field=returned))),
            offset=found.offset,
            base=self.relation.base,
            block=self.block,
        )
        self.known[found] = result
