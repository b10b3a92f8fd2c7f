"""Parses ``TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))`` in FROM, with sqlglot's parser.

The result is the node of the table ``t`` with the call attached. Therefore code that resolves names in FROM needs to
know nothing of windows. :mod:`hintplan.planner.query.sources.windows` interprets the call.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
"""The window table-valued functions."""
_START = "start"
_CALL = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowArgument:
    """An argument of a window function, at ``offset``; ``name`` is the word before ``=>``, or None.

    ``kind`` is table, descriptor or value. The ``columns`` of a table are its PARTITION BY.
    """

    kind: str
    name: str | None
    offset: int
    columns: tuple[exp.Identifier, ...] = ()
    value: exp.Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCall:
    """A call of a window function at ``offset``. ``of_query`` is the offset of a query in the place of the table."""

    function: str
    arguments: tuple[WindowArgument, ...]
    offset: int
    of_query: int | None = None
    ordered: int | None = None


def window_call(node: exp.Expr) -> WindowCall | None:
    """Return the call of a window function whose table is ``node``, or None."""
    call = node.meta.get(_CALL)
    return call if isinstance(call, WindowCall) else None


def is_windowed(parser: Parser) -> bool:
    """Return True if a call of a window function in TABLE() starts at the parser's token."""
    tokens = parser._tokens[parser._index : parser._index + 4]
    words = [token.text.upper() for token in tokens]
    return len(words) == 4 and words[:2] == ["TABLE", "("] and words[2] in WINDOWS and words[3] == "("


def parse_windowed(parser: Parser) -> exp.Table:
    """Return the table that the window function reads, with the call attached."""
    parser._advance(2)
    function = parser._curr
    parser._advance(2)
    reader = _Reader(parser)
    arguments = [reader.argument()]
    while parser._match(TokenType.COMMA):
        arguments.append(reader.argument())
    parser._match_r_paren()
    parser._match_r_paren()
    table = reader.table or exp.Table(this=exp.Identifier(this=""))
    table.meta[_START] = function.start
    table.meta[_CALL] = WindowCall(
        function=function.text.upper(),
        arguments=tuple(arguments),
        offset=function.start,
        of_query=reader.query,
        ordered=reader.ordered,
    )
    alias = parser._parse_table_alias(alias_tokens=parser.TABLE_ALIAS_TOKENS)
    if alias is not None:
        table.set("alias", alias)
    return table


class _Reader:
    """Reads the arguments of one call. ``query`` and ``ordered`` are offsets of parts that no window function takes."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.table: exp.Table | None = None
        self.query: int | None = None
        self.ordered: int | None = None

    def argument(self) -> WindowArgument:
        parser = self.parser
        first = parser._curr
        name: str | None = None
        if parser._next is not None and parser._next.text == "=>":
            name = first.text.upper()
            parser._advance(2)
        if parser._match(TokenType.TABLE):
            return self._table(name, first.start)
        if parser._match_text_seq("DESCRIPTOR", "("):
            columns = self._columns()
            parser._match_r_paren()
            return WindowArgument(kind="descriptor", name=name, offset=first.start, columns=columns)
        value = parser._parse_disjunction()
        if value is None:
            parser.raise_error("Expected an argument")
        return WindowArgument(kind="value", name=name, offset=first.start, value=value)

    def _table(self, name: str | None, offset: int) -> WindowArgument:
        parser = self.parser
        place = parser._curr.start
        if parser._match(TokenType.L_PAREN):
            self.query = place
            depth = 1
            while parser._curr and depth:
                kind = parser._curr.token_type
                depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
                parser._advance()
        else:
            named = parser._parse_table_parts()
            if not isinstance(named, exp.Table):
                parser.raise_error("Expected the name of a table")
            else:
                self.table = named
        columns: tuple[exp.Identifier, ...] = ()
        if parser._match(TokenType.PARTITION_BY):
            enclosed = parser._match(TokenType.L_PAREN)
            columns = self._columns(single=not enclosed)
            if enclosed:
                parser._match_r_paren()
        if parser._curr.token_type == TokenType.ORDER_BY:
            self.ordered = parser._curr.start
            while parser._curr and parser._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
                parser._advance()
        return WindowArgument(kind="table", name=name, offset=offset, columns=columns)

    def _columns(self, *, single: bool = False) -> tuple[exp.Identifier, ...]:
        """Read the names of columns. ``single``: a comma ends the list unless a name and no other argument follows."""
        parser = self.parser
        columns = [self._column()]
        while parser._curr.token_type == TokenType.COMMA and not (single and self._ends_list()):
            parser._advance()
            columns.append(self._column())
        return tuple(columns)

    def _ends_list(self) -> bool:
        tokens = self.parser._tokens[self.parser._index + 1 : self.parser._index + 3]
        words = [token.text.upper() for token in tokens]
        return len(words) < 2 or words[1] in ("(", "=>") or words[0] in ("INTERVAL", "DESCRIPTOR", "-")

    def _column(self) -> exp.Identifier:
        parser = self.parser
        place = parser._curr.start
        column = parser._parse_id_var()
        if not isinstance(column, exp.Identifier):
            parser.raise_error("Expected a column")
            column = exp.Identifier(this="")
        column.meta[_START] = place
        return column
