"""The check of a plan's expressions before Spark gets them.

A plan is a file from a pull request, and a Spark SQL expression can run code, read files and leak the environment. So
this module parses the expression. Every node, function and word must be on a list of harmless ones, and every column
must be a column of the operator's input.

Spark gets new text, written from the checked tokens, only through ``F.expr``. It does not get the text of the plan,
which its lexer may read differently. It does not get text generated from the tree either, because sqlglot rewrites
functions. This module knows neither Spark nor plans.

>>> check_expression("l.total+1", {("l", "total"): "total"}, operator="join_a_b", path="operators.join_a_b").sql
'`total` + 1'
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import zip_longest

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from hintplan.plans.analysis.run_limits import MAX_NESTING, deep_recursion
from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS, ALLOWED_WORDS
from hintplan.plans.declarations.json_functions import JSON_FUNCTIONS, call_fault
from hintplan.plans.declarations.patterns import SLOW_HINT, slow_pattern
from hintplan.plans.errors import RunError
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.expressions.bounded import patterns, too_wide
from hintplan.runtime.expressions.checked import CheckedExpression, SqlPiece, keyed_columns
from hintplan.runtime.spark.names import quoted

MAX_LENGTH = 256 << 10
MAX_NODES = 5000
"""Excludes the values of lists such as ``IN (1, 2)``, which Spark looks up."""
_MAX_CHAIN = 400
"""Terms in one chain of binary operators other than AND and OR; Spark's parser fails slightly above this number."""
_LONGEST_NUMBER = 400
"""Characters. Python refuses to read numbers with very many digits."""

_NODES: tuple[type[exp.Expr], ...] = (
    exp.Add, exp.And, exp.Between, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseRightShift, exp.BitwiseXor, exp.Boolean,
    exp.Bracket, exp.Case, exp.Cast, exp.Column, exp.ColumnDef, exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Div,
    exp.Dot, exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.HexString, exp.ILike, exp.Identifier, exp.If, exp.In, exp.IntDiv,
    exp.Interval, exp.IntervalSpan, exp.Is, exp.JSONPath, exp.JSONPathPart, exp.LT, exp.LTE, exp.Like, exp.Literal,
    exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Or, exp.Paren,
    exp.PropertyEQ, exp.RawString, exp.RegexpLike, exp.Sub, exp.TryCast, exp.Var,
)  # fmt: skip
_NEVER: tuple[type[exp.Expr], ...] = (exp.AggFunc, exp.Query, exp.SubqueryPredicate, exp.UDTF)

_FUNCTIONS = frozenset(name.upper() for name in ALLOWED_FUNCTIONS)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_SYMBOLS = frozenset("+ - * / % = <> != < <= > >= <=> ( ) [ ] , . || & | ^ ~ :: !".split())  # noqa: SIM905
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(BD|[LSYDF])?", re.IGNORECASE)
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING)
_HEX = re.compile("[0-9A-Fa-f]*")
# sqlglot and Spark agree on these escapes.
_STRING = re.compile(r"""'(?:[^'\\]|\\[\\'"nrt%_])*'|"(?:[^"\\]|\\[\\'"nrt%_])*\"""", re.DOTALL)
_SPARK = Dialect.get_or_raise("spark")
# The exceptions that sqlglot raises for calls with unexpected arguments.
_PARSER_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)


def check_expression(
    text: str, columns: Mapping[tuple[str, ...], str | tuple[str, ...]], *, operator: str, path: str
) -> CheckedExpression:
    """Check ``text`` and rewrite it for Spark; RunError, naming ``operator`` and ``path``, for what may not run.

    ``columns`` maps each reference that ``text`` may contain, such as ``("o_id",)`` or ``("l", "o_id")``, to a column
    of the DataFrame: to its name, or to the path of a field in it. Longer references continue into the fields of a ROW.
    """
    check = _Check(text, operator, path)
    with deep_recursion():
        try:
            tokens = check.tokens(text)
            tree = check.tree(text, tokens)
            replaced, used = check.resolve(tree, columns)
            pieces = check.written(tokens, replaced)
            sql = " ".join(piece.sql for piece in pieces)
            # Spark parses the new text, so the new text must be harmless too.
            tokens = check.tokens(sql)
            check.resolve(check.tree(sql, tokens), {_path(column): column for column in columns.values()})
            check.words(tokens)
            check.patterns(tokens)
        except RecursionError:
            raise check.refused("is nested too deeply") from None
    return CheckedExpression(text=text, tree=tree, pieces=pieces, columns=used, operator=operator, path=path)


def refuse_size(text: str, *, operator: str, path: str) -> None:
    """Raise RunError if ``text`` exceeds the size limits, or is no expression; its columns are not checked."""
    check = _Check(text, operator, path)
    with deep_recursion():
        try:
            check.tree(text, check.tokens(text))
        except RecursionError:
            raise check.refused("is nested too deeply") from None


class _Check:
    def __init__(self, text: str, operator: str, path: str) -> None:
        self.text = text
        self.operator = operator
        self.path = path

    def refused(self, reason: str, hint: str | None = None) -> RunError:
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        return RunError(f"operator {self.operator}: the expression {shown!r} {reason}", hint=hint, path=self.path)

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of ``text``, after a check of length and nesting, which must precede all recursive code."""
        if len(self.text) > MAX_LENGTH:
            raise self.refused(f"is {len(self.text):,} characters long; at most {MAX_LENGTH:,} are allowed")
        if "${" in text:
            # Spark replaces ${...} with settings and environment variables anywhere in the text, even inside a string.
            raise self.refused("contains '${', which Spark would replace", hint="write concat('$', '{...') instead")
        try:
            tokens = _SPARK.tokenize(text)
        except SqlglotError as error:
            raise self.refused("is not an expression in Spark SQL") from error
        depth = 0
        for token in tokens:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth > MAX_NESTING:
                raise self.refused(f"is nested more than {MAX_NESTING} levels deep")
        return tokens

    def tree(self, text: str, tokens: list[Token]) -> exp.Expr:
        """Return the tree of ``text``, after a check of the number, the kinds and the chaining of its nodes."""
        try:
            tree = _parsed(text, tokens)
        except _PARSER_ERRORS as error:
            raise self.refused("is not an expression in Spark SQL") from error
        pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
        count = 0
        while pending:
            node, depth = pending.pop()
            count += not (isinstance(node, exp.Literal) and isinstance(node.parent, exp.In))
            if count > MAX_NODES:
                raise self.refused(f"has more than {MAX_NODES:,} parts")
            if depth > _MAX_CHAIN:
                raise self.refused(f"chains more than {_MAX_CHAIN} operators", hint="compute it in several steps")
            if not _is_allowed(node):
                raise self.refused(f"contains a {node.key}, which a plan may not")
            self.own_call(node)
            for child in node.iter_expressions():
                flat = isinstance(node, exp.Connector) and type(child) is type(node)
                pending.append((child, depth if flat else depth + 1))
        return tree

    def own_call(self, node: exp.Expr) -> None:
        """Refuse wrong arguments to hintplan's own functions, nested ``array_repeat``, and formats with long widths."""
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if name in JSON_FUNCTIONS:
            texts = [arg.name if isinstance(arg, exp.Literal) and arg.is_string else None for arg in node.expressions]
            fault = call_fault(name, texts)
            if fault is not None:
                raise self.refused(f"calls {name}, which {fault}")
        if name == "array_repeat" and any(
            call.name.lower() == name for value in node.expressions[:1] for call in value.find_all(exp.Anonymous)
        ):
            raise self.refused("calls array_repeat on the result of array_repeat")
        if isinstance(node, exp.Format):
            form = node.this if isinstance(node.this, exp.Literal) and node.this.is_string else None
            wide = too_wide(None if form is None else form.name)
            if wide is not None:
                raise self.refused(wide, hint="write the format out, with short widths")

    def resolve(
        self, tree: exp.Expr, columns: Mapping[tuple[str, ...], str | tuple[str, ...]]
    ) -> tuple[dict[int, tuple[int, str]], tuple[tuple[str, ...], ...]]:
        """Return the replacements of identifiers, as start -> (end, text), and the used keys of ``columns``."""
        # Names that sqlglot has invented have no position in the text; its real words are checked one by one.
        named = (node for node in tree.find_all(exp.Identifier) if "start" in node.meta)
        replaced = {node.meta["start"]: (node.meta["end"], quoted(node.name)) for node in named}
        used: dict[tuple[str, ...], None] = {}
        for column, key in keyed_columns(tree, columns):
            if key is None:
                available = [".".join(name) for name in columns]
                missing = ".".join(part.name for part in column.parts)
                hint = did_you_mean(missing, available, what="columns of the input")
                raise self.refused(f"uses {missing!r}, which is no column of the input", hint=hint)
            used[key] = None
            first, last = column.parts[0], column.parts[len(key) - 1]
            if not {"start", "end"} <= first.meta.keys() & last.meta.keys():
                raise self.refused("is not an expression in Spark SQL")
            replaced[first.meta["start"]] = (last.meta["end"], ".".join(map(quoted, _path(columns[key]))))
        return replaced, tuple(used)

    def written(self, tokens: list[Token], replaced: Mapping[int, tuple[int, str]]) -> tuple[SqlPiece, ...]:
        """Write the expression from ``tokens``, piece by piece: literals by value, and names quoted."""
        pieces: list[SqlPiece] = []
        end = before = -1
        for token, following in zip_longest(tokens, tokens[1:]):
            if token.start <= end:
                continue  # part of the previous piece: a qualified name, or the suffix of a number
            if token.start == end + 1 > 0 and token.token_type == TokenType.STRING and pieces[-1].sql.endswith("'"):
                raise self.refused("doubles a quote inside a string", hint="write \\' for a quote")
            if token.token_type == TokenType.DOT and following is not None and following.token_type == TokenType.NUMBER:
                raise self.refused("has a number that begins with a point", hint=f"write 0.{following.text}")
            if token.start in replaced:
                end, sql = replaced[token.start]
            else:
                end, sql = token.end, self.token(token)
            if sql in ("<", ">") and pieces and pieces[-1].sql == sql and token.start == before + 1:
                # A shift, which sqlglot reads as two tokens.
                pieces[-1] = SqlPiece(sql=sql + sql, start=pieces[-1].start, end=end)
            else:
                pieces.append(SqlPiece(sql=sql, start=token.start, end=end))
            before = end
        return tuple(pieces)

    def token(self, token: Token) -> str:
        raw = self.text[token.start : token.end + 1]
        kind = token.token_type
        if (kind == TokenType.STRING and _STRING.fullmatch(raw)) or kind == TokenType.RAW_STRING:
            return str(exp.Literal.string(token.text).sql(dialect="spark"))
        if kind == TokenType.HEX_STRING and _HEX.fullmatch(token.text):
            return f"X'{token.text}'"
        if kind == TokenType.NUMBER and not self.fits(raw):
            raise self.refused("has a number that fits no type")
        if (kind == TokenType.NUMBER and _NUMBER.fullmatch(raw)) or raw in _SYMBOLS:
            return raw
        if kind not in (TokenType.STRING, TokenType.HEX_STRING) and _is_word(raw):
            return raw
        raise self.refused(f"contains {raw[:40]!r}, which a plan may not")

    @staticmethod
    def fits(number: str) -> bool:
        """Return True if ``number`` is short enough, and within the range of DOUBLE, for all parsers to read it."""
        match = _NUMBER.fullmatch(number)
        if match is None or not match[2]:
            return len(number) <= _LONGEST_NUMBER
        return len(number) <= _LONGEST_NUMBER and not math.isinf(float(match[1] + match[2]))

    def patterns(self, tokens: list[Token]) -> None:
        """Refuse a regular expression that may take too long, or that comes from the rows."""
        for pattern in patterns(tokens):
            if pattern is None:
                raise self.refused("has a regular expression that is not a text literal", hint="write the pattern out")
            slow = slow_pattern(pattern)
            if slow is not None:
                raise self.refused(f"has the pattern {pattern[:80]!r}, which {slow}", hint=SLOW_HINT)

    def words(self, tokens: list[Token]) -> None:
        """Check function names and all other bare words, in the text that Spark will parse."""
        for index, token in enumerate(tokens):
            called = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN
            name = token.text.upper()
            if index and token.start == tokens[index - 1].start:
                continue  # sqlglot reads the suffix of a number as a cast
            if token.token_type == TokenType.IDENTIFIER:
                allowed = not called
            elif token.token_type not in _LITERALS and _is_word(name):
                # A qualified name can call a function too, so any word after a dot must be quoted.
                qualified = index > 0 and tokens[index - 1].token_type == TokenType.DOT
                allowed = not qualified and (name in ALLOWED_WORDS or (called and name in _FUNCTIONS))
            else:
                continue
            if not allowed:
                hint = did_you_mean(name.lower(), sorted(ALLOWED_FUNCTIONS), what="functions that a plan may call")
                raise self.refused(f"uses {name.lower()!r}, which is not allowed in a plan", hint=hint)


def _parsed(text: str, tokens: list[Token]) -> exp.Expr:
    """Parse like ``sqlglot.parse_one``, from tokens."""
    trees = _SPARK.parser().parse_into(exp.Condition, tokens, text)
    if not trees or trees[0] is None:
        raise ParseError("no expression")
    return exp.Block(expressions=trees) if len(trees) > 1 else trees[0]


def _path(column: str | tuple[str, ...]) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else column


def _is_allowed(node: exp.Expr) -> bool:
    if isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        return False
    if isinstance(node, exp.DataType) and node.this == exp.DType.USERDEFINED:
        return False
    return isinstance(node, (*_NODES, exp.Func)) and not isinstance(node, _NEVER)


def _is_word(text: str) -> bool:
    return re.fullmatch(r"[^\W\d]\w*", text) is not None
