"""Checks an expression of a plan before Spark sees it.

A plan is a file from a pull request, and a Spark SQL expression can run code, read files and leak the environment. So
an expression is parsed, every node and function of it must be on a list of what is known to be harmless, its columns
must be those of the operator's input, and Spark gets text that is written anew from the checked tree, for ``F.expr``
only. Knows neither Spark nor plans; what functions are allowed is data in :mod:`plans.functions`.

>>> check_expression("l.total+1", {("l", "total"): "total"}, operator="join_a_b", path="operators.join_a_b").sql
'`total` + 1'
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import sqlglot
from plans.functions import ALLOWED_FUNCTIONS
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from plans.errors import RunError
from plans.names import did_you_mean

__all__ = ["CheckedExpression", "check_expression", "quoted"]

MAX_LENGTH = 64 << 10
MAX_NESTING = 200
MAX_NODES = 5000
_MAX_CHAIN = 400
"""Terms in one chain of binary operators other than AND and OR: somewhat above it, Spark's parser gives up."""
_RECURSION_LIMIT = 6000
"""sqlglot takes some 20 Python frames for a level of nesting."""

_NODES: tuple[type[exp.Expr], ...] = (
    exp.Add, exp.And, exp.Between, exp.BitwiseAnd, exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseXor, exp.Boolean,
    exp.Bracket, exp.Case, exp.Cast, exp.Column, exp.ColumnDef, exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Div,
    exp.Dot, exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.HexString, exp.ILike, exp.Identifier, exp.If, exp.In, exp.IntDiv,
    exp.Interval, exp.IntervalSpan, exp.Is, exp.JSONPath, exp.JSONPathPart, exp.LT, exp.LTE, exp.Like, exp.Literal,
    exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Or, exp.Paren,
    exp.PropertyEQ, exp.RawString, exp.RegexpLike, exp.Sub, exp.TryCast, exp.Var,
)  # fmt: skip
_NEVER: tuple[type[exp.Expr], ...] = (exp.AggFunc, exp.Query, exp.SubqueryPredicate, exp.UDTF)

# The words that may stand in an expression without being the name of a function or a quoted column.
_WORDS = frozenset(
    """
    AND AS BETWEEN BOTH CASE CAST DISTINCT DIV ELSE END ESCAPE EXTRACT FALSE FOR FROM ILIKE IN INTERVAL IS LEADING LIKE
    NOT NULL OR PLACING RLIKE THEN TO TRAILING TRUE TRY_CAST WHEN
    ARRAY BIGINT BINARY BOOLEAN CHAR DATE DECIMAL DOUBLE FLOAT INT MAP SMALLINT STRING STRUCT TIMESTAMP TIMESTAMP_LTZ
    TIMESTAMP_NTZ TINYINT VARCHAR
    YEAR YEARS QUARTER MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS MILLISECOND
    MILLISECONDS MICROSECOND MICROSECONDS DOW DAYOFWEEK DAYOFWEEK_ISO DOY YEAROFWEEK
    """.split()  # noqa: SIM905
)
_FUNCTIONS = frozenset(name.upper() for name in ALLOWED_FUNCTIONS)
_HEX = re.compile("[0-9A-Fa-f]*")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedExpression:
    """Text for ``F.expr``, and the keys of the column mapping that it uses, in order of first use."""

    sql: str
    columns: tuple[tuple[str, ...], ...]


def quoted(name: str) -> str:
    """``name`` as a Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def check_expression(
    text: str, columns: Mapping[tuple[str, ...], str], *, operator: str, path: str
) -> CheckedExpression:
    """Check ``text`` and rewrite it for Spark; RunError, naming ``operator`` and ``path``, for what may not run.

    ``columns`` maps how the text may address a column, such as ``("o_id",)`` or ``("l", "o_id")``, to the name of that
    column in the DataFrame; longer references go on into fields of a ROW.
    """
    check = _Check(text, operator, path)
    with _deep_recursion():
        try:
            check.tokens()
            tree = check.parse(text)
            used = check.resolve(tree, columns)
            sql = tree.sql(dialect="spark", identify=True, comments=False)
            # What Spark parses is this text, not the tree: whatever sqlglot changed on the way is checked too.
            check.resolve(check.parse(sql), {(name,): name for name in columns.values()})
            check.words(sql)
        except RecursionError:
            raise check.refused("is nested too deeply") from None
        except SqlglotError as error:
            raise check.refused("is not an expression in Spark SQL") from error
    return CheckedExpression(sql=sql, columns=used)


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Check:
    def __init__(self, text: str, operator: str, path: str) -> None:
        self.text = text
        self.operator = operator
        self.path = path

    def refused(self, reason: str, hint: str | None = None) -> RunError:
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        return RunError(f"operator {self.operator}: the expression {shown!r} {reason}", hint=hint, path=self.path)

    def tokens(self) -> None:
        """Length and nesting, before anything recursive looks at the text."""
        if len(self.text) > MAX_LENGTH:
            raise self.refused(f"is {len(self.text):,} characters long; at most {MAX_LENGTH:,} are allowed")
        if "${" in self.text:
            # Spark replaces ${...} by settings and environment variables anywhere in the text, even inside a string.
            raise self.refused("contains '${', which Spark would replace", hint="write concat('$', '{...') instead")
        depth = 0
        for token in sqlglot.tokenize(self.text, dialect="spark"):
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth > MAX_NESTING:
                raise self.refused(f"is nested more than {MAX_NESTING} levels deep")

    def parse(self, text: str) -> exp.Expr:
        """The tree of ``text``, with the number, kinds and chaining of its nodes checked."""
        tree = sqlglot.parse_one(text, dialect="spark", into=exp.Condition)
        pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
        count = 0
        while pending:
            node, depth = pending.pop()
            count += 1
            if count > MAX_NODES:
                raise self.refused(f"has more than {MAX_NODES:,} parts")
            if depth > _MAX_CHAIN:
                raise self.refused(f"chains more than {_MAX_CHAIN} operators", hint="compute it in several steps")
            self.node(node)
            for child in node.iter_expressions():
                flat = isinstance(node, exp.Connector) and type(child) is type(node)
                pending.append((child, depth if flat else depth + 1))
        return tree

    def node(self, node: exp.Expr) -> None:
        allowed = isinstance(node, (*_NODES, exp.Func)) and not isinstance(node, _NEVER)
        if isinstance(node, exp.Dot):
            allowed = isinstance(node.expression, exp.Identifier)
        if isinstance(node, exp.HexString):
            allowed = _HEX.fullmatch(node.name) is not None
        if not allowed:
            shown = node.sql(dialect="spark", comments=False)[:80]
            raise self.refused(f"contains {shown!r} ({node.key}), which a plan may not")

    def resolve(self, tree: exp.Expr, columns: Mapping[tuple[str, ...], str]) -> tuple[tuple[str, ...], ...]:
        """Point each column reference at its column in the DataFrame; the used keys of ``columns``."""
        used: dict[tuple[str, ...], None] = {}
        for column in list(tree.find_all(exp.Column)):
            names = tuple(part.name for part in column.parts)
            key = next((names[:n] for n in range(1, len(names) + 1) if names[:n] in columns), None)
            if key is None:
                known = [".".join(name) for name in columns]
                hint = did_you_mean(".".join(names), known, what="columns of the input")
                raise self.refused(f"uses {'.'.join(names)!r}, which is no column of the input", hint=hint)
            used[key] = None
            # A Column holds four parts at most, and parts before the last stand under the names of qualifiers.
            path = [columns[key], *names[len(key) :]]
            for slot in ("this", "table", "db", "catalog"):
                column.set(slot, exp.to_identifier(path.pop(), quoted=True) if path else None)
        return tuple(used)

    def words(self, sql: str) -> None:
        """Function names and all other bare words, in the text that Spark will parse."""
        tokens = sqlglot.tokenize(sql, dialect="spark")
        for index, token in enumerate(tokens):
            called = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN
            name = token.text.upper()
            if token.token_type == TokenType.IDENTIFIER:
                allowed = not called
            elif token.token_type not in _LITERALS and _is_word(name):
                # A function may be called by a qualified name: whatever follows a dot must be quoted.
                qualified = index > 0 and tokens[index - 1].token_type == TokenType.DOT
                allowed = not qualified and (name in _WORDS or (called and name in _FUNCTIONS))
            else:
                continue
            if not allowed:
                hint = did_you_mean(name.lower(), sorted(ALLOWED_FUNCTIONS), what="functions that a plan may call")
                raise self.refused(f"uses {name.lower()!r}, which is not allowed in a plan", hint=hint)


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"
