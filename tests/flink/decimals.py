"""Arithmetic and functions of DECIMALs at the ends of their types: what Flink is asked, and what is asked of us."""

from __future__ import annotations

from itertools import product

TYPES = {
    "whole": "DECIMAL(38, 0)",
    "half": "DECIMAL(38, 18)",
    "fine": "DECIMAL(38, 37)",
    "long": "DECIMAL(20, 6)",
    "money": "DECIMAL(10, 2)",
    "part": "DECIMAL(8, 7)",
    "number": "BIGINT",
    "small": "INT",
}
_DIGITS = {"number": (18, 0), "small": (9, 0)}
_PAIRS = (
    *(("max", "max"), ("max", "-max"), ("max", "one"), ("-max", "one"), ("one", "max"), ("one", "one")),
    *(("max", "odd"), ("odd", "max"), ("odd", "other"), ("other", "odd"), ("-odd", "other"), ("zero", "odd")),
    *(("odd", "one"), ("NULL", "odd"), ("odd", "NULL")),
)
"""Values of the left and of the right side, row by row; ``one`` is the smallest number that is not zero."""
_ODD = "12345678901234567890123456789012345678"


def _value(name: str, side: str) -> str:
    """The text of one of the values of a type."""
    declared = TYPES[name]
    precision, scale = _DIGITS.get(name) or map(int, declared[8:-1].split(", "))
    sign = "-" if side.startswith("-") else ""
    digits = {"max": "9" * precision, "odd": _ODD[:precision], "one": "1", "other": "7", "zero": "0"}[side.strip("-")]
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else sign + digits


def _literal(name: str, side: str) -> str:
    return f"CAST({'NULL' if side == 'NULL' else repr(_value(name, side))} AS {TYPES[name]})"


def rows() -> list[str]:
    """A SELECT for each row, of a number ``row_number``, ``l_<name>`` and ``r_<name>`` of each type."""
    found = []
    for number, (left, right) in enumerate(_PAIRS):
        columns = [f"CAST({number} AS INT) AS nr"]
        columns += [f"{_literal(name, left)} AS l_{name}, {_literal(name, right)} AS r_{name}" for name in TYPES]
        found.append(f"SELECT {', '.join(columns)}")
    return found


def columns() -> dict[str, str]:
    return {"nr": "INT"} | {f"{side}_{name}": declared for name, declared in TYPES.items() for side in "lr"}


def expressions() -> list[str]:
    decimals = [name for name, declared in TYPES.items() if declared.startswith("DECIMAL")]
    binary = [
        f"l_{a} {sign} r_{b}" for sign in "+-*/%" for a, b in product(TYPES, TYPES) if a in decimals or b in decimals
    ]
    nested = [
        *("l_whole * l_whole / r_half", "l_whole / r_fine / r_fine", "(l_half + r_half) / r_part"),
        *("-(l_whole / r_part)", "ABS(l_half / r_fine)", "l_whole + r_whole / r_fine"),
        *("COALESCE(l_whole / r_fine, 1)", "CASE WHEN l_whole / r_fine IS NULL THEN 1 ELSE 0 END"),
        *("l_whole / NULLIF(r_half, r_half)", "l_half / 3", "1 / r_fine", "l_money / r_money", "l_number / r_money"),
    ]
    unit = "CAST(l_part / 10 AS DECIMAL(9, 9))"
    of_units = [f"{name}({unit})" for name in ("SIGN", "CEIL", "FLOOR", "ROUND", "TRUNCATE", "ABS", "-")]
    unary = [
        text.format(name)
        for name in decimals
        for text in (
            *("-l_{}", "ABS(l_{})", "SIGN(l_{})", "FLOOR(l_{})", "CEIL(l_{})", "ROUND(l_{})", "ROUND(l_{}, 1)"),
            *("ROUND(l_{}, 5)", "TRUNCATE(l_{})", "TRUNCATE(l_{}, 2)", "MOD(l_{}, 7)"),
            *("CAST(l_{} AS DECIMAL(38, 20))", "CAST(l_{} AS DECIMAL(4, 1))", "CAST(l_{} AS DECIMAL(38, 38))"),
            *("CAST(l_{} AS STRING)",),
        )
    ]
    return [*nested, *of_units, *unary, *binary]
