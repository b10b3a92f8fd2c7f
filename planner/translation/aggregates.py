"""The aggregate functions and their result types, which are Flink's, and the check that they can retract rows.

>>> str(result_type("AVG", parse_type("INT")))
'INT'
>>> str(result_type("SUM", parse_type("DECIMAL(10, 2)")))
'DECIMAL(38, 2)'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context, FunctionEntry
from hintplan.planner.expressions.casts import flink_cast
from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    AggregateCallExpr,
    Expr,
    Literal,
    call,
)
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.translator import Translator
from hintplan.planner.translation.user_calls import fitted_arguments
from hintplan.plans.declarations.computations import BUILT_IN, COLLECTIONS, VARIANCES
from hintplan.plans.declarations.types import DataType, parse_type

__all__ = ["NAMES", "parse_type", "result_type", "translate_aggregate"]

_SAMPLES = {"VARIANCE": "VAR_SAMP", "STDDEV": "STDDEV_SAMP"}
"""Synonyms of variances and standard deviations."""
DOCUMENTS = ("JSON_ARRAYAGG", "JSON_OBJECTAGG")
"""Aggregates that are compiled to ARRAY_AGG: :mod:`hintplan.planner.translation.json_aggregates`."""
PERCENTILE = "PERCENTILE"
"""An aggregate that is also compiled to ARRAY_AGG: :mod:`hintplan.planner.translation.percentiles`."""
NAMES = frozenset((*BUILT_IN, *_SAMPLES, *DOCUMENTS, PERCENTILE))
_USERS = "hintplan aggregate"
_OF_NESTED = ("ARRAY_AGG", "COLLECT", "COUNT", "FIRST_VALUE", "LAST_VALUE")
_ORDERED = ("BOOLEAN", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")


def result_type(function: str, argument: DataType | None) -> DataType | None:
    """Return the type of ``function(argument)``, or None if the function does not accept such an argument."""
    if function == "COUNT":
        return BIGINT
    if argument is None:
        return None
    argument = argument.as_nullable()
    if function in COLLECTIONS:
        return DataType(root=COLLECTIONS[function], children=(argument,))
    if function == "LISTAGG":
        return STRING if argument.is_text else None
    if function in ("FIRST_VALUE", "LAST_VALUE") and argument.is_nested:
        return argument
    if function in ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"):
        return argument if argument.is_numeric or argument.is_text or argument.root in _ORDERED else None
    if not argument.is_numeric:
        return None
    if argument.root == "DECIMAL":
        scale = argument.scale or 0
        return DataType(root="DECIMAL", precision=38, scale=max(6, scale) if function == "AVG" else scale)
    return argument


def translate_aggregate(t: Translator, node: exp.Expr, condition: exp.Expr | None) -> Expr:
    """Translate the aggregate call ``node``, with the condition of its FILTER."""
    entry, offset = (t.functions or {}).get(node.name.lower()), offset_of(node)
    name = node.name if entry is not None else node.name.upper()
    inner = inside(t, name, offset)
    arguments, leaves_null = _null_treatment(t, name, node.expressions, condition)
    distinct = False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = arguments[0].expressions, True
    if entry is not None:
        return _users_call(inner, entry, node, arguments, condition, distinct=distinct)
    separator = None
    if name == "LISTAGG":
        arguments, separator = _separated(t, arguments, offset)
    if len(arguments) != 1:
        raise t.source.error(
            f"{name} takes one argument, found {len(arguments)}", offset, _one_argument(name, distinct)
        )
    if isinstance(arguments[0], exp.Order):
        advice = "rows are aggregated in the order in which they come: remove it"
        if name == "COLLECT":
            advice = "a MULTISET has no order: remove it"
        if name == "ARRAY_AGG":
            advice = "sort the elements: ARRAY_SORT(ARRAY_AGG(x)); Flink takes it, and sorts nothing"
        raise t.source.error(f"{name} does not take ORDER BY", offset, advice)
    argument: Expr | None = None
    if not isinstance(arguments[0], exp.Star):
        argument = inner.expression(arguments[0])
    elif name != "COUNT" or distinct:
        raise t.source.error(f"{name} does not take '*'", offset, "name a column")
    if name == "COUNT" and isinstance(argument, Literal) and argument.text is not None and not distinct:
        argument = None
    result = result_type(name, argument.type if argument is not None else None)
    refused = argument is not None and argument.type.root in ("NULL", "INTERVAL")
    if argument is not None and argument.type.is_nested:
        refused |= name not in _OF_NESTED
        if distinct and not _is_distinguishable(argument.type):
            message = f"{name} DISTINCT does not take {argument.type.as_nullable()}"
            raise t.source.error(message, offset, "aggregate its parts one by one")
        if name == "COLLECT" and argument.type.contains_entries:
            message = f"COLLECT does not take {argument.type.as_nullable()}: Spark has no map whose keys have maps"
            raise t.source.error(message, offset, "write ARRAY_AGG(x)")
    if result is None or refused:
        actual = argument.type.as_nullable() if argument is not None else "*"
        nested = argument is not None and argument.type.is_nested
        advice = "aggregate its parts one by one" if nested else "convert the argument with CAST"
        raise t.source.error(f"{name} does not take {actual}", offset, advice)
    where = inner.condition(condition) if condition is not None else None
    if leaves_null and argument is not None:
        where = call("IS NOT NULL", (argument,), BOOLEAN, offset)
    if _SAMPLES.get(name, name) in VARIANCES and argument is not None:
        return _variance(name, argument, where, offset, distinct=distinct)
    if name in ("MIN", "MAX"):
        distinct = False
    return AggregateCallExpr(
        function=name,
        arguments=() if argument is None else (argument,),
        distinct=distinct,
        filter=where,
        separator=separator,
        type=result,
        offset=offset,
    )


def inside(t: Translator, name: str, offset: int) -> Translator:
    """Return a translator for the arguments of the aggregate ``name``; raise SqlError where no aggregate may stand."""
    if not t.aggregates:
        advice = "put it in SELECT or HAVING" if t.clause != "an aggregate" else "aggregate in a sub-query first"
        raise t.source.error(f"{name} cannot stand in {t.clause}", offset, advice)
    return replace(t, aggregates=False, clause="an aggregate")


def _users_call(
    t: Translator,
    entry: FunctionEntry,
    node: exp.Expr,
    arguments: list[exp.Expr],
    condition: exp.Expr | None,
    *,
    distinct: bool,
) -> Expr:
    """Translate a call of a user-defined aggregate function, with literals converted to the declared types, too."""
    offset = offset_of(node)
    fitted = fitted_arguments(t.source, entry, node.name, tuple(t.expression(a) for a in arguments), offset)
    nested = next((must for must in entry.arguments if must.children), None)
    if distinct and (nested is not None or not fitted):
        what = f"{nested}, which is not compared" if nested is not None else "no argument"
        raise t.source.error(f"'{node.name}' takes {what}, so that it cannot be DISTINCT", offset, "remove DISTINCT")
    return AggregateCallExpr(
        function=node.name.lower(),
        arguments=tuple(cast(e, must, e.offset) for e, must in zip(fitted, entry.arguments, strict=True)),
        distinct=distinct,
        filter=t.condition(condition) if condition is not None else None,
        type=entry.columns[0].as_nullable(),
        offset=offset,
    )


def mark_users(query: exp.Expr, functions: Mapping[str, FunctionEntry]) -> None:
    """Mark the calls of user-defined aggregate functions in ``query`` for :func:`is_aggregate`."""
    names = {name for name, entry in functions.items() if entry.is_aggregate}
    for node in query.find_all(exp.Anonymous) if names else ():
        node.meta[_USERS] = node.name.lower() in names


def is_aggregate(node: exp.Expr) -> bool:
    """Return True if ``node`` is a call of an aggregate function."""
    return isinstance(node, exp.Anonymous) and (node.name.upper() in NAMES or bool(node.meta.get(_USERS)))


def _separated(t: Translator, arguments: list[exp.Expr], offset: int) -> tuple[list[exp.Expr], str]:
    """Return the aggregated argument of LISTAGG, and its separator, a comma by default."""
    if len(arguments) != 2:
        return arguments, ","
    separator = arguments[1]
    if not isinstance(separator, exp.Literal) or not separator.args["is_string"]:
        place = offset_of(separator) or offset
        raise t.source.error("the separator of LISTAGG must be a text literal", place, "write it in quotes")
    return arguments[:1], separator.name


def _is_distinguishable(kind: DataType) -> bool:
    """Return True if DISTINCT accepts values of ``kind``; as in Flink, it accepts no ROW, MAP or MULTISET."""
    return kind.root not in ("ROW", "MAP", "MULTISET") and all(map(_is_distinguishable, kind.children))


def _null_treatment(
    t: Translator, name: str, arguments: list[exp.Expr], condition: exp.Expr | None
) -> tuple[list[exp.Expr], bool]:
    """Return the arguments of a call, and True if it ignores NULLs: ``x IGNORE NULLS``."""
    last = arguments[-1] if arguments else None
    if not isinstance(last, exp.IgnoreNulls | exp.RespectNulls):
        return arguments, False
    if name != "ARRAY_AGG":
        message = f"{name} takes neither IGNORE NULLS nor RESPECT NULLS"
        raise t.source.error(message, offset_of(last), "remove it: only ARRAY_AGG does")
    if condition is not None:
        message = "FILTER cannot be combined with IGNORE NULLS or RESPECT NULLS"
        raise t.source.error(message, offset_of(last), "write FILTER (WHERE x IS NOT NULL AND ...)")
    return [*arguments[:-1], last.this], isinstance(last, exp.IgnoreNulls)


def _one_argument(name: str, distinct: bool) -> str:
    """Return advice for a call with several arguments."""
    if name == "COUNT" and distinct:
        return "count the rows of a sub-query: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t)"
    return "aggregate one expression"


def _variance(name: str, value: Expr, where: Expr | None, offset: int, *, distinct: bool) -> Expr:
    """Compute a variance or deviation as DOUBLE, and convert it to Flink's type, the result type of AVG."""
    wanted = result_type("AVG", value.type)
    assert wanted is not None
    aggregate = AggregateCallExpr(
        function=_SAMPLES.get(name, name),
        arguments=(value,),
        distinct=distinct,
        filter=where,
        type=DOUBLE,
        offset=offset,
    )
    return flink_cast(aggregate, wanted, offset)


def check_retractions(
    context: Context, calls: Iterable[AggregateCallExpr], rows: Relation, *, changing: bool = False
) -> None:
    """Raise SqlError at a call whose class has no ``retract`` if ``rows`` can change, or if ``changing`` is set."""
    if context.batch or (is_insert_only(rows) and not changing):
        return
    for each in calls:
        check_retracts(context, each.function, each.offset)


def check_retracts(context: Context, name: str, offset: int) -> None:
    """Raise SqlError at ``offset`` if ``name`` is a user-defined function whose class has no ``retract``."""
    if name in BUILT_IN:
        return
    function = context.catalog.functions[name].function
    if not function.retracts:
        raise context.source.error(
            f"rows that '{name}' aggregates can change, and {function.class_name} cannot take one back",
            offset,
            "define retract(self, accumulator, ...) in the class, or aggregate rows that are only added",
        )
