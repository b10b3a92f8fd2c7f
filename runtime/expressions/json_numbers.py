"""Rewriting of ``hp_json_number`` of a DOUBLE for Spark, so that rows need not go to Python for it.

The function changes only the form of Spark's text, because Flink writes doubles into documents as Java's decimals. From
0.001 up to 10,000,000, Spark writes no exponent, and both texts are the same. Other numbers get the digits, with an
exponent below 1E-6 and if there are fewer digits than places before the point. The module knows no Spark.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> def rewritten(text):
...     checked = check_expression(text, {("x",): "x"}, operator="calc_t", path="filter")
...     return numbers_in_spark(checked, lambda texts: ["double" for _ in texts]).sql
>>> rewritten("hp_json_number(upper(x))")
'hp_json_number ( upper ( `x` ) )'
>>> rewritten("hp_json_number(CAST(x AS STRING)) = 'a'").startswith("(CASE WHEN abs(`x`) >= 1.0E-3D AND ")
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hintplan.runtime.expressions.checked import CheckedExpression, SqlPiece

_BEFORE, _BEHIND = ("HP_JSON_NUMBER", "(", "CAST", "("), ("AS", "STRING", ")", ")")
_LARGEST = "1.7976931348623157E308D"


def numbers_in_spark(
    expression: CheckedExpression, types: Callable[[Sequence[str]], Sequence[str]]
) -> CheckedExpression:
    """Return ``expression`` with Spark's functions for each call on a DOUBLE column, or on a column cast to DOUBLE.

    ``types`` returns Spark's types of several texts at once.
    """
    pieces = expression.pieces
    found = {place: end for place in range(len(pieces)) if (end := _end(pieces, place)) is not None}
    operands = {place: " ".join(p.sql for p in pieces[place + 4 : end - 4]) for place, end in found.items()}
    kinds = dict(zip(operands, types([*operands.values()]), strict=True)) if operands else {}
    written: list[SqlPiece] = []
    at = 0
    while at < len(pieces):
        if kinds.get(at) == "double":
            last = found[at] - 1
            written.append(SqlPiece(sql=_in_java(operands[at]), start=pieces[at].start, end=pieces[last].end))
            at = last + 1
        else:
            written.append(pieces[at])
            at += 1
    return replace(expression, pieces=tuple(written))


def _end(pieces: Sequence[SqlPiece], at: int) -> int | None:
    """Return the end of the call that begins at ``at``; None for anything else."""
    if not _are(pieces, at, _BEFORE):
        return None
    column = at + 4
    if _are(pieces, column, ("CAST", "(")) and _are(pieces, column + 3, ("AS", "DOUBLE", ")")):
        column, behind = column + 2, column + 6
    else:
        behind = column + 1
    is_column = column < len(pieces) and pieces[column].sql.startswith("`")
    return behind + 4 if is_column and _are(pieces, behind, _BEHIND) else None


def _are(pieces: Sequence[SqlPiece], at: int, words: tuple[str, ...]) -> bool:
    return tuple(piece.sql.upper() for piece in pieces[at : at + len(words)]) == words


def _in_java(number: str) -> str:
    """Return the text of a DOUBLE as a decimal number of Java; NaN and infinities become JSON strings.

    The text is short, because Java does not compile the code of a long one.
    """
    text = f"CAST({number} AS STRING)"
    small = text
    for zeros in (3, 4, 5):
        small = rf"regexp_replace({small}, '([0-9])[.]([0-9]+)E-{zeros + 1}$', '0.{'0' * zeros}$1$2')"
    decimal = f"CAST({text} AS DECIMAL(38, 16))"
    # A mantissa ends in a zero only if that is its only place, so multiples of ten have fewer digits than places.
    plain = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM CAST({decimal} AS STRING)))"
    return (
        f"(CASE WHEN abs({number}) >= 1.0E-3D AND abs({number}) < 1.0E7D THEN {text} "
        f"WHEN {number} = 0.0D THEN '0.0' "
        f"WHEN abs({number}) > {_LARGEST} THEN concat('\"', {text}, '\"') "
        f"WHEN abs({number}) < 1.0E-3D THEN {small} "
        f"WHEN abs({number}) < 1.0E18D AND {decimal} % 10 <> 0 THEN {plain} "
        f"ELSE replace({text}, 'E', 'E+') END)"
    )
