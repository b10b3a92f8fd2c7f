"""Parses an expression of a plan, which is Spark SQL, into a tree. It supports the compiler's output and similar text.

This module has no list of functions and no types. For text that it cannot parse, :func:`read_expression` returns None.

>>> tree = read_expression("coalesce(a, 'x') > 1")
>>> tree.kind, tree.text, [part.kind for part in tree.parts]
('compare', '>', ['call', 'number'])
>>> read_expression("a IN (SELECT 1)") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""\s+
    | (?P<hex> [Xx]'[0-9A-Fa-f]*')
    | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<number> \d+\.?\d*(?:[eE][+-]?\d+)?[A-Za-z]{0,2})
    | (?P<quoted> `(?:[^`]|``)*`)
    | (?P<word> [^\W\d]\w*)
    | (?P<sign> <=>|<>|!=|<=|>=|\|\||[-+*/%=<>(),.\[\]])
    | (?P<other> .)""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_CHAINS: tuple[tuple[str, ...], ...] = (("||",), ("+", "-"), ("*", "/", "div", "%"))
"""Left-associative operators, from the lowest precedence to the highest. AND and OR have a lower precedence."""
_UNQUOTED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b"}
_NO_NAMES = frozenset("WHEN THEN ELSE END AND OR NOT AS FROM IN IS LIKE BETWEEN ESCAPE DIV".split())  # noqa: SIM905
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_CONSTANTS = ("TRUE", "FALSE", "NULL")


class Token(NamedTuple):
    """A word, sign or literal. ``kind`` is the name of a group of the pattern; ``start`` is an offset in the text."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: ``text`` is its own symbol or name, and ``parts`` are its operands.

    The ``text`` of a ``chain`` has its operators, separated by spaces. The ``text`` of a ``cast`` is ``CAST`` or
    ``TRY_CAST``, a space, and the type.
    """

    kind: str
    text: str
    parts: tuple[Node, ...] = ()


class _Unknown(Exception):
    """The parser does not support the text."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the words, signs and literals of ``text``, without spaces. Any other character has the kind ``other``."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield Token(match.lastgroup, match[0], match.start())


def read_expression(text: str) -> Node | None:
    """Return the tree of ``text``, or None if it cannot be parsed."""
    try:
        reader = _Reader([*tokens(text)])
        tree = reader.disjunction()
        return tree if reader.at == len(reader.tokens) else None
    except (_Unknown, RecursionError):
        return None


def string_value(quoted: str) -> str:
    """Return the text that a literal of Spark SQL represents.

    >>> string_value(r"'it\\'s'")
    "it's"
    """

    def meant(escape: re.Match[str]) -> str:
        sign = escape[1]
        return _UNQUOTED.get(sign, escape[0] if sign in "%_" else sign)

    return re.sub(r"\\(.)", meant, quoted[1:-1], flags=re.DOTALL)


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.at = 0

    def next_is(self, *texts: str, ahead: int = 0) -> bool:
        """Return True if the next token is one of these words (in upper case) or signs."""
        if self.at + ahead >= len(self.tokens):
            return False
        token = self.tokens[self.at + ahead]
        return token.kind in ("word", "sign") and token.text.upper() in texts

    def take(self, *texts: str) -> bool:
        is_next = self.next_is(*texts)
        self.at += is_next
        return is_next

    def need(self, *texts: str) -> None:
        if not self.take(*texts):
            raise _Unknown

    def token(self, *kinds: str) -> Token:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind not in kinds:
            raise _Unknown
        self.at += 1
        return self.tokens[self.at - 1]

    def disjunction(self) -> Node:
        parts = [self.conjunction()]
        while self.take("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Node("OR", "", tuple(parts))

    def conjunction(self) -> Node:
        parts = [self.negation()]
        while self.take("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Node("AND", "", tuple(parts))

    def negation(self) -> Node:
        return Node("NOT", "", (self.negation(),)) if self.take("NOT") else self.comparison()

    def comparison(self) -> Node:
        left = self.chain(0)
        if self.next_is(*_COMPARISONS):
            sign = self.token("sign").text
            return Node("compare", sign, (left, self.chain(0)))
        if self.take("IS"):
            negated = "IS NOT" if self.take("NOT") else "IS"
            constant = self.token("word").text.upper()
            if constant not in ("NULL", "TRUE", "FALSE"):
                raise _Unknown
            return Node("is", f"{negated} {constant}", (left,))
        negated = "NOT " if self.next_is("NOT") and self.next_is("BETWEEN", "IN", "LIKE", ahead=1) else ""
        self.at += bool(negated)
        if self.take("BETWEEN"):
            low = self.chain(0)
            self.need("AND")
            return Node("between", f"{negated}BETWEEN", (left, low, self.chain(0)))
        if self.take("IN"):
            return Node("in", f"{negated}IN", (left, *self.arguments()))
        if self.take("LIKE"):
            pattern = self.chain(0)
            escape = (self.chain(0),) if self.take("ESCAPE") else ()
            return Node("like", f"{negated}LIKE", (left, pattern, *escape))
        return left

    def chain(self, level: int) -> Node:
        if level == len(_CHAINS):
            return self.unary()
        parts, signs = [self.chain(level + 1)], []
        while self.next_is(*(sign.upper() for sign in _CHAINS[level])):
            signs.append(self.token("word", "sign").text.lower())
            parts.append(self.chain(level + 1))
        return Node("chain", " ".join(signs), tuple(parts)) if signs else parts[0]

    def unary(self) -> Node:
        return Node("negative", "", (self.unary(),)) if self.take("-") else self.behind(self.primary())

    def behind(self, found: Node) -> Node:
        """Return ``found`` with the fields and elements that follow it in the text."""
        while True:
            if self.take("."):
                found = Node("field", self.token("word", "quoted").text, (found,))
            elif self.take("["):
                found = Node("element", "", (found, self.disjunction()))
                self.need("]")
            else:
                return found

    def primary(self) -> Node:
        if self.take("("):
            node = self.disjunction()
            self.need(")")
            return node
        token = self.token("hex", "string", "number", "quoted", "word")
        if token.kind == "string":
            return Node("string", string_value(token.text))
        word = token.text.upper()
        if token.kind != "word":
            return Node("name" if token.kind == "quoted" else "number", token.text)
        if word in _CONSTANTS:
            return Node("constant", word)
        if word in ("CAST", "TRY_CAST"):
            return self.cast(word)
        if word == "CASE":
            return self.case()
        if word == "INTERVAL":
            return self.interval()
        if word in _TYPED and self.at < len(self.tokens) and self.tokens[self.at].kind == "string":
            return Node("typed", word, (Node("string", string_value(self.token("string").text)),))
        if word in _NO_NAMES:
            raise _Unknown
        if not self.next_is("("):
            return Node("name", token.text)
        if word == "EXTRACT":
            self.need("(")
            unit = self.token("word").text
            self.need("FROM")
            node = Node("extract", unit, (self.disjunction(),))
            self.need(")")
            return node
        return Node("call", token.text, self.arguments())

    def arguments(self) -> tuple[Node, ...]:
        self.need("(")
        if self.take(")"):
            return ()
        arguments = [self.disjunction()]
        while self.take(","):
            arguments.append(self.disjunction())
        self.need(")")
        return tuple(arguments)

    def cast(self, word: str) -> Node:
        self.need("(")
        value = self.disjunction()
        self.need("AS")
        return Node("cast", f"{word} {self.type_text()}", (value,))

    def type_text(self) -> str:
        """Return the type up to the bracket that ends the cast, with uniform spacing."""
        depth, pieces = 0, list[str]()
        while True:
            token = self.token("word", "number", "quoted", "sign")
            depth += (token.text in ("(", "<")) - (token.text in (")", ">"))
            if depth < 0:
                return "".join(pieces)
            behind_word = pieces and (pieces[-1][-1].isalnum() or pieces[-1][-1] in "_`>)")
            separated = token.kind in ("word", "quoted") and behind_word
            pieces.append(f" {token.text}" if separated else ", " if token.text == "," else token.text)

    def case(self) -> Node:
        parts: list[Node] = []
        if self.next_is("WHEN"):
            while self.take("WHEN"):
                parts.append(self.disjunction())
                self.need("THEN")
                parts.append(self.disjunction())
            if self.take("ELSE"):
                parts.append(self.disjunction())
            self.need("END")
            return Node("case", "", tuple(parts))
        raise _Unknown

    def interval(self) -> Node:
        negative = "-" if self.take("-") else ""
        token = self.token("string", "number")
        units = self.token("word").text.upper()
        if self.take("TO"):
            units += f" TO {self.token('word').text.upper()}"
        return Node("interval", f"INTERVAL {negative}{token.text} {units}")
