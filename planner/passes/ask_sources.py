"""Hands to a source what it can leave out: the simple conditions of the calc right above the scan of it.

Databases compare in their own ways, so only what keeps every row goes down for which the condition is true here, and
the calc keeps the whole condition. Whole numbers and DECIMALs are compared with exact numbers, DOUBLEs with numbers,
dates and times with those of their type. Texts go by ``=`` and ``IN`` alone: where a collation says that other texts
are equal, more rows come, but ``<>`` and ``<`` would lose some. BOOLEAN, FLOAT, BYTES, CHAR and TIMESTAMP_LTZ are only
asked for being NULL, since MySQL has TRUE in several numbers, rounds a FLOAT, pads a CHAR, and a time in a time zone
depends on the session; arrays, maps and rows are not asked for at all, for they may be JSON, which has a NULL of its
own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import BOOLEAN, Call, Expr, Literal, Ref, call, conjunction, conjuncts
from hintplan.planner.relations import Calc, Relation, Scan, map_inputs
from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.table import takes_conditions
from hintplan.plans.declarations.types import DataType

_EXACT = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN")
_OF_TEXTS = ("=", "IN")
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
_TIMES = {"DATE": re.compile(r"\d{4}-\d\d-\d\d"), "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")}
_MOST_VALUES = 1000
"""Values in one IN; longer ones are left to the calc."""


def ask_sources(context: Context, relation: Relation) -> Relation:
    """Ask each source that takes conditions for the rows that the calc above its scan can keep."""
    found = map_inputs(relation, lambda below: ask_sources(context, below))
    if not (isinstance(found, Calc) and isinstance(found.input, Scan)):
        return found
    if not takes_conditions(context.table(found.input.table).table):
        return found
    parts = tuple(part for each in conjuncts(found.filter) if (part := _asked(each)) is not None)
    return replace(found, input=replace(found.input, filter=conjunction(parts)))


def _asked(condition: Expr) -> Expr | None:
    """What can be asked instead of ``condition``, true for all rows for which that is; None if nothing can."""
    if not isinstance(condition, Call):
        return None
    if condition.function in ("AND", "OR"):
        parts = tuple(_asked(each) for each in condition.args)
        there = tuple(part for part in parts if part is not None)
        if condition.function == "AND":
            return conjunction(there)
        return call("OR", there, BOOLEAN, condition.offset) if len(there) == len(parts) else None
    subject, *values = condition.args
    if condition.function in ("IS NULL", "IS NOT NULL"):
        return condition if isinstance(subject, Ref) and subject.type.root not in NESTED else None
    if condition.function not in _COMPARISONS or len(values) > _MOST_VALUES:
        return None
    if condition.function not in ("BETWEEN", "IN") and isinstance(values[0], Ref):
        subject, values = values[0], [subject]
    if not isinstance(subject, Ref):
        return None
    return condition if all(_fits(condition.function, subject.type, value) for value in values) else None


def _fits(comparison: str, kind: DataType, value: Expr) -> bool:
    """Whether databases compare a column of type ``kind`` with ``value`` as it is done here, or keep more rows."""
    negated = isinstance(value, Call) and value.function == "NEGATE"
    if isinstance(value, Call) and negated:
        (value,) = value.args
    if not isinstance(value, Literal) or value.text is None:
        return False
    if kind.root in (*_EXACT, "DOUBLE"):
        known = (*_EXACT, "DOUBLE") if kind.root == "DOUBLE" else _EXACT
        is_number = value.type.root in known and _NUMBER.fullmatch(value.text) is not None
        return is_number and not (negated and value.text.startswith("-"))
    if kind.root in ("STRING", "VARCHAR"):
        return comparison in _OF_TEXTS and value.type.is_text and "\0" not in value.text and "${" not in value.text
    return kind.root in _TIMES and value.type.root == kind.root and bool(_TIMES[kind.root].fullmatch(value.text))
