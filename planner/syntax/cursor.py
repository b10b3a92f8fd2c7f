"""A cursor over the tokens of one statement, for statements other than queries.

The cursor advances, matches words and marks, and raises the "expected ..." errors. A quoted identifier never matches a
keyword.

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
    """Return the keyword of a token in upper case. It is empty for strings and quoted identifiers."""
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()


def _words(text: str | Blanked, token: Token) -> list[Token]:
    """Split a token with several words, such as PRIMARY KEY, into one token per word."""
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or token.text.isalnum():
        return [token]
    matches = list(re.finditer(r"\S+", text[token.start : token.end + 1]))
    if len(matches) < 2:
        return [token]
    start = token.start
    return [
        Token(TokenType.VAR, m.group(), token.line, token.col, start + m.start(), start + m.end() - 1) for m in matches
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
        """Return the offset of the next token, or the end of the last token."""
        return self.tokens[-1].end + 1 if self.at_end else self.tokens[self.index].start

    @property
    def next_is_string(self) -> bool:
        return not self.at_end and self.tokens[self.index].token_type == TokenType.STRING

    def peek(self, *words: str) -> bool:
        """Return True if the next tokens are ``words``."""
        following = self.tokens[self.index : self.index + len(words)]
        return [word_of(t) for t in following] == list(words)

    def take(self, *words: str) -> bool:
        """Advance past ``words`` and return True, if they come next."""
        is_next = self.peek(*words)
        if is_next:
            self.index += len(words)
        return is_next

    def expect(self, words: str, hint: str | None = None) -> None:
        """Advance past the ``words``, separated by spaces. Raise SqlError if something else comes next."""
        if not self.take(*words.split()):
            raise self.unexpected(words, hint)

    def unexpected(self, expected: str, hint: str | None = None) -> Exception:
        actual = "the end of the statement" if self.at_end else f"'{self.tokens[self.index].text}'"
        return self.source.error(f"expected {expected}, found {actual}", self.offset, hint or CHECK_HERE)

    def next(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def name(self, what: str) -> str:
        """Advance past one identifier, quoted or not, and return it."""
        if not self.at_end:
            token = self.tokens[self.index]
            plain = token.text.replace("_", "a").replace("$", "a").isalnum() and not token.text[:1].isdigit()
            if token.token_type == TokenType.IDENTIFIER or (token.token_type != TokenType.STRING and plain):
                self.index += 1
                return token.text
        raise self.unexpected(what, "quote a name that is not a plain identifier with backquotes")

    def path(self, what: str) -> tuple[str, ...]:
        """Advance past ``a``, ``a.b`` or ``a.b.c``, and return its parts."""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name(what))
        return tuple(parts)

    def string(self, what: str) -> str:
        """Advance past one string literal, and return its value."""
        if self.next_is_string:
            return self.next().text
        raise self.unexpected(what, "write it in single quotes")

    def last_string(self, what: str) -> str:
        """Advance past one string literal, after which the statement must end, and return its value."""
        value = self.string(what)
        self.end()
        return value

    def end(self) -> None:
        """Raise SqlError unless the statement ends here."""
        if not self.at_end:
            raise self.unexpected("';'", "end each statement with ';'")

    def names(self, what: str) -> tuple[str, ...]:
        """Advance past ``(a, b, c)``, and return the names."""
        self.expect("(")
        names = [self.name(what)]
        while self.take(","):
            names.append(self.name(what))
        self.expect(")")
        return tuple(names)

    def until(self, *stops: str) -> list[Token]:
        """Advance to the first of ``stops`` outside parentheses, and return the tokens before it."""
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
        """Return the original tokens from ``start`` up to ``end``."""
        if start == end:
            return []
        first, last = self.tokens[start].start, self.tokens[end - 1].end
        return [t for t in self.originals if first <= t.start and t.end <= last]

    def rest(self) -> tuple[Token, ...]:
        """Return the remaining original tokens."""
        return tuple(self.between(self.index, len(self.tokens)))

    def slice(self, tokens: list[Token]) -> str:
        """Return the text from which ``tokens`` were cut, with white space outside quotes collapsed."""
        parts: list[str] = []
        for before, token in zip([None, *tokens[:-1]], tokens, strict=True):
            if before is not None and token.start > before.end + 1:
                parts.append(" ")
            parts.append(self.text[token.start : token.end + 1])
        return "".join(parts)
