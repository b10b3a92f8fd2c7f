"""The tokens of one hint block, each with its offset in the script.

>>> from hintplan.planner.syntax.lexer import scan_text
>>> source = Source(text="SELECT /*+ STATE_TTL('o'='1 d') */ 1")
>>> tokens = HintTokens(source, scan_text(source).hints[0])
>>> tokens.kind, tokens.text, tokens.offset
('name', 'STATE_TTL', 11)
"""

from __future__ import annotations

import re

from hintplan.planner.syntax.lexer import HintBlock
from hintplan.planner.syntax.source import Source

_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*|`[^`]+`)"
    r"|(?P<number>[-+]?\d[\w.]*)|(?P<mark>[(),=])|(?P<other>\S))"
)


class HintTokens:
    """Reads the tokens of ``block`` from left to right."""

    def __init__(self, source: Source, block: HintBlock) -> None:
        self.source = source
        self.end = block.end - 2
        self.index = 0
        self.tokens: list[tuple[str, str, int]] = []
        for match in _TOKEN.finditer(block.body.rstrip()):
            kind = match.lastgroup or "other"
            self.tokens.append((kind, match[kind], block.body_start + match.start(kind)))

    @property
    def offset(self) -> int:
        """Return the offset of the next token, or of the end of the hint."""
        return self.tokens[self.index][2] if self.index < len(self.tokens) else self.end

    @property
    def kind(self) -> str:
        """Return ``string``, ``name``, ``number``, ``mark``, ``other`` or ``end``."""
        return self.tokens[self.index][0] if self.index < len(self.tokens) else "end"

    @property
    def text(self) -> str:
        return self.tokens[self.index][1] if self.index < len(self.tokens) else "the end of the hint"

    def take(self, mark: str) -> bool:
        """Advance past ``mark`` and return True, if it comes next."""
        is_next = self.kind == "mark" and self.text == mark
        self.index += is_next
        return is_next

    def key(self) -> str | None:
        """Advance past a key, quoted or not, and return it, or None if no key comes next."""
        if self.kind == "string":
            return self._string()
        if self.kind != "name":
            return None
        key = re.sub(r"\s", "", self.text).strip("`")
        self.index += 1
        return key

    def string(self) -> str | None:
        """Advance past a string and return its value, or None if no string comes next."""
        return self._string() if self.kind == "string" else None

    def _string(self) -> str:
        value = self.text[1:-1].replace("''", "'")
        self.index += 1
        return value

    def fail(self, expected: str, hint: str) -> Exception:
        """Return the error for a token that is not ``expected``."""
        actual = self.text if self.kind == "end" else f"'{self.text}'" if self.kind != "string" else self.text
        return self.source.error(f"malformed hint: expected {expected}, found {actual}", self.offset, hint)
