"""Rewriting of forms that Spark computes more often than necessary, before Spark gets the text of an expression.

A plan contains these forms as they are, and state depends on them, so only the text for Spark changes. The values are
the same for every row:

- SPLIT_INDEX splits an empty text to nothing. In a plan this is a CASE, and Spark computes what is in a branch for each
  branch again. Without the CASE, Spark splits a text once for all of its parts.
- REGEXP_EXTRACT is NULL where nothing matches. A test for NULL only has to match.
- In a disjunction, a comparison of a text with literals is computed before a regular expression. Neither can fail.

>>> from hintplan.runtime.expressions.allowed import check_expression
>>> def rewritten(text):
...     return fewer_calls(check_expression(text, {("u",): "u"}, operator="calc_t", path="filter")).sql
>>> rewritten("CASE WHEN u <> '' THEN get(split(u, '/'), 3) ELSE CAST(NULL AS STRING) END = 'a'")
"get ( split ( nullif ( `u` , '' ) , '/' ) , 3 ) = 'a'"
>>> extracted = "CASE WHEN regexp_like(u, 'a+') THEN regexp_extract(u, 'a+', 0) ELSE CAST(NULL AS STRING) END"
>>> rewritten(f"{extracted} IS NOT NULL")
"coalesce ( regexp_like ( `u` , 'a+' ) , FALSE )"
>>> rewritten("regexp_like(u, 'a+') OR lower(u) IN ('a', 'b')")
"lower ( `u` ) IN ( 'a' , 'b' ) OR regexp_like ( `u` , 'a+' )"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hintplan.runtime.expressions.checked import CheckedExpression, SqlPiece, top_level

_NULL_TEXT = ("ELSE", "CAST", "(", "NULL", "AS", "STRING", ")", "END")
_MATCHING = frozenset(("regexp_like", "regexp_extract", "split"))
_COMPARING = frozenset(("=", "<>", "IN", "(", ")", ","))
_LONGEST = 4_096
"""The most pieces of an expression that is rewritten; all forms are short."""


def fewer_calls(expression: CheckedExpression) -> CheckedExpression:
    """Return ``expression`` with other pieces, which have the same value for every row."""
    pieces = expression.pieces
    if len(pieces) > _LONGEST or _MATCHING.isdisjoint(piece.sql.lower() for piece in pieces):
        return expression
    return replace(expression, pieces=tuple(_cheap_first(_without_cases(pieces))))


def _without_cases(pieces: Sequence[SqlPiece]) -> list[SqlPiece]:
    found: list[SqlPiece] = []
    at = 0
    while at < len(pieces):
        form = None if pieces[at].sql.upper() != "CASE" else (_split(pieces, at) or _extracted(pieces, at))
        if form is None:
            found.append(pieces[at])
            at += 1
        else:
            words, end = form
            found += [SqlPiece(sql=word, start=pieces[at].start, end=pieces[end - 1].end) for word in words]
            at = end
    return found


def _split(pieces: Sequence[SqlPiece], at: int) -> tuple[list[str], int] | None:
    """Return the words for the form of SPLIT_INDEX that begins at ``at``, and its end; None for anything else."""
    text = _operand(pieces, at, ("<>", "''", "THEN", "get", "(", "split", "("))
    if text is None:
        return None
    behind = at + 2 + len(text) + 7
    call = [*text, ",", None, ")", ",", None, ")", *_NULL_TEXT]
    words = _matched(pieces, behind, call)
    if words is None:
        return None
    separator, number = words[len(text) + 1], words[len(text) + 4]
    if not separator.startswith("'") or not number.isdigit():
        return None
    return ["get", "(", "split", "(", "nullif", "(", *text, ",", "''", ")", ",", separator, ")", ",", number, ")"], (
        behind + len(call)
    )


def _extracted(pieces: Sequence[SqlPiece], at: int) -> tuple[list[str], int] | None:
    """Return the words for a form of REGEXP_EXTRACT with IS NOT NULL behind it, and its end; None for anything else."""
    head = _matched(pieces, at, ["CASE", "WHEN", "regexp_like", "(", None, ",", None, ")", "THEN", "regexp_extract"])
    if head is None or not head[4].startswith("`") or not head[6].startswith("'"):
        return None
    text, pattern = head[4], head[6]
    behind = at + len(head)
    call = ["(", text, ",", pattern, ",", None, ")", *_NULL_TEXT, "IS", "NOT", "NULL"]
    if _matched(pieces, behind, call) is None:
        return None
    return ["coalesce", "(", "regexp_like", "(", text, ",", pattern, ")", ",", "FALSE", ")"], behind + len(call)


def _operand(pieces: Sequence[SqlPiece], at: int, behind: Sequence[str]) -> list[str] | None:
    """Return the words between ``CASE WHEN`` at ``at`` and the words ``behind``: a column, or fields of one."""
    if _matched(pieces, at, ["CASE", "WHEN", None]) is None or not pieces[at + 2].sql.startswith("`"):
        return None
    text = [pieces[at + 2].sql]
    return text if _matched(pieces, at + 3, [*behind]) is not None else None


def _matched(pieces: Sequence[SqlPiece], at: int, wanted: Sequence[str | None]) -> list[str] | None:
    """Return the words from ``at`` on if they are ``wanted``, where None is any word."""
    words = [piece.sql for piece in pieces[at : at + len(wanted)]]
    same = len(words) == len(wanted) and all(
        expected is None or word == expected or (expected[0].isalpha() and word.upper() == expected.upper())
        for word, expected in zip(words, wanted, strict=True)
    )
    return words if same else None


def _cheap_first(pieces: list[SqlPiece]) -> list[SqlPiece]:
    """Return a disjunction with the comparisons of a lower or upper text with literals before its other parts."""
    words = [piece.sql for piece in pieces]
    ends = [*top_level(words, "OR")]
    if not ends or any(True for _ in top_level(words, "AND")):
        return pieces
    bounds = zip([-1, *ends], [*ends, len(pieces)], strict=True)
    parts = sorted((pieces[begin + 1 : end] for begin, end in bounds), key=lambda part: not _is_cheap(part))
    connective = pieces[ends[0]]
    result = [*parts[0]]
    for part in parts[1:]:
        result += [connective, *part]
    return result


def _is_cheap(part: Sequence[SqlPiece]) -> bool:
    """Return True for a comparison of ``lower`` or ``upper`` of a column with literals, which cannot fail."""
    words = [piece.sql for piece in part]
    if len(words) < 6 or words[0].lower() not in ("lower", "upper") or words[1] != "(" or words[3] != ")":
        return False
    is_column = words[2].startswith("`")
    return is_column and all(word.startswith("'") or word.upper() in _COMPARING for word in words[4:])
