"""DATE_FORMAT with patterns that mean the same on every machine that runs Flink, as a concatenation of parts.

The parts are cut from the text of the time or computed from its date. So they depend neither on the session time zone
nor on Spark's formatter, which lacks some letters. Names are English.

>>> from hintplan.planner.expressions.typed import Field, FieldRef
>>> from hintplan.planner.expressions.spark_text import to_spark_sql
>>> ts = FieldRef(field=Field(id=1, name="ts", type=DataType(root="TIMESTAMP", precision=0)))
>>> to_spark_sql(format_timestamp(ts, pattern_parts("yy/M"), 0), {1: "ts"})
"concat(substring(CAST(ts AS STRING), 3, 2), '/', CAST(CAST(substring(CAST(ts AS STRING), 6, 2) AS INT) AS STRING))"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.typed import INT, STRING, Expr, call, literal
from hintplan.plans.declarations.types import DataType

_DATE = DataType(root="DATE")
_MICROSECONDS = DataType(root="TIMESTAMP", precision=6)
_PIECE = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<plain>[^A-Za-z'\[\]{}#]+)"
)

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()  # noqa: SIM905
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_CLOCKS: dict[str, tuple[str, ...]] = {
    "h": tuple(f"{(hour + 11) % 12 + 1:02}" for hour in range(24)),
    "K": tuple(f"{hour % 12:02}" for hour in range(24)),
    "k": tuple(f"{(hour + 23) % 24 + 1:02}" for hour in range(24)),
    "a": ("AM",) * 12 + ("PM",) * 12,
}
"""The text of a pattern letter for each hour of the day."""

_OF_WEEKS = (
    "counts weeks, which begin on a day that Flink takes from the locale of its machine",
    "write yyyy for the year, or EXTRACT(WEEK FROM x) and EXTRACT(ISOYEAR FROM x) for weeks of ISO 8601",
)
_OF_ZONES = ("is a time zone, which is not shown", "write it in quotes, such as 'Z' where all times are in UTC")
_REASONS = {**dict.fromkeys("YwWecF", _OF_WEEKS), **dict.fromkeys("zZVvOXx", _OF_ZONES)}
_KNOWN = "y yy yyyy M MM MMM MMMM d dd D DDD E EEEE Q QQ QQQ QQQQ a h hh H HH k kk K KK m mm s ss S to SSSSSSSSS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a pattern: a run of one letter, or text that is shown as it is."""

    letters: str = ""
    text: str = ""


class PatternError(ValueError):
    """A refused pattern; ``hint`` is the advice."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def pattern_parts(pattern: str, *, of_text: bool = False) -> tuple[Piece, ...]:
    """Return the parts of ``pattern``; raise PatternError for a letter that is unknown or ambiguous in Flink.

    Set ``of_text`` for times that are text, which Flink formats with another Java class.
    """
    parts: list[Piece] = []
    end = 0
    while end < len(pattern):
        match = _PIECE.match(pattern, end)
        if match is None:
            message = f"{pattern[end]!r} has a meaning of its own in the pattern of DATE_FORMAT"
            raise PatternError(message, f"write it in quotes, and a quote twice; letters are {_KNOWN}")
        end = match.end()
        letters = match["letters"]
        if letters is None:
            quoted = match["quoted"]
            parts.append(Piece(text=match["plain"] or ("'" if quoted == "" else quoted.replace("''", "'"))))
        elif (letters in _PARTS or re.fullmatch("S{1,9}", letters)) and not (of_text and letters[0] in "uQq"):
            parts.append(Piece(letters=letters))
        else:
            reason, hint = _REASONS.get(letters[0], ("is not supported", f"letters are {_KNOWN}; quote literal text"))
            raise PatternError(f"'{letters}' in the pattern of DATE_FORMAT {reason}", hint)
    return tuple(parts)


def format_timestamp(time: Expr, parts: tuple[Piece, ...], offset: int) -> Expr:
    """Return the TIMESTAMP ``time`` as text in the form of ``parts``, or NULL if it is NULL."""
    fine = any(part.letters.startswith("S") for part in parts)
    shown = cast(cast(time, _MICROSECONDS, offset), STRING, offset) if fine else call("CAST", (time,), STRING, offset)
    clock = _Time(shown=shown, day=cast(time, _DATE, offset), offset=offset)
    texts = [clock.part(part.letters) if part.letters else literal(part.text, STRING) for part in parts]
    if not any(part.letters for part in parts):
        texts.append(clock.digits(1, 0))  # empty, but NULL for a NULL time
    return texts[0] if len(texts) == 1 else call("concat", tuple(texts), STRING, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    """A time as text of 19 characters, or of 26 with six digits of a second, and its date."""

    shown: Expr
    day: Expr
    offset: int

    def part(self, letters: str) -> Expr:
        if letters[0] != "S":
            return _PARTS[letters](self)
        digits = self.digits(21, min(len(letters), 6))
        zeros = "0" * (len(letters) - 6)
        return call("concat", (digits, literal(zeros, STRING)), STRING, self.offset) if zeros else digits

    def digits(self, start: int, count: int) -> Expr:
        return call("substring", (self.shown, literal(start, INT), literal(count, INT)), STRING, self.offset)

    def number(self, text: Expr) -> Expr:
        return call("CAST", (text,), INT, self.offset)

    def short(self, text: Expr) -> Expr:
        """Return ``text``, which is a number, without leading zeros."""
        return call("CAST", (self.number(text),), STRING, self.offset)

    def of_day(self, function: str) -> Expr:
        return call(function, (self.day,), INT, self.offset)

    def chosen(self, texts: tuple[str, ...], number: Expr, first: int) -> Expr:
        """Return the element of ``texts`` at ``number``, which counts from ``first``."""
        width = max(map(len, texts))
        table = literal("".join(text.ljust(width) for text in texts), STRING)
        start = call("*", (number, literal(width, INT)), INT, self.offset)
        place = call("+", (start, literal(1 - first * width, INT)), INT, self.offset)
        entry = call("substring", (table, place, literal(width, INT)), STRING, self.offset)
        return entry if all(len(text) == width for text in texts) else call("rtrim", (entry,), STRING, self.offset)

    def of_hour(self, letter: str) -> Expr:
        return self.chosen(_CLOCKS[letter], self.number(self.digits(12, 2)), 0)

    def month(self, *, length: int | None) -> Expr:
        return self.chosen(tuple(name[:length] for name in _MONTHS), self.number(self.digits(6, 2)), 1)

    def weekday(self, *, length: int | None) -> Expr:
        return self.chosen(tuple(name[:length] for name in _DAYS), self.of_day("dayofweek"), 1)

    def quarter(self, before: str) -> Expr:
        number = call("CAST", (self.of_day("quarter"),), STRING, self.offset)
        return call("concat", (literal(before, STRING), number), STRING, self.offset) if before else number


def _two_digits(start: int) -> tuple[Callable[[_Time], Expr], Callable[[_Time], Expr]]:
    return lambda t: t.short(t.digits(start, 2)), lambda t: t.digits(start, 2)


def _hours(letter: str) -> tuple[Callable[[_Time], Expr], Callable[[_Time], Expr]]:
    return lambda t: t.short(t.of_hour(letter)), lambda t: t.of_hour(letter)


_PARTS: dict[str, Callable[[_Time], Expr]] = {
    **dict.fromkeys(("y", "u"), lambda t: t.short(t.digits(1, 4))),
    **dict.fromkeys(("yyyy", "uuuu"), lambda t: t.digits(1, 4)),
    **dict.fromkeys(("yy", "uu"), lambda t: t.digits(3, 2)),
    **dict(zip(("M", "MM"), _two_digits(6), strict=True)),
    **dict(zip(("L", "LL"), _two_digits(6), strict=True)),
    **dict(zip(("d", "dd"), _two_digits(9), strict=True)),
    **dict(zip(("H", "HH"), _two_digits(12), strict=True)),
    **dict(zip(("m", "mm"), _two_digits(15), strict=True)),
    **dict(zip(("s", "ss"), _two_digits(18), strict=True)),
    **dict(zip(("h", "hh"), _hours("h"), strict=True)),
    **dict(zip(("k", "kk"), _hours("k"), strict=True)),
    **dict(zip(("K", "KK"), _hours("K"), strict=True)),
    "a": lambda t: t.of_hour("a"),
    "MMM": lambda t: t.month(length=3),
    "MMMM": lambda t: t.month(length=None),
    **dict.fromkeys(("E", "EE", "EEE"), lambda t: t.weekday(length=3)),
    "EEEE": lambda t: t.weekday(length=None),
    "D": lambda t: call("CAST", (t.of_day("dayofyear"),), STRING, t.offset),
    "DDD": lambda t: call(
        "lpad",
        (call("CAST", (t.of_day("dayofyear"),), STRING, t.offset), literal(3, INT), literal("0", STRING)),
        STRING,
        t.offset,
    ),
    **dict.fromkeys(("Q", "q"), lambda t: t.quarter("")),
    **dict.fromkeys(("QQ", "qq"), lambda t: t.quarter("0")),
    "QQQ": lambda t: t.quarter("Q"),
    "QQQQ": lambda t: t.chosen(_QUARTERS, t.of_day("quarter"), 1),
}
