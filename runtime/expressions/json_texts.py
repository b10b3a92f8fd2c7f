"""Rewriting of a text in a JSON document for Spark, which removes brackets by place instead of by character.

Of ``btrim(to_json(array(x)), '[]')``, ``btrim`` takes a third of the time: it notes the place of each character.
Spark computes ``to_json`` once for both of its places in the new expression. The module knows no Spark.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> checked = check_expression("btrim(to_json(array(x)), '[]')", {("x",): "x"}, operator="calc_t", path="filter")
>>> texts_in_spark(checked, lambda texts: ["string" for _ in texts]).sql
'substring(to_json(array(`x`)), 2, length(to_json(array(`x`))) - 2)'
>>> texts_in_spark(checked, lambda texts: ["array<int>" for _ in texts]).sql
"btrim ( to_json ( array ( `x` ) ) , '[]' )"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hintplan.runtime.expressions.checked import CheckedExpression, SqlPiece

_BEFORE, _BEHIND = ("BTRIM", "(", "TO_JSON", "(", "ARRAY", "("), (")", ")", ",", "'[]'", ")")
_COLUMN = len(_BEFORE)
_SIZE = _COLUMN + 1 + len(_BEHIND)


def texts_in_spark(expression: CheckedExpression, types: Callable[[Sequence[str]], Sequence[str]]) -> CheckedExpression:
    """Return ``expression`` with another function for each JSON text of a column of text.

    ``types`` returns Spark's types of several texts at once.
    """
    pieces = expression.pieces
    found = [place for place in range(len(pieces)) if _is_text(pieces[place : place + _SIZE])]
    kinds = types([pieces[place + _COLUMN].sql for place in found]) if found else []
    written: list[SqlPiece] = []
    at = 0
    for place, kind in zip(found, kinds, strict=True):
        if kind == "string":
            array = f"to_json(array({pieces[place + _COLUMN].sql}))"
            sql = f"substring({array}, 2, length({array}) - 2)"
            last = place + _SIZE
            written += [*pieces[at:place], SqlPiece(sql=sql, start=pieces[place].start, end=pieces[last - 1].end)]
            at = last
    return replace(expression, pieces=(*written, *pieces[at:]))


def _is_text(pieces: Sequence[SqlPiece]) -> bool:
    words = tuple(piece.sql.upper() for piece in pieces)
    return words[:_COLUMN] == _BEFORE and words[_COLUMN + 1 :] == _BEHIND and pieces[_COLUMN].sql.startswith("`")
