"""Literals, and expressions in parentheses."""

from __future__ import annotations

import re

from sqlglot import exp

from hintplan.planner.expressions.literals import interval_literal, number_literal, temporal_literal
from hintplan.planner.expressions.typed import BOOLEAN, NULL, STRING, Expr, call, literal
from hintplan.planner.syntax.dialect import idle_of, offset_of
from hintplan.planner.translation.translator import Translator
from hintplan.plans.declarations.types import DataType

BYTES = DataType(root="BYTES", nullable=False)


def plain_literal(t: Translator, node: exp.Expr) -> Expr:
    """Translate a number or a text in quotes."""
    if node.args["is_string"]:
        return literal(node.name, STRING, offset_of(node))
    return number_literal(t.source, node.name, offset_of(node))


def typed_literal(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``DATE '...'``, ``TIME '...'`` and ``TIMESTAMP '...'``; calls of CAST have another node."""
    offset = offset_of(node)
    kind = node.args["to"].this.name
    if not isinstance(node.this, exp.Literal) or kind not in ("DATE", "TIME", "TIMESTAMP"):
        raise t.source.error(f"a {kind} literal is not supported", offset, "use CAST('...' AS <type>)")
    return temporal_literal(t.source, kind, node.this.name, offset)


def octets(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``X'C0FFEE'``, with two hexadecimal digits per octet."""
    digits, offset = node.name.upper(), offset_of(node)
    if re.fullmatch("([0-9A-F]{2})*", digits) is None:
        message = f"X'{node.name}' is not a literal of octets, each of which has two of the digits 0 to 9 and A to F"
        raise t.source.error(message, offset, "write it like X'C0FFEE'")
    kind = DataType(root="BINARY", precision=len(digits) // 2, nullable=False)
    return call("unhex", (literal(digits, STRING, offset),), kind if digits else BYTES, offset)


def interval(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``INTERVAL '5' DAY``."""
    unit = node.args.get("unit")
    value = node.this.name if isinstance(node.this, exp.Literal) else ""
    return interval_literal(t.source, value, unit.name if isinstance(unit, exp.Var) else "", offset_of(node))


def truth_value(t: Translator, node: exp.Expr) -> Expr:
    """Translate TRUE or FALSE, and check the expressions that the planner has replaced by it."""
    for idle in idle_of(node):
        t.expression(idle)
    return literal("TRUE" if node.this else "FALSE", BOOLEAN, offset_of(node))


def null(t: Translator, node: exp.Expr) -> Expr:
    """Translate NULL, which has no type yet."""
    return literal(None, NULL, offset_of(node))


def in_parentheses(t: Translator, node: exp.Expr) -> Expr:
    """Translate an expression in parentheses, and check the expressions that the planner has replaced by it."""
    for idle in idle_of(node):
        t.expression(idle)
    return t.expression(node.this)
