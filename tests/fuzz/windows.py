"""Random functions of the rows around a row, for batch jobs: their calls, in Flink's spelling and in DuckDB's.

Every result is defined: what depends on which of two rows comes first has an order that tells all rows apart, but for
those that are equal in everything; one query has one such order at most, for the second of two equal rows by one could
be the first by another. NULLs are the smallest, and FIRST_VALUE and LAST_VALUE pass over them, which DuckDB is told. A
RANGE with numbers is computed in HUGEINT there, since DuckDB fails at the ends of a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.fuzz.aggregates import call
from tests.fuzz.expressions import Expressions, Sql, duck_type, family
from tests.fuzz.forms import ORDERED

__all__ = ["Windows"]

_NULLS = {"ASC": " NULLS FIRST", "DESC": " NULLS LAST"}
_ROWS = (
    "", "", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS 2 PRECEDING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
)  # fmt: skip
_RANGES = (
    "", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
)  # fmt: skip
_NUMBERS = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "RANGE BETWEEN 1 FOLLOWING AND 5 FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING", "RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Window:
    """What stands in OVER in both spellings, without its frame; which columns it is ordered by."""

    flink: str
    duck: str
    order: tuple[Sql, ...]
    complete: bool
    """Whether the order tells rows apart."""


class Windows:
    """Calls over ``columns`` of rows that ``unique`` ones tell apart; ``named`` has what WINDOW is to declare."""

    def __init__(self, dice: Random, columns: Sequence[Sql], unique: Sequence[Sql]) -> None:
        self.dice = dice
        self.columns = tuple(columns)
        self.able = [c for c in columns if _orders(c)]
        self.unique = list(unique) if unique and all(map(_orders, unique)) else []
        self.named: tuple[str, ...] = ()
        self._complete: _Window | None = None
        self._window = self._another()
        if dice.random() < 0.3:
            self.named = (f"w AS ({self._window.flink})",)

    def call(self) -> Sql:
        """A call, of the window that the others have as well or of one of its own."""
        again = self.dice.random() < 0.4
        window = self._window if again else self._another()
        name = "w" if again and self.named else ""
        shape = self.dice.random()
        if window.order and shape < 0.35:
            return self._number(window, name)
        if window.complete and shape < 0.6:
            return self._near(window, name)
        value = self.dice.choice(self.columns) if self.dice.random() < 0.7 else None
        kinds = [family(c.type) for c in self.columns]
        value = value or Expressions(self.dice, self.columns).of(self.dice.choice(kinds), 1)
        return call(self.dice, value, self._over(window, name, self._frame(window)), over=True)

    def _another(self) -> _Window:
        dice = self.dice
        partition = dice.sample(self.able, min(len(self.able), dice.choice((0, 1, 1, 2))))
        complete = bool(self.unique) and dice.random() < 0.6
        if complete and self._complete is not None:
            return self._complete
        order = [*self.unique] if complete else dice.sample(self.able, min(len(self.able), dice.choice((0, 1, 1, 2))))
        dice.shuffle(order)
        words = [dice.choice(("ASC", "DESC")) for _ in order]
        flink = [f"{c.flink} {word}" for c, word in zip(order, words, strict=True)]
        duck = [f"{_wide(c)} {word}{_NULLS[word]}" for c, word in zip(order, words, strict=True)]
        parts = [
            (f"PARTITION BY {', '.join(getattr(c, side) for c in partition)} " if partition else "")
            + (f"ORDER BY {', '.join(text)}" if text else "")
            for side, text in (("flink", flink), ("duck", duck))
        ]
        found = _Window(parts[0].strip(), parts[1].strip(), tuple(order), complete)
        if complete:
            self._complete = found
        return found

    def _frame(self, window: _Window) -> str:
        choices = [""] if not window.order else [*_RANGES]
        if window.complete:
            choices += _ROWS
        if len(window.order) == 1 and family(window.order[0].type) == "int":
            choices += _NUMBERS
        return self.dice.choice(choices)

    def _over(self, window: _Window, name: str, frame: str = "") -> tuple[str, str]:
        flink = f" OVER {name}" if name and not frame else f" OVER ({name or window.flink} {frame})"
        return flink.replace(" )", ")").replace("( ", "("), f" OVER ({window.duck} {frame})"

    def _number(self, window: _Window, name: str) -> Sql:
        dice = self.dice
        names = ["RANK()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()"]
        if window.complete:
            names += ["ROW_NUMBER()", "ROW_NUMBER()", f"NTILE({dice.choice((1, 2, 3, 7))})"]
        function = dice.choice(names)
        flink, duck = self._over(window, name)
        type_, exact = ("DOUBLE", False) if function.startswith("P") else ("BIGINT", True)
        return Sql(function + flink, function + duck, type_, exact=exact)

    def _near(self, window: _Window, name: str) -> Sql:
        """LAG, LEAD, FIRST_VALUE or LAST_VALUE."""
        dice = self.dice
        value = dice.choice(self.columns)
        if dice.random() < 0.5:
            function = dice.choice(("FIRST_VALUE", "LAST_VALUE"))
            flink, duck = self._over(window, name, dice.choice(_ROWS))
            text = f"{function}({value.flink}){flink}", f"{function}({value.duck} IGNORE NULLS){duck}"
            return Sql(*text, value.type, nan=value.nan, exact=value.exact)
        function, rows = dice.choice(("LAG", "LEAD")), dice.choice(("", "", ", 1", ", 2", ", 0"))
        flink, duck = self._over(window, name)
        more, plain = rows, rows
        if rows and dice.random() < 0.5 and family(value.type) in ("int", "date"):
            type_ = duck_type(value.type)
            default = Expressions(dice, self.columns).literal(family(value.type))
            if family(value.type) == "date" or (value.type in ("INT", "BIGINT") and default.type == "INT"):
                more, plain = f"{rows}, {default.flink}", f"{rows}, CAST({default.duck} AS {type_})"
        text = f"{function}({value.flink}{more}){flink}", f"{function}({value.duck}{plain}){duck}"
        return Sql(*text, value.type, nan=value.nan, exact=value.exact)


def _orders(column: Sql) -> bool:
    return not column.nan and family(column.type) in ORDERED


def _wide(column: Sql) -> str:
    return f"CAST({column.duck} AS HUGEINT)" if family(column.type) == "int" else column.duck
