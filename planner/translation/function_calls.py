"""Calls of functions of all kinds, casts, and sub-queries that are values."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hintplan.planner.expressions import scalars
from hintplan.planner.expressions.casts import castable, flink_cast, is_time, time_of_text
from hintplan.planner.expressions.functions.parts_of_times import EXTRACT, MORE_PARTS, PARTS
from hintplan.planner.expressions.functions.times import UNIT_FUNCTIONS, UNITS, unit_literal
from hintplan.planner.expressions.literals import day_of_text, time_of_day
from hintplan.planner.expressions.typed import UNKNOWN, Expr, Literal, literal
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.group_windows import is_auxiliary
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.translation import aggregates, grouping_sets, json_aggregates, nested, percentiles
from hintplan.planner.translation.json_calls import FORMS, json_call
from hintplan.planner.translation.operators import arithmetic_operation
from hintplan.planner.translation.translator import Handler, Translator, only
from hintplan.planner.translation.user_calls import scalar_call
from hintplan.plans.declarations.types import DataType, parse_type


def function_call(t: Translator, node: exp.Expr) -> Expr:
    """Translate a call with parentheses: a cast, a constructor, or a function of any kind."""
    name, offset = node.name.upper(), offset_of(node)
    if offset in t.values and is_auxiliary(node):
        return t.values[offset]
    if name in ("CAST", "TRY_CAST"):
        return _cast(t, node, name)
    if name.lower() in t.functions:
        return _user_call(t, node)
    if name == "ROW":
        return nested.translate_row(t, node)
    if name in aggregates.DOCUMENTS:
        return json_aggregates.translate_json_aggregate(t, node)
    if name == aggregates.PERCENTILE:
        return percentiles.translate_percentile(t, node, None)
    if name in aggregates.NAMES:
        return aggregates.translate_aggregate(t, node, None)
    if name in FORMS:
        return json_call(t, node)
    if name in grouping_sets.FUNCTIONS:
        return grouping_sets.translate_grouping_function(t, node)
    if any(isinstance(a, exp.Distinct) for a in node.expressions):
        raise t.source.error(f"{name} does not take DISTINCT", offset, "remove DISTINCT")
    if name == "MOD" and len(node.expressions) == 2:
        return arithmetic_operation(t, exp.Mod(this=node.expressions[0], expression=node.expressions[1]))
    if " " not in name and name not in scalars.known_functions():  # FLOOR TO is a form, not a name
        return _user_call(t, node)
    return scalars.compile_function_call(t.source, name, tuple(_arguments(t, name, node)), offset)


def _arguments(t: Translator, name: str, node: exp.Expr) -> Iterator[Expr]:
    """Yield the arguments of a call; the unit in TIMESTAMPADD and similar functions is a bare word."""
    for i, argument in enumerate(node.expressions):
        if i == 0 and name in UNIT_FUNCTIONS and isinstance(argument, exp.Column):
            if argument.name.upper() not in UNITS or argument.args.get("table"):
                raise t.source.error(
                    f"'{argument.name}' is not a unit", offset_of(argument), f"units are {', '.join(UNITS)}"
                )
            yield unit_literal(argument.name.upper(), offset_of(argument))
        elif i == 0 and isinstance(argument, exp.Var):
            yield unit_literal(argument.name, offset_of(argument))
        else:
            yield t.expression(argument)


def _user_call(t: Translator, node: exp.Expr) -> Expr:
    name, offset = node.name, offset_of(node)
    entry = t.functions.get(name.lower())
    if entry is None:
        declared = [other for other, entry_ in t.functions.items() if entry_.is_scalar or entry_.is_aggregate]
        values = [*declared, *aggregates.NAMES]
        since = t.source.problems.doubts
        if name.lower() in t.failed:
            raise FollowUp
        t.source.problems.add(scalars.unknown(t.source, name, offset, values), since, certain=True)
        for argument in node.expressions:
            is_unit = isinstance(argument, exp.Column) and argument.name.upper() in UNITS
            if type(argument) in t.handlers and not is_unit:
                t.expression(argument)
        return UNKNOWN
    if entry.is_aggregate:
        return aggregates.translate_aggregate(t, node, None)
    return scalar_call(t.source, entry, name, tuple(t.expression(a) for a in node.expressions), offset)


def _cast(t: Translator, node: exp.Expr, name: str) -> Expr:
    value, target = node.expressions
    offset = offset_of(node)
    if value is None:
        raise t.source.error(f"{name} has nothing to convert", offset, f"write {name}(x AS BIGINT)")
    operand = t.expression(value)
    try:
        data_type = parse_type(target.name)
    except ValueError as error:
        raise t.source.error(str(error), offset_of(target), "use a type such as BIGINT or STRING") from None
    if not castable(operand, data_type, function=name):
        raise t.source.error(
            f"{name} from {operand.type.as_nullable()} to {data_type} is not supported",
            offset,
            "Flink and Spark disagree on it, or it has no meaning; cast to another type",
        )
    if data_type.root == "TIME" and isinstance(operand, Literal) and operand.type.is_text and operand.text is not None:
        return _time_of_day(t, operand, data_type, offset, name)
    if operand.type.is_text and data_type.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return _time_of_text(t, operand, data_type, offset, name)
    return flink_cast(operand, data_type, offset, function=name)


def _time_of_text(t: Translator, text: Expr, target: DataType, offset: int, function: str) -> Expr:
    if not isinstance(text, Literal) or text.text is None:
        return time_of_text(text, target, offset, function=function)
    if is_time(text.text, target):
        if target.root != "DATE":
            return flink_cast(text, target, offset, function=function)
        if (day := day_of_text(text.text)) is not None:
            return literal(day, target.as_nullable(), offset)
    if function == "TRY_CAST":
        return literal(None, target.as_nullable(), offset)
    example = "2024-12-31" if target.root == "DATE" else "2024-12-31 23:59:59.999"
    raise t.source.error(f"'{text.text}' is not a {target.root}", offset, f"write it like '{example}'")


def _time_of_day(t: Translator, text: Literal, target: DataType, offset: int, function: str) -> Expr:
    time = time_of_day(text.text or "")
    if time is None and function == "TRY_CAST":
        return literal(None, target.as_nullable(), offset)
    if time is None:
        raise t.source.error(f"'{text.text}' is not a TIME", offset, "write it like '23:59:59.999'")
    length = len("13:14:15") + (target.precision or 0) + bool(target.precision)
    cut = (time.text or "")[:length]
    return literal(cut.rstrip("0").rstrip(".") if "." in cut else cut, target.as_nullable(), offset)


def sub_query(t: Translator, node: exp.Expr) -> Expr:
    """Return the value of a sub-query, compiled before by :mod:`hintplan.planner.query.subqueries.scalar`."""
    offset = offset_of(node)
    if t.values.get(offset) is UNKNOWN:
        t.source.problems.doubts += 1
    if offset in t.values:
        return t.values[offset]
    if t.clause == "an aggregate":
        advice = "compute its value as a column of a sub-query in FROM"
        raise t.source.error("a sub-query inside an aggregate function is not supported", offset, advice)
    if t.clause == "ON":
        message = "a sub-query in ON of an outer join, or of one below it, is not supported"
        raise t.source.error(message, offset, "put it in WHERE of a query in FROM, or join the tables")
    raise t.source.error(
        f"a sub-query cannot stand in {t.clause}", offset, "put it in SELECT, WHERE or HAVING, or join the tables"
    )


def filtered_aggregate(t: Translator, node: exp.Expr) -> Expr:
    """Translate an aggregate call with FILTER."""
    if not aggregates.is_aggregate(node.this):
        raise t.source.error("FILTER belongs to an aggregate function", offset_of(node), "remove it")
    if node.this.name.upper() in aggregates.DOCUMENTS:
        message = f"{node.this.name.upper()} does not take FILTER"
        raise t.source.error(message, offset_of(node), "aggregate in a sub-query with WHERE, as in Flink")
    if node.this.name.upper() == aggregates.PERCENTILE:
        return percentiles.translate_percentile(t, node.this, node.expression.this)
    return aggregates.translate_aggregate(t, node.this, node.expression.this)


def special_form(function: str, *parts: str) -> Handler:
    """Return a handler for a call with its own syntax, in which ``parts`` are the arguments of ``function``."""

    def handle(t: Translator, node: exp.Expr) -> Expr:
        only(t.source, node, *parts)
        arguments = (node.args.get(part) for part in parts)
        return scalars.compile_function_call(
            t.source, function, tuple(t.expression(a) for a in arguments if isinstance(a, exp.Expr)), offset_of(node)
        )

    return handle


def extract(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``EXTRACT(unit FROM time)``."""
    unit = node.name.upper()
    function = unit if unit in PARTS else f"{EXTRACT} {unit}"
    if unit not in PARTS and unit not in MORE_PARTS:
        supported = ", ".join((*PARTS, *MORE_PARTS))
        raise t.source.error(f"EXTRACT({unit} FROM ...) is not supported", offset_of(node), f"use {supported}")
    return scalars.compile_function_call(t.source, function, (t.expression(node.expression),), offset_of(node))


def trim(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``TRIM(LEADING x FROM text)`` and the like."""
    only(t.source, node, "this", "position", "expression")
    character = node.args.get("expression")
    blank = character is None or (isinstance(character, exp.Literal) and character.name == " ")
    arguments = (t.expression(node.this), *([] if blank or character is None else [t.expression(character)]))
    function = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or "").upper(), "TRIM")
    return scalars.compile_function_call(t.source, function, arguments, offset_of(node))
