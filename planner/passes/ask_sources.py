"""Predicate pushdown to sources: passes the simple conditions of the calc above a scan to the source.

A database may compare values in another way. Therefore the pushed condition must keep every row for which the calc's
condition is true, and the calc still evaluates the whole condition.

- Integers and DECIMALs compare with exact numbers, DOUBLEs with numbers, dates and times with values of their type.
- Texts compare by ``=`` and ``IN`` only. A collation under which more texts are equal returns more rows for these, but
  would lose rows for ``<>`` and ``<``.
- BOOLEAN, FLOAT, BYTES, CHAR and TIMESTAMP_LTZ allow only tests for NULL. MySQL has several numbers for TRUE, rounds a
  FLOAT and pads a CHAR, and the session determines the time zone.
- ARRAY, MAP and ROW allow no condition. They may be JSON, which has a NULL of its own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    Call,
    Expr,
    FieldRef,
    Literal,
    call,
    conjunction,
    factored_conjuncts,
)
from hintplan.planner.relations import LogicalCalc, LogicalScan, Relation, map_inputs
from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.table import takes_conditions
from hintplan.plans.declarations.types import DataType

_EXACT = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN")
_OF_TEXTS = ("=", "IN")
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
_TIMES = {"DATE": re.compile(r"\d{4}-\d\d-\d\d"), "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")}
_MOST_VALUES = 1000
"""The maximum number of values in a pushed IN. The calc alone evaluates a longer list."""


def ask_sources(context: Context, relation: Relation) -> Relation:
    """Push the simple conditions of each calc down to its scan, if the source supports it."""
    relation_above = map_inputs(relation, lambda below: ask_sources(context, below))
    if not (isinstance(relation_above, LogicalCalc) and isinstance(relation_above.input, LogicalScan)):
        return relation_above
    if not takes_conditions(context.table(relation_above.input.table).table):
        return relation_above
    parts = tuple(
        part for conjunct in factored_conjuncts(relation_above.filter) if (part := _asked(conjunct)) is not None
    )
    return replace(relation_above, input=replace(relation_above.input, filter=conjunction(parts)))


def _asked(condition: Expr) -> Expr | None:
    """Return a pushable condition that is true wherever ``condition`` is, or None."""
    if not isinstance(condition, Call):
        return None
    if condition.function in ("AND", "OR"):
        parts = tuple(_asked(operand) for operand in condition.args)
        pushable = tuple(part for part in parts if part is not None)
        if condition.function == "AND":
            return conjunction(pushable)
        return call("OR", pushable, BOOLEAN, condition.offset) if len(pushable) == len(parts) else None
    subject, *values = condition.args
    if condition.function in ("IS NULL", "IS NOT NULL"):
        return condition if isinstance(subject, FieldRef) and subject.type.root not in NESTED else None
    if condition.function not in _COMPARISONS or len(values) > _MOST_VALUES:
        return None
    if condition.function not in ("BETWEEN", "IN") and isinstance(values[0], FieldRef):
        subject, values = values[0], [subject]
    if not isinstance(subject, FieldRef):
        return None
    return condition if all(_fits(condition.function, subject.type, value) for value in values) else None


def _fits(comparison: str, kind: DataType, value: Expr) -> bool:
    """Return True if databases compare a ``kind`` column with ``value`` as hintplan does, or keep more rows."""
    negated = isinstance(value, Call) and value.function == "NEGATE"
    if isinstance(value, Call) and negated:
        (value,) = value.args
    if not isinstance(value, Literal) or value.text is None:
        return False
    if kind.root in (*_EXACT, "DOUBLE"):
        allowed_types = (*_EXACT, "DOUBLE") if kind.root == "DOUBLE" else _EXACT
        is_number = value.type.root in allowed_types and _NUMBER.fullmatch(value.text) is not None
        return is_number and not (negated and value.text.startswith("-"))
    if kind.root in ("STRING", "VARCHAR"):
        return comparison in _OF_TEXTS and value.type.is_text and "\0" not in value.text and "${" not in value.text
    return kind.root in _TIMES and value.type.root == kind.root and bool(_TIMES[kind.root].fullmatch(value.text))
