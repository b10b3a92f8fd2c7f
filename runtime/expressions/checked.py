"""An expression of a plan that may run, from which all its forms are written.

The forms are Spark's text, the program for Arrow and the filter of a source.
:func:`hintplan.runtime.expressions.allowed.check_expression` makes it, once per expression. Nobody else does, so any
function that takes one gets a harmless expression. Nobody changes its tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from sqlglot import exp, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

_VALUES = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)
_DEEPER = {"(": 1, "[": 1, "CASE": 1, ")": -1, "]": -1, "END": -1}


class SqlPiece(NamedTuple):
    """A literal, word, sign or quoted name as Spark gets it, and its first and last character in the plan's text."""

    sql: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedExpression:
    """The expression ``text`` of a plan, as a syntax tree and as the pieces of the text for Spark.

    ``columns`` are the keys of the column mapping that it uses, in order of first use. ``operator`` and ``path`` are
    its place in the plan, for messages.
    """

    text: str
    tree: exp.Expr
    pieces: tuple[SqlPiece, ...]
    columns: tuple[tuple[str, ...], ...]
    operator: str
    path: str

    @property
    def sql(self) -> str:
        """The text for Spark."""
        return " ".join(piece.sql for piece in self.pieces)

    def conjuncts(self) -> tuple[CheckedExpression, ...]:
        """Return the expressions between the top-level ANDs, in order."""
        if not isinstance(self.tree, exp.And):
            return (self,)
        trees = list(self.tree.flatten(unnest=False))
        ends = list(top_level([piece.sql for piece in self.pieces], "AND"))
        if len(trees) != len(ends) + 1:
            return (self,)
        bounds = zip([-1, *ends], [*ends, len(self.pieces)], strict=True)
        return tuple(
            self._part(tree, self.pieces[begin + 1 : end]) for tree, (begin, end) in zip(trees, bounds, strict=True)
        )

    def _part(self, tree: exp.Expr, pieces: tuple[SqlPiece, ...]) -> CheckedExpression:
        begin, end = pieces[0].start, pieces[-1].end + 1
        keys = dict.fromkeys(key for _, key in keyed_columns(tree, self.columns) if key is not None)
        return replace(
            self, text=self.text[begin:end], tree=tree, pieces=(*_moved(pieces, -begin),), columns=tuple(keys)
        )


def conjoined(parts: Sequence[CheckedExpression]) -> CheckedExpression | None:
    """Return the conjunction of some conjuncts of one expression; None for none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    text, pieces = parts[0].text, list(parts[0].pieces)
    for part in parts[1:]:
        pieces.append(SqlPiece(sql="AND", start=len(text) + 1, end=len(text) + 3))
        pieces += _moved(part.pieces, len(text) + len(" AND "))
        text += f" AND {part.text}"
    return replace(
        parts[0],
        text=text,
        tree=reduce(lambda left, right: exp.And(this=left, expression=right), (part.tree.copy() for part in parts)),
        pieces=tuple(pieces),
        columns=tuple(dict.fromkeys(key for part in parts for key in part.columns)),
    )


def is_conjunction(text: str) -> bool:
    """Return True if top-level ANDs, and no top-level ORs, connect the parts of ``text``, which may be unchecked."""
    try:
        tokens = tokenize(text, dialect="spark")
    except SqlglotError:
        return False
    before = [None, *(token.token_type for token in tokens)]
    words = [
        "" if token.token_type in _VALUES or behind == TokenType.DOT else token.text
        for token, behind in zip(tokens, before, strict=False)
    ]
    return bool([*top_level(words, "AND")]) and not [*top_level(words, "OR")]


def _moved(pieces: Sequence[SqlPiece], by: int) -> Iterator[SqlPiece]:
    return (SqlPiece(sql=piece.sql, start=piece.start + by, end=piece.end + by) for piece in pieces)


def keyed_columns(
    tree: exp.Expr, keys: Collection[tuple[str, ...]]
) -> Iterator[tuple[exp.Column, tuple[str, ...] | None]]:
    """Yield the columns in ``tree``, each with the first of ``keys`` that begins its name; None without such a key."""
    for column in tree.find_all(exp.Column):
        names = tuple(part.name for part in column.parts)
        yield column, next((names[:n] for n in range(1, len(names) + 1) if names[:n] in keys), None)


def top_level(pieces: Sequence[str], connective: str) -> Iterator[int]:
    """Yield the positions of AND or OR outside brackets, CASE and BETWEEN."""
    depth = between = 0
    for place, piece in enumerate(pieces):
        word = piece.upper()
        depth += _DEEPER.get(word, 0)
        if depth:
            continue
        if word == "BETWEEN":
            between += 1
        elif word == "AND" and between:
            between -= 1
        elif word == connective:
            yield place
