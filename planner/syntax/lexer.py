"""Finds comments, hints, string ends and statement ends in a text, before it is parsed.

The lexer replaces comments and hints by blanks of the same length, so that offsets remain offsets in the original text.
It keeps hints with their positions; :mod:`hintplan.planner.hints.grammar` decides if a position is allowed. It knows no
statements.

>>> scan_text(Source(text="SELECT /*+ STATE_TTL('o'='1 d') */ 1 -- one")).text
'SELECT                             1       '
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hintplan.planner.syntax.source import Source

_NEXT = re.compile(r"'|`|\"|--|/\*|\(|\)")
_END = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|(?P<open>'|`|/\*)|(?P<end>;)", re.DOTALL)
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HintBlock:
    """A hint ``/*+ body */``. ``start`` is the offset of the first ``/``, and ``end`` follows the last ``/``."""

    start: int
    end: int
    body: str

    @property
    def body_start(self) -> int:
        return self.start + 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment that a reader might mistake for a hint: ``/* + ... */``."""

    start: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedText:
    """The scanned ``text``, with comments and hints blanked out. ``near_hints`` are comments that look like hints."""

    text: str
    hints: tuple[HintBlock, ...]
    near_hints: tuple[Comment, ...]


def statement_end(text: str, start: int) -> int | None:
    """Return the offset of the ``;`` that ends the statement at ``start``, or None. Skip quotes and comments.

    >>> statement_end("SELECT ';' -- ;\\n; SELECT", 0)
    16
    """
    for match in _END.finditer(text, start):
        if match["open"]:
            return None
        if match["end"]:
            return match.start()
    return None


def scan_text(source: Source, first: int = 0, stop: int | None = None) -> ScannedText:
    """Blank out comments and hints from ``first`` to ``stop``.

    Raise SqlError for a missing closing mark, and for double quotes.
    """
    text = source.text
    stop = len(text) if stop is None else stop
    kept: list[str] = []
    hints: list[HintBlock] = []
    near_hints: list[Comment] = []
    depth: list[int] = []
    position = first
    while match := _NEXT.search(text, position, stop):
        start = match.start()
        mark = match.group()
        kept.append(text[position:start])
        if mark == "(":
            depth.append(start)
            if len(depth) > _MAX_DEPTH:
                raise source.error(f"more than {_MAX_DEPTH} nested parentheses", start, "split the query into views")
            end = start + 1
            kept.append(mark)
        elif mark == ")":
            if not depth:
                raise source.error("')' closes nothing", start, "remove it, or add the missing '('")
            depth.pop()
            end = start + 1
            kept.append(mark)
        elif mark in "'`":
            end = _quoted_end(source, start, mark)
            kept.append(text[start:end])
        elif mark == '"':
            raise source.error(
                "double quotes are not used in SQL here",
                start,
                "write 'text' for a string and `name` for an identifier",
            )
        else:
            end = _comment_end(source, start, mark)
            if text.startswith("/*+", start):
                hints.append(HintBlock(start=start, end=end, body=text[start + 3 : end - 2]))
            elif re.match(r"/\*\s+\+", text[start:end]):
                near_hints.append(Comment(start=start, body=text[start + 2 : end - 2]))
            kept.append(re.sub(r"[^\n]", " ", text[start:end]))
        position = end
    kept.append(text[position:stop])
    if depth:
        raise source.error("'(' is never closed", depth[-1], "add the missing ')'")
    return ScannedText(text="".join(kept), hints=tuple(hints), near_hints=tuple(near_hints))


def _quoted_end(source: Source, start: int, quote: str) -> int:
    position = start + 1
    while True:
        end = source.text.find(quote, position)
        if end < 0:
            kind = "string" if quote == "'" else "identifier"
            raise source.error(f"this {kind} is never closed", start, f"add the closing {quote}")
        if not source.text.startswith(quote * 2, end):
            return end + 1
        position = end + 2


def _comment_end(source: Source, start: int, mark: str) -> int:
    if mark == "--":
        end = source.text.find("\n", start)
        return len(source.text) if end < 0 else end
    end = source.text.find("*/", start + 2)
    if end < 0:
        kind = "hint" if source.text.startswith("/*+", start) else "comment"
        raise source.error(f"this {kind} is never closed", start, "add the closing */")
    return end + 2
