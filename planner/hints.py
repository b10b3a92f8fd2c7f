"""Hints as written: their grammar, and the one place where they may stand, directly after SELECT.

Owns ``/*+ STATE_TTL('key'='value', ...), ... */`` and every complaint about its form. Whether a key names an input is
decided by :mod:`planner.hint_scope`. Grammar: FLIP-373; names of hints are case-insensitive, keys are not.

>>> source = Source(text="SELECT /*+ STATE_TTL('o'='36000s') */ 1")
>>> hint = parse_block(source, scan(source).hints[0])[0]
>>> hint.entries[0].key, hint.entries[0].ttl
('o', '10 h')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.cursor import word_of
from planner.dialect import Token
from planner.lexer import HintBlock, Scanned, scan
from planner.source import Report, Source
from plans.durations import format_duration, parse_duration
from plans.names import did_you_mean

__all__ = ["STATE_TTL", "Hint", "HintEntry", "parse_block", "read_hints", "scan"]

STATE_TTL = "STATE_TTL"
_WITHOUT_EFFECT = {
    "BROADCAST": "it chooses a join algorithm of batch jobs",
    "SHUFFLE_HASH": "it chooses a join algorithm of batch jobs",
    "SHUFFLE_MERGE": "it chooses a join algorithm of batch jobs",
    "NEST_LOOP": "it chooses a join algorithm of batch jobs",
    "MULTI_JOIN": "joins are run two inputs at a time",
    "LOOKUP": "lookup joins are not supported yet",
}
_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*|`[^`]+`)"
    r"|(?P<number>[-+]?\d[\w.]*)|(?P<mark>[(),=])|(?P<other>\S))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HintEntry:
    """``'key'='value'`` of a STATE_TTL hint; ``ttl`` is the value in canonical spelling."""

    key: str
    offset: int
    ttl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One hint of a block; only STATE_TTL has entries, others have no effect."""

    name: str
    offset: int
    entries: tuple[HintEntry, ...]


def read_hints(source: Source, scanned: Scanned, tokens: list[Token], report: Report) -> dict[int, tuple[Hint, ...]]:
    """All hints of the script by the offset of the SELECT they follow; SqlError for hints in other places."""
    for comment in scanned.near_hints:
        report.warn_of_hint(
            "this is a comment, not a hint: '/*' and '+' are apart", comment.start, "write /*+ without a blank"
        )
    found: dict[int, tuple[Hint, ...]] = {}
    for block in scanned.hints:
        before = [t for t in tokens if t.end < block.start]
        word = word_of(before[-1]) if before else ""
        if word == "SELECT":
            select = before[-1].start
            if select in found:
                raise source.error(
                    "two hint blocks follow one SELECT", block.start, "put all hints into one /*+ ..., ... */"
                )
            found[select] = parse_block(source, block)
            for hint in found[select]:
                if hint.name in _WITHOUT_EFFECT:
                    report.warn_of_hint(
                        f"{hint.name} has no effect: {_WITHOUT_EFFECT[hint.name]}", hint.offset, "remove it"
                    )
        else:
            raise _misplaced(source, block, word)
    return found


def _misplaced(source: Source, block: HintBlock, word: str) -> Exception:
    name = re.match(r"\s*(\w*)", block.body)
    if name and name[1].upper() == "OPTIONS":
        return source.error(
            "OPTIONS hints are not supported yet", block.start, "set the option in the table's WITH (...)"
        )
    advice = "put it before DISTINCT" if word == "DISTINCT" else "move it: SELECT /*+ ... */ ..."
    return source.error("a hint must stand directly after SELECT", block.start, advice)


class _Tokens:
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
        return self.tokens[self.index][2] if self.index < len(self.tokens) else self.end

    @property
    def kind(self) -> str:
        return self.tokens[self.index][0] if self.index < len(self.tokens) else "end"

    @property
    def text(self) -> str:
        return self.tokens[self.index][1] if self.index < len(self.tokens) else "the end of the hint"

    def take(self, mark: str) -> bool:
        found = self.kind == "mark" and self.text == mark
        self.index += found
        return found

    def fail(self, expected: str, hint: str) -> Exception:
        found = self.text if self.kind == "end" else f"'{self.text}'" if self.kind != "string" else self.text
        return self.source.error(f"malformed hint: expected {expected}, found {found}", self.offset, hint)


_FORM = "write /*+ STATE_TTL('table or alias'='1 d', ...) */"


def parse_block(source: Source, block: HintBlock) -> tuple[Hint, ...]:
    """The hints of one block; SqlError at the exact place for anything else than their grammar."""
    tokens = _Tokens(source, block)
    hints = [_hint(tokens)]
    while tokens.take(","):
        hints.append(_hint(tokens))
    if tokens.kind != "end":
        raise tokens.fail("',' or the end of the hint", _FORM)
    return tuple(hints)


def _hint(tokens: _Tokens) -> Hint:
    offset = tokens.offset
    if tokens.kind != "name":
        raise tokens.fail("the name of a hint", _FORM)
    name = tokens.text.upper()
    if name != STATE_TTL and name not in _WITHOUT_EFFECT:
        if name == "OPTIONS":
            raise tokens.source.error("OPTIONS hints are not supported yet", offset, "set the option in WITH (...)")
        known = (STATE_TTL, *_WITHOUT_EFFECT)
        raise tokens.source.error(
            f"unknown hint '{tokens.text}'", offset, did_you_mean(name, known, what="known hints")
        )
    tokens.index += 1
    if name != STATE_TTL:
        _skip_arguments(tokens)
        return Hint(name=name, offset=offset, entries=())
    if not tokens.take("("):
        if tokens.kind in ("end", "mark"):
            raise tokens.source.error("STATE_TTL needs at least one key and value", offset, _FORM)
        raise tokens.fail("'('", _FORM)
    if tokens.take(")"):
        raise tokens.source.error("STATE_TTL needs at least one key and value", offset, _FORM)
    entries = [_entry(tokens)]
    while tokens.take(","):
        entries.append(_entry(tokens))
    if not tokens.take(")"):
        raise tokens.fail("',' or ')'", _FORM)
    return Hint(name=name, offset=offset, entries=tuple(entries))


def _skip_arguments(tokens: _Tokens) -> None:
    if not tokens.take("("):
        return
    depth = 1
    while depth and tokens.kind != "end":
        depth += (tokens.text == "(") - (tokens.text == ")") if tokens.kind == "mark" else 0
        tokens.index += 1
    if depth:
        raise tokens.fail("')'", "close the hint's parenthesis")


def _entry(tokens: _Tokens) -> HintEntry:
    offset = tokens.offset
    if tokens.kind == "string":
        key = tokens.text[1:-1].replace("''", "'")
    elif tokens.kind == "name":
        key = re.sub(r"\s", "", tokens.text).strip("`")
    else:
        raise tokens.fail("a table, view or alias", _FORM)
    tokens.index += 1
    if not tokens.take("="):
        if tokens.kind == "mark":
            raise tokens.source.error("STATE_TTL takes keys with values, not a list", offset, f"write '{key}'='1 d'")
        raise tokens.fail("'='", _FORM)
    place = tokens.offset
    if tokens.kind != "string":
        raise tokens.fail("a duration in quotes", f"write '{key}'='1 d'")
    text = tokens.text[1:-1].replace("''", "'")
    tokens.index += 1
    try:
        ttl = format_duration(parse_duration(text))
    except ValueError as error:
        advice = getattr(error, "hint", None) or "write a number and a unit: '30 s', '15 min', '12 h', '1 d'"
        raise tokens.source.error(f"invalid STATE_TTL value '{text}': {error}", place, advice) from None
    return HintEntry(key=key, offset=offset, ttl=ttl)
