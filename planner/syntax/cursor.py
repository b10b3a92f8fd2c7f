"""A cursor over the tokens of one statement, for the statements that are not queries.

Owns stepping, matching words and marks, and the "expected ..." errors. A quoted identifier never matches a keyword.

>>> source = Source(text="CREATE TABLE `table`")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("CREATE", "TABLE"), cursor.name("a table name")
(True, 'table')
"""

from __future__ import annotations

import re

from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.dialect import Token, TokenType, tokenize
from hintplan.planner.syntax.source import CHECK_HERE, Source

__all__ = ["Cursor", "tokenize", "word_of"]


def word_of(token: Token) -> str:
    """The upper-case keyword a token stands for; empty for strings and quoted identifiers."""
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()


def _words(text: str | Blanked, token: Token) -> list[Token]:
    """The tokenizer makes one token of PRIMARY KEY and the like; here every word is one."""
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or token.text.isalnum():
        return [token]
    found = list(re.finditer(r"\S+", text[token.start : token.end + 1]))
    if len(found) < 2:
        return [token]
    start = token.start
    return [
        Token(TokenType.VAR, m.group(), token.line, token.col, start + m.start(), start + m.end() - 1) for m in found
    ]


class Cursor:
    """Reads ``tokens`` of ``text`` from left to right."""

    def __init__(self, source: Source, text: str | Blanked, tokens: list[Token]) -> None:
        self.source = source
        self.text = text
        self.originals = tokens
        self.tokens = [part for token in tokens for part in _words(text, token)]
        self.index = 0

    @property
    def at_end(self) -> bool:
        return self.index >= len(self.tokens)

    @property
    def offset(self) -> int:
        """Where the next token starts; at the end, where the last one ended."""
        return self.tokens[-1].end + 1 if self.at_end else self.tokens[self.index].start

    @property
    def next_is_string(self) -> bool:
        return not self.at_end and self.tokens[self.index].token_type == TokenType.STRING

    def peek(self, *words: str) -> bool:
        """Whether the next tokens are ``words``."""
        following = self.tokens[self.index : self.index + len(words)]
        return [word_of(t) for t in following] == list(words)

    def take(self, *words: str) -> bool:
        """Step over ``words`` if they come next."""
        found = self.peek(*words)
        if found:
            self.index += len(words)
        return found

    def expect(self, words: str, hint: str | None = None) -> None:
        """Step over the ``words``, separated by blanks; SqlError if something else comes next."""
        if not self.take(*words.split()):
            raise self.unexpected(words, hint)

    def unexpected(self, expected: str, hint: str | None = None) -> Exception:
        found = "the end of the statement" if self.at_end else f"'{self.tokens[self.index].text}'"
        return self.source.error(f"expected {expected}, found {found}", self.offset, hint or CHECK_HERE)

    def next(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def name(self, what: str) -> str:
        """Step over one identifier, quoted or not, and return it."""
        if not self.at_end:
            token = self.tokens[self.index]
            plain = token.text.replace("_", "a").replace("$", "a").isalnum() and not token.text[:1].isdigit()
            if token.token_type == TokenType.IDENTIFIER or (token.token_type != TokenType.STRING and plain):
                self.index += 1
                return token.text
        raise self.unexpected(what, "quote a name that is not a plain identifier with backquotes")

    def path(self, what: str) -> tuple[str, ...]:
        """Step over ``a``, ``a.b`` or ``a.b.c``."""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name(what))
        return tuple(parts)

    def string(self, what: str) -> str:
        """Step over one string literal and return its value."""
        if self.next_is_string:
            return self.next().text
        raise self.unexpected(what, "write it in single quotes")

    def last_string(self, what: str) -> str:
        """Step over one string literal, after which the statement must end."""
        found = self.string(what)
        self.end()
        return found

    def end(self) -> None:
        """SqlError unless the statement ends here."""
        if not self.at_end:
            raise self.unexpected("';'", "end each statement with ';'")

    def names(self, what: str) -> tuple[str, ...]:
        """Step over ``(a, b, c)``."""
        self.expect("(")
        found = [self.name(what)]
        while self.take(","):
            found.append(self.name(what))
        self.expect(")")
        return tuple(found)

    def until(self, *stops: str) -> list[Token]:
        """Step over the tokens before the first of ``stops`` outside parentheses and angle brackets of types."""
        start = self.index
        depth = 0
        while not self.at_end:
            word = word_of(self.tokens[self.index])
            if depth == 0 and word in stops:
                break
            depth += (word == "(") - (word == ")")
            self.index += 1
        return self.between(start, self.index)

    def between(self, start: int, end: int) -> list[Token]:
        """The tokens from ``start`` up to ``end`` as the tokenizer made them."""
        if start == end:
            return []
        first, last = self.tokens[start].start, self.tokens[end - 1].end
        return [t for t in self.originals if first <= t.start and t.end <= last]

    def rest(self) -> tuple[Token, ...]:
        """The remaining tokens as the tokenizer made them."""
        return tuple(self.between(self.index, len(self.tokens)))

    def slice(self, tokens: list[Token]) -> str:
        """The text that ``tokens`` were cut from, white space collapsed outside of quotes."""
        parts: list[str] = []
        for before, token in zip([None, *tokens[:-1]], tokens, strict=True):
            if before is not None and token.start > before.end + 1:
                parts.append(" ")
            parts.append(self.text[token.start : token.end + 1])
        return "".join(parts)
