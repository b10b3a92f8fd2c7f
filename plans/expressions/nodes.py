"""Reads an expression of a plan, which is Spark SQL, into a tree: one that the compiler prints, or that is alike.

Owns no list of functions and no types. Text that it does not understand is no error: :func:`read` returns None.

>>> tree = read("coalesce(a, 'x') > 1")
>>> tree.kind, tree.text, [part.kind for part in tree.parts]
('compare', '>', ['call', 'number'])
>>> read("a IN (SELECT 1)") is None
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
"""Operators that stand in a row, from the loosest on; AND and OR are looser."""
_UNQUOTED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b"}
_NO_NAMES = frozenset("WHEN THEN ELSE END AND OR NOT AS FROM IN IS LIKE BETWEEN ESCAPE DIV".split())  # noqa: SIM905
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_CONSTANTS = ("TRUE", "FALSE", "NULL")


class Token(NamedTuple):
    """A word, sign or literal; ``kind`` is a name of a group of the pattern, ``start`` its place in the text."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: ``text`` is what it says itself, ``parts`` are what it is made of.

    A ``chain`` has its operators in ``text``, divided by blanks; a ``cast`` has ``CAST`` or ``TRY_CAST``, a blank, and
    the type.
    """

    kind: str
    text: str
    parts: tuple[Node, ...] = ()


class _Unknown(Exception):
    """The text is none that is read here."""


def tokens(text: str) -> Iterator[Token]:
    """The words, signs and literals of ``text``, without blanks; what is none of these is of the kind ``other``."""
    for found in _TOKEN.finditer(text):
        if found.lastgroup is not None:
            yield Token(found.lastgroup, found[0], found.start())


def read(text: str) -> Node | None:
    """The tree of ``text``; None if it is not understood."""
    try:
        reader = _Reader([*tokens(text)])
        found = reader.disjunction()
        return found if reader.at == len(reader.tokens) else None
    except (_Unknown, RecursionError):
        return None


def string_value(quoted: str) -> str:
    """The text that a literal of Spark SQL stands for.

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
        """Whether the next token is one of these words, in capitals, or signs."""
        if self.at + ahead >= len(self.tokens):
            return False
        token = self.tokens[self.at + ahead]
        return token.kind in ("word", "sign") and token.text.upper() in texts

    def take(self, *texts: str) -> bool:
        found = self.next_is(*texts)
        self.at += found
        return found

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
            what = self.token("word").text.upper()
            if what not in ("NULL", "TRUE", "FALSE"):
                raise _Unknown
            return Node("is", f"{negated} {what}", (left,))
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
        """``found`` with the fields and elements that are taken of it."""
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
            found = self.disjunction()
            self.need(")")
            return found
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
            found = Node("extract", unit, (self.disjunction(),))
            self.need(")")
            return found
        return Node("call", token.text, self.arguments())

    def arguments(self) -> tuple[Node, ...]:
        self.need("(")
        if self.take(")"):
            return ()
        found = [self.disjunction()]
        while self.take(","):
            found.append(self.disjunction())
        self.need(")")
        return tuple(found)

    def cast(self, word: str) -> Node:
        self.need("(")
        value = self.disjunction()
        self.need("AS")
        return Node("cast", f"{word} {self.type_text()}", (value,))

    def type_text(self) -> str:
        """The type up to the bracket that ends the cast, written in one way."""
        depth, found = 0, list[str]()
        while True:
            token = self.token("word", "number", "quoted", "sign")
            depth += (token.text in ("(", "<")) - (token.text in (")", ">"))
            if depth < 0:
                return "".join(found)
            behind_word = found and (found[-1][-1].isalnum() or found[-1][-1] in "_`>)")
            separated = token.kind in ("word", "quoted") and behind_word
            found.append(f" {token.text}" if separated else ", " if token.text == "," else token.text)

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
