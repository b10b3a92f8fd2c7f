"""Conditions at random over two rows of all types, as a plan may say them; what can fail stands behind a guard."""

from __future__ import annotations

import random

from tests.runtime.expressions.condition_values import COMPARISONS

INTEGERS = ("tiny", "small", "int", "big")
FLOATING = ("real", "double")
DECIMALS = ("cent", "money", "huge", "fine", "finest")
NUMBERS = (*INTEGERS, *FLOATING, *DECIMALS)
OTHERS = ("flag", "text", "bytes", "day", "time", "milli", "zoned")
CONSTANTS = {
    **dict.fromkeys(INTEGERS, ("0", "1", "-1", "7", "16777217", "-2147483648", "9007199254740993")),
    **dict.fromkeys(FLOATING, ("0", "0.57", "7e0", "16777217", "CAST('NaN' AS DOUBLE)", "-1.5")),
    **dict.fromkeys(DECIMALS, ("0", "0.57", "-1", "7.00", "100", "9007199254740993", "3.5e-1")),
    "flag": ("TRUE", "FALSE"),
    "text": ("'a'", "''", "'7'", "'é'"),
    "bytes": ("CAST(NULL AS BINARY)",),
    "day": ("DATE '2024-02-29'", "DATE '0001-01-01'"),
    "time": ("TIMESTAMP_NTZ '2024-02-29 00:00:00'", "TIMESTAMP_NTZ '2024-02-29 01:02:03.000004'", "DATE '2024-02-29'"),
    "milli": ("TIMESTAMP_NTZ '1969-12-31 23:59:59.999'",),
    "zoned": ("l.zoned",),
}


class Conditions:
    """Makes conditions from ``rng``; the opposite only of numbers of 34 digits, to which Spark rounds it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def condition(self, depth: int = 3) -> str:
        rng = self.rng
        choice = rng.random()
        if depth == 0 or choice < 0.3:
            return self.comparison(depth)
        if choice < 0.5:
            parts = [self.condition(depth - 1) for _ in range(rng.choice((2, 2, 3)))]
            return "(" + rng.choice((" AND ", " OR ")).join(parts) + ")"
        if choice < 0.6:
            return f"NOT ({self.condition(depth - 1)})"
        if choice < 0.65:
            return f"({self.condition(depth - 1)}) IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE', 'NULL'))}"
        if choice < 0.75:
            parts = [self.condition(depth - 1) for _ in range(3)]
            return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {rng.choice((parts[2], 'NULL'))} END"
        if choice < 0.8:
            return f"coalesce({self.condition(depth - 1)}, {self.condition(depth - 1)})"
        return self.guarded(depth - 1)

    def guarded(self, depth: int) -> str:
        """What fails for some rows, behind what excludes them."""
        rng = self.rng
        divisor, dividend = self.column(rng.choice(INTEGERS)), self.column(rng.choice(INTEGERS))
        quotient = f"{dividend} div {divisor}"
        number = self.column(rng.choice(("big", "double", "real", "money", "fine")))
        shorter = f"CAST({number} AS {rng.choice(('TINYINT', 'INT', 'DECIMAL(9, 2)', 'BIGINT'))})"
        text = rng.choice("lr") + ".text"
        return rng.choice(
            (
                f"({divisor} <> 0 AND {self.compared(quotient, depth)})",
                f"({divisor} = 0 OR {divisor} IS NULL OR {self.compared(quotient, depth)})",
                f"{self.compared(f'CASE WHEN {divisor} <> 0 THEN {quotient} ELSE {dividend} END', depth)}",
                f"{self.compared(f'CASE WHEN {divisor} = 0 THEN 1 ELSE {quotient} END', depth)}",
                f"CASE WHEN {divisor} = 0 THEN {self.condition(depth)} ELSE {self.compared(quotient, depth)} END",
                f"({number} BETWEEN -100 AND 100 AND {self.compared(shorter, depth)})",
                f"coalesce(CASE WHEN {divisor} = 0 THEN 0 END, {quotient}) >= 0",
                f"CASE WHEN {text} = '7' THEN CAST({text} AS BIGINT) ELSE 0 END = {self.number(depth)}",
                f"CASE WHEN {text} = '7' THEN CAST({text} AS DECIMAL(10, 1)) ELSE 0 END = {self.number(depth)}",
                self.compared(f"TRY_CAST({text} AS {rng.choice(('INT', 'SMALLINT', 'DECIMAL(3, 2)'))})", depth),
                self.compared(f"TRY_CAST({number} AS DECIMAL({rng.choice(('5, 2', '38, 10', '20, 0'))}))", depth),
            )
        )

    def column(self, name: str) -> str:
        return f"{self.rng.choice('lr')}.{name}"

    def compared(self, number: str, depth: int) -> str:
        return f"{number} {self.rng.choice((*COMPARISONS, '<=>'))} {self.number(depth)}"

    def comparison(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice((*NUMBERS, *OTHERS))
        if kind in NUMBERS:
            one = self.number(depth)
            others = [self.number(0) for _ in range(3)]
        else:
            one = self.column(kind)
            others = [rng.choice((self.column(kind), rng.choice(CONSTANTS[kind]))) for _ in range(3)]
        sign = rng.choice((*COMPARISONS, *COMPARISONS, "<=>", "BETWEEN", "IN", "NULL", "LIKE"))
        negation = rng.choice(("", "NOT "))
        if sign == "BETWEEN":
            return f"{one} {negation}BETWEEN {others[0]} AND {others[1]}"
        if sign == "IN":
            return f"{one} {negation}IN ({', '.join(others)})"
        if sign == "NULL":
            return f"{one} IS {negation}NULL"
        if sign == "LIKE":
            pattern = rng.choice(("a%", "%b", "a_b", "_", "%", "", "7%", "a%b%", "\\\\\\\\", "%\\\\%%"))
            return f"{self.column('text')} {negation}LIKE '{pattern}'"
        return f"{one} {sign} {others[0]}"

    def number(self, depth: int) -> str:
        rng = self.rng
        choice = rng.random()
        if depth <= 0 or choice < 0.45:
            kind = rng.choice(NUMBERS)
            return self.column(kind) if rng.random() < 0.7 else rng.choice(CONSTANTS[kind])
        if choice < 0.55:
            return f"{rng.choice(('-', 'abs'))}({self.column(rng.choice((*INTEGERS, *FLOATING, 'cent', 'money')))})"
        if choice < 0.65:
            return f"coalesce({', '.join(self.number(depth - 1) for _ in range(2))})"
        if choice < 0.75:
            parts = self.number(depth - 1), rng.choice((self.number(depth - 1), "NULL"))
            return f"CASE WHEN {self.condition(depth - 1)} THEN {parts[0]} ELSE {parts[1]} END"
        if choice < 0.8:
            narrow = rng.choice(("tiny", "small", "int"))
            return f"CAST({self.column(narrow)} AS {rng.choice(('BIGINT', 'DOUBLE', 'DECIMAL(12, 2)'))})"
        if choice < 0.85:
            # Not AS FLOAT: of CAST(CAST(l.int AS FLOAT) AS DOUBLE), Spark leaves out the first.
            return f"CAST({self.column(rng.choice(NUMBERS))} AS DOUBLE)"
        if choice < 0.9:
            kinds = [rng.choice(DECIMALS) for _ in range(2)]
            return f"try_{rng.choice(('add', 'subtract', 'multiply'))}({', '.join(map(self.column, kinds))})"
        return self.arithmetic(depth)

    def arithmetic(self, depth: int) -> str:
        """Of integers or floating-point numbers, or of DECIMALs whose result has at most 38 digits."""
        rng = self.rng
        kinds = rng.choice((INTEGERS, FLOATING, (*INTEGERS, *FLOATING), ("cent", "money", "int", "tiny")))
        one, other = self.column(rng.choice(kinds)), self.column(rng.choice(kinds))
        if rng.random() < 0.3:
            other = rng.choice(("2", "100", "-7", "1.5"))
        return f"({one} {rng.choice('+-*')} {other})"
