"""Parses calls of Flink's JSON functions, whose arguments contain keywords, with sqlglot's parser.

The result is a call with its arguments in order. Each clause is a ``Kwarg`` with its name, such as ``ON EMPTY``, and
its value, a word or an expression. Therefore calls that only differ in a clause are not equal.
:mod:`hintplan.planner.translation.json_calls` interprets the clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

_START = "start"
RETURNING, WRAPPER, ON_EMPTY, ON_ERROR, ON_NULL = "RETURNING", "WRAPPER", "ON EMPTY", "ON ERROR", "ON NULL"


def _document_call(name: str) -> Callable[[Parser], exp.Expr]:
    """Return a parser of ``JSON_VALUE``, ``JSON_QUERY`` or ``JSON_EXISTS`` ``(document, path [clauses])``."""

    def parse(parser: Parser) -> exp.Expr:
        arguments = parser._parse_csv(parser._parse_disjunction)
        while parser._curr and parser._curr.token_type != TokenType.R_PAREN:
            clause = _clause(parser)
            if clause is None:
                parser.raise_error(f"this does not belong into {name}")
                break
            arguments.append(clause)
        return exp.Anonymous(this=name, expressions=arguments)

    return parse


def _clause(parser: Parser) -> exp.Expr | None:
    first = parser._curr
    if parser._match_text_seq(RETURNING):
        return _placed(first, RETURNING, _type(parser))
    if parser._match_text_seq("WITHOUT"):
        parser._match_text_seq("ARRAY")
        return _placed(first, WRAPPER, exp.var("without")) if parser._match_text_seq(WRAPPER) else None
    if parser._match_text_seq("WITH"):
        conditional = parser._match_text_seq("CONDITIONAL")
        if not conditional:
            parser._match_text_seq("UNCONDITIONAL")
        parser._match_text_seq("ARRAY")
        word = exp.var("conditional" if conditional else "unconditional")
        return _placed(first, WRAPPER, word) if parser._match_text_seq(WRAPPER) else None
    behaviour = _behaviour(parser)
    if behaviour is None or not parser._match_text_seq("ON"):
        return None
    for clause in (ON_EMPTY, ON_ERROR):
        if parser._match_text_seq(clause.removeprefix("ON ")):
            return _placed(first, clause, behaviour)
    return None


def _behaviour(parser: Parser) -> exp.Expr | None:
    if parser._match_text_seq("DEFAULT"):
        default: exp.Expr | None = parser._parse_disjunction()
        return default
    if parser._match_text_seq("EMPTY", "ARRAY"):
        return exp.var("EMPTY ARRAY")
    if parser._match_text_seq("EMPTY", "OBJECT"):
        return exp.var("EMPTY OBJECT")
    for word in ("NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN"):
        if parser._match_text_seq(word):
            return exp.var(word)
    return None


def _type(parser: Parser) -> exp.Expr:
    """Return the text of a type, up to the closing parenthesis of the call or the next clause."""
    first, depth = parser._curr, 0
    opening = (TokenType.L_PAREN, TokenType.LT)
    closing = (TokenType.R_PAREN, TokenType.GT)
    while parser._curr and not (depth == 0 and _ends_type(parser._curr)):
        depth += (parser._curr.token_type in opening) - (parser._curr.token_type in closing)
        parser._advance()
    end = parser._prev.end
    type_literal = exp.Literal.string(parser.sql[first.start : end + 1] if first and end >= first.start else "")
    type_literal.meta[_START] = first.start if first else parser._prev.start
    return type_literal


def _ends_type(token: Token) -> bool:
    words = ("NULL", "ERROR", "DEFAULT", "EMPTY", "WITH", "WITHOUT")
    return token.token_type == TokenType.R_PAREN or token.text.upper() in words


def _object(name: str) -> Callable[[Parser], exp.Expr]:
    """Return a parser of ``JSON_OBJECT([KEY] name VALUE value, ... [NULL | ABSENT ON NULL])``.

    In the arguments, names and values alternate.
    """
    return lambda parser: _with_nulls(parser, name, _members(parser, name))


def _members(parser: Parser, name: str) -> list[exp.Expr | None]:
    arguments: list[exp.Expr | None] = []
    while parser._curr and (arguments or parser._curr.token_type != TokenType.R_PAREN):
        parser._match_text_seq("KEY")
        arguments.append(parser._parse_bitwise())
        if not parser._match_text_seq("VALUE") and not parser._match(TokenType.COLON):
            parser.raise_error(f"Expected VALUE in {name}(KEY 'name' VALUE value)")
        arguments.append(parser._parse_disjunction())
        if not parser._match(TokenType.COMMA):
            break
    return arguments


def _array(name: str) -> Callable[[Parser], exp.Expr]:
    """Return a parser of ``JSON_ARRAY(value, ... [NULL | ABSENT ON NULL])``."""
    return lambda parser: _with_nulls(parser, name, _elements(parser, name))


def _elements(parser: Parser, name: str) -> list[exp.Expr | None]:
    if parser._curr and parser._curr.token_type == TokenType.DISTINCT:
        parser.raise_error(f"{name} does not take DISTINCT")
    arguments: list[exp.Expr | None] = []
    while parser._curr and (arguments or parser._curr.token_type != TokenType.R_PAREN):
        arguments.append(parser._parse_disjunction())
        if not parser._match(TokenType.COMMA):
            break
    if parser._curr and parser._curr.token_type == TokenType.ORDER_BY:
        parser.raise_error(f"{name} does not take ORDER BY: rows are aggregated in the order in which they come")
    return arguments


def _with_nulls(parser: Parser, name: str, arguments: list[exp.Expr | None]) -> exp.Expr:
    first = parser._curr
    for word in ("NULL", "ABSENT"):
        if parser._match_text_seq(word, "ON", "NULL"):
            arguments = [*arguments, _placed(first, ON_NULL, exp.var(word))]
    return exp.Anonymous(this=name, expressions=arguments)


def _placed(first: Token, clause: str, said: exp.Expr) -> exp.Expr:
    said.meta.setdefault(_START, first.start)
    clause_node = exp.Kwarg(this=exp.var(clause), expression=said)
    clause_node.meta[_START] = first.start
    return clause_node


PARSERS: Mapping[str, Callable[[Parser], exp.Expr]] = {
    **{name: _document_call(name) for name in ("JSON_EXISTS", "JSON_QUERY", "JSON_VALUE")},
    **{name: _array(name) for name in ("JSON_ARRAY", "JSON_ARRAYAGG")},
    **{name: _object(name) for name in ("JSON_OBJECT", "JSON_OBJECTAGG")},
}
"""The parsers of the calls' arguments. Each takes sqlglot's parser."""
