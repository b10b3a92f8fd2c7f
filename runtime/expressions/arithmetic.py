"""Rewriting of a plan's arithmetic for Spark, so that it computes as Flink: integers wrap around, DECIMALs become NULL.

- Integer ``+``, ``-``, ``*``, ``div``, ABS and the minus sign wrap around where Spark would fail. Shorter integers are
  computed in a longer type and cut. BIGINT is computed again in DECIMAL where Spark's ``try_`` functions overflow.
- ``+``, ``-``, ``*`` and ``/`` of DECIMALs are NULL where the result has more than 38 digits and Spark would fail.
  Division by zero fails.
- For a DECIMAL with more than 34 digits, Spark's minus sign and ABS round, and may fail. Such numbers get and lose
  their sign as text.

A plan contains just ``a + b``. This module gets the types of the parts from Spark, and rewrites only operations whose
result may not fit. It reads the pieces of a checked expression by Spark's precedence of arithmetic. It does not use the
syntax tree: in sqlglot, ``+`` binds more tightly than ``||``, and nodes do not keep their text. It knows neither plans
nor Spark.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> def wrapped(text, types):
...     return wrapping(check_expression(text, {("a",): "a"}, operator="calc_t", path="filter"), types)
>>> wrapped("a + 1 > 0", lambda texts: ["int" for _ in texts])
'CAST(shiftright(shiftleft(CAST(`a` AS BIGINT) + 1, 32), 32) AS INT) > 0'
>>> wrapped("CAST(a AS BIGINT) + 1", lambda texts: ["bigint" if "CAST" in text else "int" for text in texts])
'CAST ( `a` AS BIGINT ) + 1'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.checked import CheckedExpression

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_WIDEST = "decimal(38,"
_FEWEST_PLACES = "decimal(38,6)"
"""The type of every DECIMAL quotient that may exceed 38 digits; the other types have room before the point."""
_SIGNED_DIGITS = 34
"""The digits to which Spark rounds a DECIMAL when it applies the minus sign or ABS."""
_MOST = 1 << 20
"""The most characters of a result. An operation that may overflow is written twice, so nesting could double the text
many times.
"""
_SIGNS = frozenset(("+", "-", "*", "/", "DIV", "ABS"))
_NAMES = re.compile(r"`(?:[^`]|``)*`|\.")
_SEPARATING = frozenset(
    """
    AND AS BETWEEN BOTH DISTINCT ELSE END ESCAPE FOR FROM ILIKE IN IS LEADING LIKE NOT OR PLACING RLIKE THEN TO TRAILING
    WHEN = <> != < <= > >= <=> << >> , & | ^ !
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Anything but arithmetic: words and signs, which may contain arithmetic; ``cast`` is the operand of a CAST."""

    parts: tuple[str | _Node, ...]
    cast: _Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """``+ - * / %``, DIV and ``||`` of two operands, or the signs ``- + ~`` and ABS of one."""

    name: str
    operands: tuple[_Node, ...]


_Node = _Text | _Operation


def wrapping(expression: CheckedExpression, types: Callable[[Sequence[str]], Sequence[str]]) -> str:
    """Return the text for Spark with Flink's arithmetic; ``types`` returns Spark's types of several texts at once.

    RunError for arithmetic that is too deeply nested to be written.
    """
    pieces = [piece.sql for piece in expression.pieces]
    if _SIGNS.isdisjoint(map(str.upper, pieces)):
        return expression.sql
    tree = _Reader(pieces).level()
    texts = list(dict.fromkeys(_written(node) for node in _asked(tree)))
    if not texts:
        return expression.sql
    return _Writer(dict(zip(texts, types(texts), strict=True))).text(tree)


class _Reader:
    def __init__(self, pieces: Sequence[str]) -> None:
        names = (_NAMES.findall(piece) if piece.startswith("`") else [piece] for piece in pieces)
        self.tokens = [token for tokens in names for token in tokens]
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def level(self, *closing: str) -> _Text:
        """Read everything up to a closing sign, and leave that sign."""
        parts: list[str | _Node] = []
        while self.next and self.next.upper() not in closing:
            parts.append(self.take() if self.next.upper() in _SEPARATING else self.sum())
        return _Text(parts=tuple(parts))

    def sum(self) -> _Node:
        return self.chain(("+", "-", "||"), self.product)

    def product(self) -> _Node:
        return self.chain(("*", "/", "%", "DIV"), self.signed)

    def chain(self, names: tuple[str, ...], operand: Callable[[], _Node]) -> _Node:
        node = operand()
        while self.next.upper() in names:
            node = _Operation(name=self.take().upper(), operands=(node, operand()))
        return node

    def signed(self) -> _Node:
        if self.next not in ("-", "+", "~"):
            return self.primary()
        sign = self.take()
        if sign == "-" and self.next[:1].isdigit():
            return _Text(parts=("-" + self.take(),))
        return _Operation(name=f"{sign}x", operands=(self.signed(),))

    def primary(self) -> _Node:
        word = self.take()
        node: _Node = _Text(parts=(word,))
        if word == "(":
            node = _Text(parts=(word, self.level(")"), self.take()))
        elif word.upper() == "CASE":
            node = _Text(parts=(word, self.level("END"), self.take()))
        elif word.upper() == "INTERVAL" and self.next not in ("", ")", ",", ">"):
            node = _Text(parts=(word, *self.interval()))
        elif self.next == "(" and _is_word(word):
            node = self.call(word)
        elif self.next.startswith("'") and _is_word(word):
            node = _Text(parts=(word, self.take()))
        while self.next in (".", "[", "::"):
            mark = self.take()
            if mark == "[":
                node = _Text(parts=(node, mark, self.level("]"), self.take()))
            else:
                node = _Text(parts=(node, mark, self.primary()))
        return node

    def interval(self) -> Iterator[str | _Node]:
        """Yield a number or text and its unit, which may be ``YEAR TO MONTH`` or similar."""
        yield self.signed()
        while _is_word(self.next) and (self.next.upper() == "TO" or self.next.upper() not in _SEPARATING):
            yield self.take()

    def call(self, word: str) -> _Node:
        opening, inside = self.take(), self.level(")")
        closing = self.take()
        if word.upper() == "ABS" and "," not in inside.parts:
            return _Operation(name="ABS", operands=(inside,))
        cast = inside.parts[0] if word.upper() == "CAST" else None
        return _Text(parts=(word, opening, inside, closing), cast=None if isinstance(cast, str) else cast)


def _is_word(text: str) -> bool:
    return re.fullmatch(r"[^\W\d]\w*", text) is not None


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.operands if isinstance(node, _Operation) else node.parts:
        if not isinstance(child, str):
            yield from _nodes(child)


def _asked(tree: _Node) -> Iterator[_Node]:
    """Yield the nodes whose types decide how the expression is written."""
    for node in _nodes(tree):
        if isinstance(node, _Operation) and node.name in ("+", "-", "*", "/", "DIV", "-x", "ABS"):
            yield node
            for operand in node.operands:
                yield operand
                if isinstance(operand, _Text) and operand.cast is not None:
                    yield operand.cast


def _written(node: _Node, text: Callable[[_Node], str] | None = None) -> str:
    """Write a node in Spark SQL; ``text`` writes its parts, or they stay as they were."""
    text = text or _written
    if isinstance(node, _Text):
        return " ".join(part if isinstance(part, str) else text(part) for part in node.parts)
    if node.name == "ABS":
        return f"abs({text(node.operands[0])})"
    if len(node.operands) == 1:
        return f"{node.name[0]} {text(node.operands[0])}"
    return f"{text(node.operands[0])} {node.name.lower()} {text(node.operands[1])}"


_Range = tuple[int, int]


class _Writer:
    """A writer of nodes; ``types`` has Spark's types of expressions, by their text."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self.types = types

    def type(self, node: _Node) -> str:
        return self.types.get(_written(node), "")

    def text(self, node: _Node) -> str:
        """Write ``node`` in Spark SQL with Flink's meaning; the text binds at least as tightly as the node."""
        written = self.wrapped(node) if isinstance(node, _Operation) else _written(node, self.text)
        if len(written) > _MOST:
            raise RunError("arithmetic is nested too deeply", hint="compute it in several steps")
        return written

    def wrapped(self, node: _Operation) -> str:
        if node.name in ("-x", "ABS") and (digits := _long_digits(self.type(node.operands[0]))) is not None:
            return self.signed_long(node, *digits)
        if node.name in _TRY and self.type(node).startswith(_WIDEST):
            return f"{_TRY[node.name]}({', '.join(map(self.text, node.operands))})"
        if node.name == "/" and self.type(node) == _FEWEST_PLACES:
            return self.quotient(node)
        if node.name not in ("+", "-", "*", "DIV", "-x", "ABS") or not self.leaves_its_type(node):
            return _written(node, self.text)
        kind = self.kind(node)
        if kind == "bigint" and node.name in ("DIV", "ABS"):
            return self.cut_at_the_least(node)
        if kind == "bigint":
            return f"coalesce({self.tried(node)}, {self.exact(node)})"
        spare = 64 - _BITS[kind]
        long = f"shiftright(shiftleft({self.longer(node)}, {spare}), {spare})"
        return long if node.name == "DIV" else f"CAST({long} AS {kind.upper()})"

    def signed_long(self, node: _Operation, precision: int, scale: int) -> str:
        """Write the minus sign or ABS of a DECIMAL for which Spark's is not exact; the result keeps its type."""
        number, plain = f"({self.text(node.operands[0])})", _written(node, self.text)
        nines = "9" * _SIGNED_DIGITS
        most = f"{nines[scale:] or 0}.{nines[:scale].rjust(scale, '0')}" if scale else nines
        positive = f"CAST(substring(CAST({number} AS STRING), 2) AS DECIMAL({precision}, {scale}))"
        negative = f"CAST(concat('-', CAST({number} AS STRING)) AS DECIMAL({precision}, {scale}))"
        return (
            f"CASE WHEN {number} BETWEEN -{most} AND {most} THEN {plain} WHEN {number} < 0 THEN {positive} "
            f"ELSE {number if node.name == 'ABS' else negative} END"
        )

    def quotient(self, node: _Operation) -> str:
        """Write a quotient of DECIMALs that is NULL with too many digits, and fails for division by zero.

        ``try_divide`` alone would also be NULL for division by zero.
        """
        left, right = map(self.text, node.operands)
        return f"CASE WHEN {right} = 0 THEN {left} / {right} ELSE try_divide({left}, {right}) END"

    def kind(self, node: _Operation) -> str:
        """Return the type in which ``node`` wraps around; for DIV, a BIGINT in Spark, the type of its operands."""
        if node.name != "DIV":
            return self.type(node)
        return max((self.type(operand) for operand in node.operands), key=lambda kind: _BITS.get(kind, 64))

    def longer(self, node: _Operation) -> str:
        """Write ``node``, whose type is shorter than BIGINT, as a BIGINT, which always holds the result."""
        first, *others = (self.text(operand) for operand in node.operands)
        if node.name == "DIV":
            return f"{first} div {others[0]}"
        first = f"CAST({first} AS BIGINT)"
        if others:
            return f"{first} {node.name} {others[0]}"
        return f"abs({first})" if node.name == "ABS" else f"- {first}"

    def cut_at_the_least(self, node: _Operation) -> str:
        """Write DIV or ABS of BIGINTs, which overflow only for the least BIGINT, and then yield that number again."""
        first, *others = (self.text(operand) for operand in node.operands)
        negated = f"coalesce(try_subtract(0L, {first}), {first})"
        if not others:
            return f"greatest({first}, {negated})"
        return f"CASE WHEN {others[0]} = -1 THEN {negated} ELSE {first} div {others[0]} END"

    def tried(self, node: _Node) -> str:
        """Write a BIGINT that is NULL if a step overflows."""
        inner = self.ring(node)
        if inner is None:
            return self.text(node)
        if inner.name == "-x":
            return f"try_subtract(0L, {self.tried(inner.operands[0])})"
        return f"{_TRY[inner.name]}({', '.join(map(self.tried, inner.operands))})"

    def exact(self, node: _Node) -> str:
        """Write a BIGINT that computes each step in DECIMAL, which holds any product, and wraps it to 64 bits."""
        inner = self.ring(node)
        if inner is None:
            return self.text(node)
        first, *others = (f"CAST({self.exact(operand)} AS DECIMAL(19, 0))" for operand in inner.operands)
        number = f"{first} {inner.name} {others[0]}" if others else f"- {first}"
        return f"CAST(pmod({number} + {1 << 63}, {1 << 64}) - {1 << 63} AS BIGINT)"

    def ring(self, node: _Node) -> _Operation | None:
        """Return ``node``, without parentheses, if it is ``+``, ``-`` or ``*`` of BIGINT that may overflow; else None.

        A tree of such operations is computed together.
        """
        inner = _bare(node)
        if not isinstance(inner, _Operation) or inner.name not in ("+", "-", "*", "-x"):
            return None
        return inner if self.type(inner) == "bigint" and self.leaves_its_type(inner) else None

    def leaves_its_type(self, node: _Operation) -> bool:
        """Return True for integer arithmetic whose result may not fit its type."""
        kinds = {self.type(operand) for operand in node.operands}
        if not kinds <= _BITS.keys() or self.type(node) not in _BITS:
            return False
        low, high = self.computed(node)
        least, most = _range(self.kind(node))
        return low < least or high > most

    def computed(self, node: _Operation) -> _Range:
        """Return the least and the greatest number that ``node`` can be before it is cut to its type."""
        (low, high), *others = (self.range(operand) for operand in node.operands)
        if node.name == "-x":
            return -high, -low
        if node.name == "ABS":
            return 0, max(abs(low), abs(high))
        (least, most) = others[0]
        if node.name == "+":
            return low + least, high + most
        if node.name == "-":
            return low - most, high - least
        if node.name == "*":
            corners = [a * b for a in (low, high) for b in (least, most)]
            return min(corners), max(corners)
        return (min(low, -high), max(high, -low)) if least <= -1 <= most else (low, high)

    def range(self, node: _Node) -> _Range:
        """Return bounds of an integer node, as narrow as its text and types allow."""
        kind, inner = self.type(node), _bare(node)
        written = _written(inner)
        if re.fullmatch(r"-?\d+[LSY]?", written, re.IGNORECASE):
            number = int(written.rstrip("lsyLSY"))
            return number, number
        bounds = _range(kind if kind in _BITS else "bigint")
        if isinstance(inner, _Text) and inner.cast is not None and self.type(inner.cast) in _BITS:
            return _within(self.range(inner.cast), bounds)
        if isinstance(inner, _Operation) and inner.name in ("+", "-", "*", "-x", "ABS"):
            return _within(self.computed(inner), bounds)
        return bounds


def _long_digits(kind: str) -> tuple[int, int] | None:
    """Return precision and scale of a DECIMAL with more digits than Spark's minus sign and ABS keep, else None."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return (int(match[1]), int(match[2])) if match and int(match[1]) > _SIGNED_DIGITS else None


def _bare(node: _Node) -> _Node:
    """Return ``node`` without parentheses around it."""
    while isinstance(node, _Text):
        inside = [part for part in node.parts if part not in ("(", ")")]
        if len(inside) != 1 or isinstance(inside[0], str):
            break
        node = inside[0]
    return node


def _range(kind: str) -> _Range:
    half = 1 << (_BITS[kind] - 1)
    return -half, half - 1


def _within(found: _Range, bounds: _Range) -> _Range:
    """Return the range ``found`` if it lies within ``bounds``, else ``bounds``."""
    return found if bounds[0] <= found[0] and found[1] <= bounds[1] else bounds
