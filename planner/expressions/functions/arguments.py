"""Checks of the arguments of scalar functions, and small expressions that several functions share.

>>> from hintplan.planner.expressions.typed import INT, literal
>>> check_arguments(Source(text=""), "ABS", (literal(1, INT),), ("number",), 0)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hintplan.planner.expressions.typed import BOOLEAN, NULL, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

Builder = Callable[[Source, str, tuple[Expr, ...], int], Expr]
"""Builds the call of a function from the source, its name, its arguments and the offset of the call."""
Signature = tuple[str, tuple[str, ...], DataType]
"""Spark's name, the kinds of the arguments (``text*`` is one or more, ``text?`` is optional), and the result type."""

TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_KINDS: Mapping[str, tuple[str, Callable[[DataType], bool]]] = {
    "text": ("STRING", lambda t: t.is_text),
    "number": ("a number", lambda t: t.is_numeric),
    "integer": ("an integer", lambda t: t.is_integer),
    "time": ("a DATE or TIMESTAMP", lambda t: t.root in TIMES),
    "boolean": ("a condition", lambda t: t.root == "BOOLEAN"),
    "any": ("a value", lambda t: True),
}


def check_arguments(source: Source, name: str, args: tuple[Expr, ...], kinds: tuple[str, ...], offset: int) -> None:
    """Raise SqlError unless ``args`` match ``kinds`` in number and types."""
    least = sum(not kind.endswith("?") for kind in kinds)
    most = len(kinds)
    plain = [kind.rstrip("?*") for kind in kinds]
    if kinds and kinds[-1].endswith("*"):
        most = max(len(args), len(kinds))
        plain += [plain[-1]] * (most - len(kinds))
    if not least <= len(args) <= most:
        count = str(least) if least == most else f"{least} to {most}" if most == len(kinds) else f"{least} or more"
        wanted = "no arguments" if not most else f"{count} argument{'s' * (count != '1')}"
        raise source.error(f"{name} takes {wanted}, found {len(args)}", offset, "check the call")
    for i, (arg, kind) in enumerate(zip(args, plain, strict=False), 1):
        wanted, fits = _KINDS[kind]
        if arg.type != NULL and not fits(arg.type):
            raise source.error(
                f"argument {i} of {name} must be {wanted}, found {arg.type.as_nullable()}",
                arg.offset or offset,
                "convert it with CAST",
            )


def integer_or_none(expression: Expr) -> int | None:
    """Return the value of an integer literal, or None for any other expression."""
    if isinstance(expression, Literal) and expression.type.is_integer and expression.text is not None:
        return int(expression.text)
    return None


def integer_of(source: Source, what: str, expression: Expr, least: int, offset: int) -> int:
    """Return the value of an integer literal of at least ``least``; raise SqlError for any other expression."""
    value = integer_or_none(expression)
    if value is None or value < least:
        raise source.error(f"{what} must be a literal of at least {least}", expression.offset or offset, "write it out")
    return value


def literal_text(expression: Expr) -> str | None:
    """Return the value of a text literal, or None for any other expression."""
    return expression.text if isinstance(expression, Literal) and expression.type.is_text else None


def as_pattern(text: str) -> str:
    """Return the regular expression that matches only ``text``; Java splits by a single character without compiling it.

    >>> as_pattern("/"), as_pattern("||")
    ('/', '\\\\|\\\\|')
    """
    return re.sub(r"[.$|()\[{^?*+\\]", r"\\\g<0>", text)


def nonempty_text_literal(source: Source, what: str, expression: Expr, offset: int) -> str:
    """Return the value of a text literal that is not empty; raise SqlError for any other expression."""
    text = literal_text(expression)
    if not text:
        raise source.error(f"{what} must be a literal that is not empty", expression.offset or offset, "write it out")
    return text


def choose(condition: Expr, value: Expr, otherwise: Expr) -> Expr:
    """Return ``CASE WHEN condition THEN value ELSE otherwise END`` with the type of ``otherwise``."""
    return call("CASE", (condition, value, otherwise), otherwise.type, otherwise.offset)


def first_null(args: tuple[Expr, ...], result: Expr) -> Expr:
    """Return ``result``, or NULL if any of ``args`` is NULL; literals with a value need no check."""
    nulls = [call("IS NULL", (a,), BOOLEAN, a.offset) for a in args if not isinstance(a, Literal) or a.text is None]
    if not nulls:
        return result
    condition = nulls[0]
    for null in nulls[1:]:
        condition = call("OR", (condition, null), BOOLEAN, null.offset)
    return choose(condition, literal(None, result.type), result)
