"""Flink SQL queries for sqlglot: a tokenizer, and a parser that keeps the original calls and their offsets.

While parsing, sqlglot rewrites many function calls. Here each call stays as written (``exp.Anonymous``), so that only
:mod:`hintplan.planner.translation` interprets names. Each SELECT keeps the offset of its keyword, and each CAST the
text of its type. The parser reads VALUES as a SELECT of its rows, and marks it. Hints and comments never reach this
module, because :mod:`hintplan.planner.syntax.lexer` blanks them out.

>>> tokenize("SELECT `a b` FROM t")[1].text
'a b'
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from hintplan.planner.syntax import json_forms
from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.reserved import LIKE_NAMES
from hintplan.planner.syntax.source import CHECK_HERE, Source
from hintplan.planner.syntax.windowed_tables import WINDOWS, is_windowed, parse_windowed
from hintplan.plans.text.names import did_you_mean

__all__ = [
    "Token",
    "TokenType",
    "cells_of",
    "idle_of",
    "is_comma_join",
    "is_values",
    "offset_of",
    "parse_expression",
    "parse_query",
    "refuse_long_numbers",
    "select_offset",
    "starts_at",
    "tokenize",
    "with_idle",
]

_START = "start"
_LONGEST_NUMBER = 400
_COMMA = "comma"
_VALUES = "values"
_IDLE = "idle"
_ClauseParser = Callable[[Any], tuple[str, Any]]
_Made = TypeVar("_Made", bound=exp.Expr)
_Node = TypeVar("_Node", bound=exp.Expr | None)


def _placed(parse: _ClauseParser) -> _ClauseParser:
    """Return a parser of a clause such as WHERE that keeps the offset of the clause's keyword."""

    def parse_clause(self: parser.Parser) -> tuple[str, Any]:
        first = self._curr
        name, clause = parse(self)
        if isinstance(clause, exp.Expr):
            clause.meta.setdefault(_START, first.start)
        return name, clause

    return parse_clause


_WITHOUT_PLACE = (
    *(exp.Null, exp.Boolean, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp),
    *(exp.Localtime, exp.Localtimestamp, exp.RawString),
)
"""Nodes of a single token, whose offset sqlglot does not keep."""


class Flink(Dialect):
    """The part of Flink SQL for queries. :mod:`hintplan.planner.statements.ddl` parses DDL."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind
            for word, kind in tokens.Tokenizer.KEYWORDS.items()
            if not word.startswith(("/*", "--", "{")) and kind != TokenType.COMMAND
        }
        # Binary literals. sqlglot's own kind would also accept numbers like 0xFF, which Flink does not have.
        RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("X'", "'"), ("x'", "'")]
        COMMENTS: ClassVar[list[str | tuple[str, str]]] = []
        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(parser.Parser):
        STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": lambda self: self._parse_case(),
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CAST": lambda self: self._parse_flink_cast("CAST"),
            "TRY_CAST": lambda self: self._parse_flink_cast("TRY_CAST"),
            "CEIL": lambda self: self._parse_rounding("CEIL"),
            "CEILING": lambda self: self._parse_rounding("CEILING"),
            "FLOOR": lambda self: self._parse_rounding("FLOOR"),
            "OVERLAY": lambda self: self._parse_flink_overlay(),
            **json_forms.PARSERS,
            "EXTRACT": lambda self: self._parse_extract(),
            "POSITION": lambda self: self._parse_position(),
            "SUBSTRING": lambda self: self._parse_substring(),
            "TRIM": lambda self: self._parse_trim(),
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {
            TokenType.CURRENT_DATE: exp.CurrentDate,
            TokenType.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
            TokenType.LOCALTIMESTAMP: exp.Localtimestamp,
            TokenType.CURRENT_TIME: exp.CurrentTime,
            TokenType.LOCALTIME: exp.Localtime,
        }

        QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
            kind: _placed(parse) for kind, parse in parser.Parser.QUERY_MODIFIER_PARSERS.items()
        }

        def _parse_hint(self) -> exp.Hint | None:
            """Record the offset of SELECT instead of a hint. sqlglot calls this method right after SELECT."""
            place = exp.Hint(expressions=[])
            place.meta[_START] = self._prev.start
            place.meta[_VALUES] = self._prev.text.upper() == "VALUES"
            return place

        def _parse_derived_table_values(self, *args: object, **kwargs: object) -> None:
            """Return None: VALUES is a query, see :func:`_selecting`."""
            return

        def _parse_table(
            self,
            schema: bool = False,
            joins: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
            parse_bracket: bool = False,
            is_db_reference: bool = False,
            parse_partition: bool = False,
            consume_pipe: bool = False,
        ) -> exp.Expr | None:
            if not is_windowed(self):
                return super()._parse_table(
                    schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition, consume_pipe
                )
            table = parse_windowed(self)
            if joins:
                for join in self._parse_joins():
                    table.append("joins", join)
            return table

        def _parse_join(
            self,
            skip_join_token: bool = False,
            parse_bracket: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
        ) -> exp.Join | None:
            first = self._curr
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if isinstance(join, exp.Join):
                join.meta[_START] = first.start
                join.meta[_COMMA] = first.token_type == TokenType.COMMA
            return join

        def _parse_unnest(self, with_alias: bool = True) -> exp.Unnest | None:
            start = self._index
            unnest = super()._parse_unnest(with_alias)
            words = [token.text.upper() for token in self._tokens[start : self._index]]
            if unnest is not None:
                unnest.meta[_START] = self._tokens[start].start
                if ("WITH", "OFFSET") in pairwise(words):
                    self.raise_error("Expected WITH ORDINALITY")
            return unnest

        def _parse_function_call(
            self,
            functions: dict[str, Callable[..., Any]] | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            first = self._curr
            # SESSION has a token of its own, which is no name of a function elsewhere.
            any_token = any_token or first.text.upper() == "SESSION"
            call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
            if call is not None:
                call.meta.setdefault(_START, first.start)
            return call

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Add | exp.Interval | None:
            first = self._curr
            interval = super()._parse_interval(require_interval, parse_function_unit)
            if interval is not None:
                interval.meta.setdefault(_START, first.start)
            return interval

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
            """Read ``f(x) IGNORE NULLS``, which may precede FILTER, as ``f(x IGNORE NULLS)``."""
            if isinstance(this, exp.Anonymous) and this.expressions:
                *preceding, last = this.expressions
                this.set("expressions", [*preceding, self._parse_respect_or_ignore_nulls(last)])
            return super()._parse_window(this, alias)

        def expression(self, instance: _Made, token: Token | None = None, comments: list[str] | None = None) -> _Made:
            result = super().expression(instance, token, comments)
            if isinstance(result, _WITHOUT_PLACE):
                result.meta.setdefault(_START, self._prev.start)
            return result

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            node = super()._parse_bracket(this)
            if isinstance(node, exp.Array):  # an array without elements, which would have offsets
                node.meta.setdefault(_START, self._prev.start)
            return node

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            return self._placed_at(self._curr, super()._parse_cube_or_rollup(with_prefix))

        def _parse_grouping_sets(self) -> exp.GroupingSets | None:
            return self._placed_at(self._curr, super()._parse_grouping_sets())

        def _placed_at(self, first: Token | None, node: _Node) -> _Node:
            if node is not None and first is not None:
                node.meta[_START] = first.start
            return node

        def _parse_flink_cast(self, name: str) -> exp.Expr:
            value = self._parse_disjunction()
            if not self._match(TokenType.ALIAS):
                self.raise_error("Expected AS after the value in CAST")
            first = self._curr
            depth = 0
            while self._curr and (depth or self._curr.token_type != TokenType.R_PAREN):
                depth += (self._curr.token_type == TokenType.L_PAREN) - (self._curr.token_type == TokenType.R_PAREN)
                self._advance()
            text = self.sql[first.start : self._prev.end + 1] if first and self._prev.end >= first.start else ""
            target = exp.Literal.string(text)
            target.meta[_START] = first.start if first else self._prev.start
            return exp.Anonymous(this=name, expressions=[value, target])

        def _parse_rounding(self, name: str) -> exp.Expr:
            """Read FLOOR or CEIL of a number, or ``x TO unit`` of a time as a call of ``FLOOR TO`` with the unit."""
            arguments = self._parse_csv(self._parse_disjunction)
            if not self._match_text_seq("TO"):
                return exp.Anonymous(this=name, expressions=arguments)
            unit = exp.Var(this=self._curr.text.upper() if self._curr else "")
            unit.meta[_START] = self._curr.start if self._curr else self._prev.start
            self._advance()
            return exp.Anonymous(this="FLOOR TO" if name == "FLOOR" else "CEIL TO", expressions=[unit, *arguments])

        def _parse_flink_overlay(self) -> exp.Expr:
            """Read ``OVERLAY(text PLACING other FROM start [FOR length])``."""
            arguments = [self._parse_bitwise()]
            for word in ("PLACING", "FROM"):
                if not self._match_text_seq(word):
                    self.raise_error(f"Expected {word} in OVERLAY(text PLACING other FROM start)")
                arguments.append(self._parse_bitwise())
            if self._match_text_seq("FOR"):
                arguments.append(self._parse_bitwise())
            return exp.Anonymous(this="OVERLAY", expressions=arguments)


_FLINK = Flink()


def tokenize(text: str, offset: int = 0) -> list[Token]:
    """Return the tokens of ``text``, which has no comments. Raise TokenError if a token is invalid.

    ``offset`` is added to the offsets of tokens. Lines and columns count from the beginning of ``text``.
    """
    tokens_of_text = _FLINK.tokenize(text)
    if not offset:
        return list(tokens_of_text)
    return [Token(t.token_type, t.text, t.line, t.col, t.start + offset, t.end + offset) for t in tokens_of_text]


def refuse_long_numbers(source: Source, tokens: list[Token]) -> None:
    """Raise SqlError for a number longer than any type allows. Python itself cannot convert every such number."""
    for token in tokens:
        if token.token_type == TokenType.NUMBER and len(token.text) > _LONGEST_NUMBER:
            message = f"a number has at most {_LONGEST_NUMBER} characters, found {len(token.text):,}"
            raise source.error(message, token.start, "no type has more than 38 digits")


def parse_query(source: Source, text: str | Blanked, query: list[Token]) -> exp.Query:
    """Parse the tokens of one query, which were cut from ``text``. Raise SqlError at the first unexpected token."""
    source.spend("tokens", len(query), query[0].start)
    try:
        # sqlglot only takes slices of the text.
        trees = _FLINK.parser().parse([_selecting(token) for token in query], typing.cast(str, text))
    except TokenError as error:
        raise source.error("the query cannot be read", query[0].start, str(error)) from error
    except ParseError as error:
        raise _syntax_error(source, query, error) from None
    root = trees[0] if trees else None
    if not isinstance(root, exp.Query) or isinstance(root, exp.Table):
        raise source.error("expected a query", query[0].start, "write SELECT ... FROM ...")
    for select in root.find_all(exp.Select):
        if select.args.get("hint") is None:
            place = offset_of(select) or query[0].start
            raise source.error("a query starts with SELECT", place, "write SELECT ... FROM ...")
        if not select.expressions:
            raise source.error("nothing is selected", offset_of(select), "write SELECT column, ... FROM ...")
    return root


def _selecting(token: Token) -> Token:
    """Replace VALUES by SELECT: ``VALUES row, row`` has the grammar of ``SELECT row, row``."""
    if token.token_type != TokenType.VALUES:
        return token
    return Token(TokenType.SELECT, token.text, token.line, token.col, token.start, token.end)


def _syntax_error(source: Source, query: list[Token], error: ParseError) -> Exception:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    offset = query[-1].start
    if line is not None and column is not None:
        # sqlglot reports the column of the last character of the token.
        ends = (t for t in query if t.line == line and t.col == column)
        offset = next(ends, query[-1]).start
    near = source.text[offset:].split(maxsplit=1)[:1]
    place = f" at '{near[0]}'" if near else ""
    hint = _advice_on_windows(query, offset) or CHECK_HERE
    if hint == CHECK_HERE and (name := _name_to_quote(query, offset)) is not None:
        hint += f"; '{name}' is a word of the language: as the name of a column, write `{name}`"
    return source.error(f"syntax error{place}: {_reason(str(detail.get('description') or error))}", offset, hint)


def _advice_on_windows(query: list[Token], offset: int) -> str | None:
    """Return advice on an error in a call of a window function, or in EMIT, which other dialects have for windows."""
    index = next((i for i, token in enumerate(query) if token.start == offset), len(query) - 1)
    words = [token.text.upper() for token in query[max(index - 3, 0) : index + 1]]
    if words[-1:] == ["EMIT"]:
        return "remove it: a window emits its rows once, when the watermark passes its end"
    if words[1:3] == ["(", "TABLE"]:
        return did_you_mean(words[0], WINDOWS, what="functions that take a table")
    return None


def _name_to_quote(query: list[Token], offset: int) -> str | None:
    """Return the reserved word at ``offset``, or just before it, that may be meant as a name, or None."""
    index = next((i for i, token in enumerate(query) if token.start == offset), len(query) - 1)
    for token in reversed(query[max(index - 1, 0) : index + 1]):
        word = token.text.upper()
        if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and word in LIKE_NAMES:
            return token.text
    return None


def _reason(description: str) -> str:
    """Return sqlglot's description without the names of its classes."""
    if description.startswith("Required keyword"):
        return "something is missing"
    text = description.split(" but got <Token")[0].split("<")[0].rstrip(". ")
    return {"Invalid expression / Unexpected token": "this does not belong here"}.get(text, text[:1].lower() + text[1:])


def parse_expression(source: Source, text: str | Blanked, tokens_: list[Token]) -> exp.Expr:
    """Parse the tokens of one expression, such as the expression of a computed column."""
    first = tokens_[0]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.start)
    query = parse_query(source, text, [select, *tokens_])
    clauses = {key for key, value in query.args.items() if value}
    if not isinstance(query, exp.Select) or len(query.expressions) != 1 or clauses > {"hint", "expressions"}:
        raise source.error("expected one expression", first.start, "write an expression over the table's columns")
    expression: exp.Expr = query.expressions[0]
    return expression


def is_comma_join(join: exp.Join) -> bool:
    """Return True if the query has the join as ``a, b``."""
    return bool(join.meta[_COMMA])


def is_values(node: exp.Expr) -> bool:
    """Return True if ``node`` is ``VALUES row, row``. Its expressions are the rows."""
    return isinstance(node, exp.Select) and bool(node.args["hint"].meta[_VALUES])


def cells_of(row: exp.Expr) -> list[exp.Expr]:
    """Return the values of a row of VALUES: ``(1, 'a')``, ``ROW(1, 'a')``, or a single value."""
    if isinstance(row, exp.Tuple) or (isinstance(row, exp.Anonymous) and row.name.upper() == "ROW"):
        return list(row.expressions)
    return [row.this] if isinstance(row, exp.Paren) else [row]


def place_at(node: exp.Expr, offset: int) -> exp.Expr:
    """Set the offset of ``node``, a generated node, and return it."""
    node.meta[_START] = offset
    return node


def with_idle(node: exp.Expr, idle: list[exp.Expr]) -> exp.Expr:
    """Attach ``idle`` expressions to ``node``, a generated node, and return it. The compiler only validates them."""
    node.meta[_IDLE] = idle
    return node


def idle_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the expressions that ``node`` does not need, but that must be valid."""
    return list(node.meta.get(_IDLE, ()))


def offset_of(node: exp.Expr) -> int:
    """Return the smallest offset that the syntax tree of ``node`` keeps."""
    offsets = [n.meta[_START] for n in node.walk() if _START in n.meta]
    return min(offsets, default=0)


def starts_at(node: exp.Expr, *clauses: str) -> int | None:
    """Return the offset of the keyword of ``node``, or of the first of its ``clauses``, or None if the text has none.

    >>> query = parse_query(Source(text=""), "SELECT a FROM t LIMIT 1", tokenize("SELECT a FROM t LIMIT 1"))
    >>> starts_at(query, "order", "limit")
    16
    """
    parts = [node.args.get(clause) for clause in clauses] if clauses else [node]
    offsets = [part.meta[_START] for part in parts if isinstance(part, exp.Expr) and _START in part.meta]
    return min(offsets, default=None)


def select_at(place: int) -> exp.Select:
    """Return an empty generated SELECT for the text at the offset ``place``."""
    hint = place_at(exp.Hint(), place)
    hint.meta[_VALUES] = False
    return exp.Select(hint=hint)


def select_offset(select: exp.Select) -> int:
    """Return the offset of the SELECT keyword."""
    return int(select.args["hint"].meta[_START])
