"""Calcs that Arrow computes: all expressions have the same meaning there as in SQL, and cannot fail.

Mostly, these are the expressions of :mod:`hintplan.runtime.expressions.exact`. The day of a TIMESTAMP as text is also
allowed. Spark computes any other calc as a whole. Knows no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.condition import compile_filter
from hintplan.runtime.expressions.exact import exact_value, is_exact
from hintplan.runtime.expressions.json_calls import rows_at_once
from hintplan.runtime.expressions.shared_documents import with_shared_parts
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.operators.calc import ArrowCalc, ArrowValue, Chosen, Computed, Day
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow

Check = Callable[[str, str], CheckedExpression]
"""Checks an expression of a calc, given its text and its place below the operator."""

_DAY = re.compile(r"date_format ?\( ?(`.+`) ?, ?'yyyy-MM-dd' ?\)", re.IGNORECASE | re.DOTALL)


def calc_in_arrow(operator: Calc, columns: Sequence[Column], metadata: Sequence[str]) -> ArrowCalc | None:
    """Return ``operator`` over rows with ``columns`` and ``metadata``, or None if only Spark can compute it.

    The calc passes ``metadata`` on. Raise RunError for an expression that may not run.
    """
    return arrow_calc(operator, columns, metadata, check_over(operator, [column.name for column in columns]))


def check_over(operator: Calc, names: Iterable[str]) -> Check:
    """Return the check of the operator's expressions over these columns, which remembers what it has checked."""
    input_columns: dict[tuple[str, ...], str] = {(name,): name for name in names}

    @cache
    def check(text: str, where: str) -> CheckedExpression:
        return check_expression(text, input_columns, operator=operator.id, path=f"operators.{operator.id}.{where}")

    return check


def arrow_calc(operator: Calc, columns: Sequence[Column], metadata: Sequence[str], check: Check) -> ArrowCalc | None:
    """Return :func:`calc_in_arrow` with expressions checked by ``check``."""
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in columns])
    values: list[tuple[str, ArrowValue]] = []
    texts = [operator.filter or "", *(item.expression or "" for item in operator.select)]
    for index, item in enumerate(operator.select):
        value = _value(item, f"select[{index}].expression", schema, check)
        if value is None:
            return None
        values.append((item.name, value))
    condition, conjuncts = None, tuple[JoinCondition, ...]()
    if operator.filter is not None:
        expression = check(operator.filter, "filter")
        if not is_exact(expression, schema):
            return None
        condition = compile_filter(expression, schema)
        conjuncts = tuple(compile_filter(part, schema) for part in expression.conjuncts())
    chosen = ((name, Chosen(name)) for name in metadata)
    return ArrowCalc(
        columns=(*_sharing(values), *chosen), condition=condition, conjuncts=conjuncts, at_once=rows_at_once(texts)
    )


def _sharing(values: Sequence[tuple[str, ArrowValue]]) -> list[tuple[str, ArrowValue]]:
    """Return ``values``, whose JSON functions parse each document of a column once."""
    computed = {name: value.value for name, value in values if isinstance(value, Computed)}
    shared = dict(zip(computed, with_shared_parts([value.expression for value in computed.values()]), strict=True))
    return [
        (name, Computed(replace(value.value, expression=shared[name])) if isinstance(value, Computed) else value)
        for name, value in values
    ]


def _value(item: SelectItem, where: str, schema: pa.Schema, check: Check) -> ArrowValue | None:
    """Return the function that computes the ``item`` at ``where`` in Arrow; None if only Spark can."""
    wanted = None if item.type is None else to_arrow(item.type)
    if item.expression is None and item.name in schema.names and wanted in (None, schema.field(item.name).type):
        return Chosen(item.name)
    expression = check(item.expression or quoted(item.name), where)
    columns = {quoted(name): name for name in schema.names}
    if expression.sql in columns:
        source = columns[expression.sql]
        if wanted in (None, schema.field(source).type):
            return Chosen(source)
    day = _DAY.fullmatch(expression.sql)
    if day is not None and day[1] in columns and wanted == pa.string():
        source = columns[day[1]]
        return Day(source) if schema.field(source).type == pa.timestamp("us") else None
    exact = None if wanted is None else exact_value(expression, schema, wanted)
    return None if exact is None else Computed(exact)
