"""The current time of expressions: in a rehearsal it is the time of the step.

>>> at_instant("`ts` > current_timestamp() - INTERVAL '1' HOUR", 1_500)
"`ts` > timestamp_millis(1500L) - INTERVAL '1' HOUR"
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sqlglot import tokenize
from sqlglot.tokenizer_core import TokenType

from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

_NOW = re.compile(r"\b(?:current_timestamp|now)\b", re.IGNORECASE)
_CALL = re.compile(r"\s*\(\s*\)")
_TEXTS = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)


def uses_clock(operator: Operator) -> bool:
    """Return True if an expression of ``operator`` asks for the current time."""
    return any(text is not None and _NOW.search(text) for _, text in operator.expressions())


def at_time(plan: Plan, now: int) -> Plan:
    """Return ``plan`` with the time ``now`` (ms) in place of the current time in its expressions."""
    operators = tuple(_rewritten(op, now) if uses_clock(op) else op for op in plan.operators)
    return replace(plan, operators=operators)


def at_instant(text: str, now: int) -> str:
    """Return an expression of Spark with the time ``now`` (ms) in place of the current time."""
    parts: list[str] = []
    done = 0
    for token in tokenize(text, dialect="spark"):
        if token.token_type in _TEXTS or token.start < done or not _NOW.fullmatch(token.text):
            continue
        call = _CALL.match(text, token.end + 1)
        parts += [text[done : token.start], f"timestamp_millis({now}L)"]
        done = token.end + 1 if call is None else call.end()
    return "".join([*parts, text[done:]])


def _rewritten(value: Any, now: int) -> Any:
    """Return ``value``, of which every expression with a current time is rewritten, however deep it is."""
    if isinstance(value, str):
        return at_instant(value, now) if _NOW.search(value) else value
    if isinstance(value, tuple):
        return tuple(_rewritten(item, now) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            item.name: new
            for item in fields(value)
            if item.name in _EXPRESSIONS and (new := _rewritten(old := getattr(value, item.name), now)) != old
        }
        return replace(value, **changed) if changed else value
    return value


_EXPRESSIONS = frozenset(
    ("filter", "select", "expression", "condition", "pre_filter", "constant", "keys", "arguments", "base", "rows")
)
"""The fields of operators that hold expressions, or parts that hold some."""
