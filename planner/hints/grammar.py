"""The grammar of hints and their allowed positions: directly after SELECT, and OPTIONS after a table.

This module parses ``/*+ STATE_TTL('key'='value', ...), ... */`` and reports all syntax errors.
:mod:`hintplan.planner.hints.lookup` reads LOOKUP and OPTIONS. :mod:`hintplan.planner.query.hint_scope` checks that a
key names an input. Grammar: FLIP-373. Names of hints are case-insensitive, keys are case-sensitive.

>>> source = Source(text="SELECT /*+ STATE_TTL('o'='36000s') */ 1")
>>> hint = parse_block(source, scan_text(source).hints[0], Diagnostics(source=source))[0]
>>> hint.entries[0].key, hint.entries[0].ttl
('o', '10 h')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hintplan.planner.hints.cached import CACHED, CachedHint, read_cached_hint
from hintplan.planner.hints.lookup import LOOKUP, OPTIONS, LookupHint, read_lookup, read_options_hint
from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.cursor import word_of
from hintplan.planner.syntax.dialect import Token
from hintplan.planner.syntax.lexer import HintBlock, ScannedText, scan_text
from hintplan.planner.syntax.source import Diagnostics, Source
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.text.names import did_you_mean

__all__ = ["STATE_TTL", "Hint", "HintEntry", "Hints", "parse_block", "read_hints", "scan_text"]

STATE_TTL = "STATE_TTL"
_STRATEGY = "it is for batch jobs of Flink, and here Spark chooses how they join"
_WITHOUT_EFFECT = {
    "BROADCAST": _STRATEGY,
    "SHUFFLE_HASH": _STRATEGY,
    "SHUFFLE_MERGE": _STRATEGY,
    "NEST_LOOP": _STRATEGY,
    "MULTI_JOIN": "joins are run two inputs at a time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HintEntry:
    """A pair ``'key'='value'`` of a STATE_TTL hint. ``ttl`` is the value in canonical form."""

    key: str
    offset: int
    ttl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One hint of a block. STATE_TTL has ``entries``, LOOKUP and OPTIONS have ``lookup``, and CACHED has ``cached``."""

    name: str
    offset: int
    entries: tuple[HintEntry, ...] = ()
    lookup: LookupHint | None = None
    cached: CachedHint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """All hints of a script, by the offset of the preceding SELECT, or of the preceding name for OPTIONS."""

    after_select: dict[int, tuple[Hint, ...]]
    after_name: dict[int, LookupHint]


def read_hints(source: Source, scanned: ScannedText, tokens: list[Token], report: Diagnostics) -> Hints:
    """Return all hints of the script. Raise SqlError for a hint in a wrong position."""
    for comment in scanned.near_hints:
        report.warn_of_hint(
            "this is a comment, not a hint: '/*' and '+' are apart", comment.start, "write /*+ without a blank"
        )
    all_hints = Hints(after_select={}, after_name={})
    for block in scanned.hints:
        before = [t for t in tokens if t.end < block.start]
        word = word_of(before[-1]) if before else ""
        name = re.match(r"\s*(\w*)", block.body)
        if word == "SELECT":
            select = before[-1].start
            if select in all_hints.after_select:
                raise source.error(
                    "two hint blocks follow one SELECT", block.start, "put all hints into one /*+ ..., ... */"
                )
            all_hints.after_select[select] = parse_block(source, block, report)
            for hint in all_hints.after_select[select]:
                if hint.name in _WITHOUT_EFFECT:
                    report.warn_of_hint(
                        f"{hint.name} has no effect: {_WITHOUT_EFFECT[hint.name]}", hint.offset, "remove it"
                    )
        elif name and name[1].upper() == OPTIONS and before:
            if before[-1].start in all_hints.after_name:
                raise source.error("two OPTIONS hints follow one table", block.start, "put all options into one")
            (hint,) = parse_block(source, block, report, of_table=True)
            assert hint.lookup is not None
            all_hints.after_name[before[-1].start] = hint.lookup
        else:
            advice = "put it before DISTINCT" if word == "DISTINCT" else "move it: SELECT /*+ ... */ ..."
            raise source.error("a hint must be directly after SELECT", block.start, advice)
    return all_hints


_FORM = "write /*+ STATE_TTL('table or alias'='1 d', ...) */"


def parse_block(source: Source, block: HintBlock, report: Diagnostics, *, of_table: bool = False) -> tuple[Hint, ...]:
    """Return the hints of one block. Raise SqlError, with the exact position, for a syntax error.

    A block after a table has one OPTIONS hint, and a block after SELECT any number of other hints.
    """
    tokens = HintTokens(source, block)
    hints = [_hint(tokens, report, of_table=of_table)]
    while not of_table and tokens.take(","):
        hints.append(_hint(tokens, report))
    if tokens.kind != "end":
        raise tokens.fail("the end of the hint" if of_table else "',' or the end of the hint", _FORM)
    return tuple(hints)


def _hint(tokens: HintTokens, report: Diagnostics, *, of_table: bool = False) -> Hint:
    offset = tokens.offset
    if tokens.kind != "name":
        raise tokens.fail("the name of a hint", _FORM)
    name = tokens.text.upper()
    if name == OPTIONS and not of_table:
        advice = "put it after the name of the table: FROM <table> /*+ OPTIONS(...) */"
        raise tokens.source.error("OPTIONS does not follow SELECT", offset, advice)
    if name in (LOOKUP, OPTIONS):
        tokens.index += 1
        lookup = read_lookup(tokens, offset, report) if name == LOOKUP else read_options_hint(tokens, offset, report)
        return Hint(name=name, offset=offset, lookup=lookup)
    if name == CACHED:
        tokens.index += 1
        return Hint(name=name, offset=offset, cached=read_cached_hint(tokens, offset, report))
    if name != STATE_TTL and name not in _WITHOUT_EFFECT:
        names = (STATE_TTL, LOOKUP, CACHED, *_WITHOUT_EFFECT)
        raise tokens.source.error(
            f"unknown hint '{tokens.text}'", offset, did_you_mean(name, names, what="known hints")
        )
    tokens.index += 1
    if name != STATE_TTL:
        _skip_arguments(tokens)
        return Hint(name=name, offset=offset)
    if not tokens.take("("):
        if tokens.kind in ("end", "mark"):
            raise tokens.source.error("STATE_TTL needs at least one key and value", offset, _FORM)
        raise tokens.fail("'('", _FORM)
    if tokens.take(")"):
        raise tokens.source.error("STATE_TTL needs at least one key and value", offset, _FORM)
    entries = [_entry(tokens, report)]
    while tokens.take(","):
        entries.append(_entry(tokens, report))
    if not tokens.take(")"):
        raise tokens.fail("',' or ')'", _FORM)
    return Hint(name=name, offset=offset, entries=tuple(entries))


def _skip_arguments(tokens: HintTokens) -> None:
    if not tokens.take("("):
        return
    depth = 1
    while depth and tokens.kind != "end":
        depth += (tokens.text == "(") - (tokens.text == ")") if tokens.kind == "mark" else 0
        tokens.index += 1
    if depth:
        raise tokens.fail("')'", "close the hint's parenthesis")


def _entry(tokens: HintTokens, report: Diagnostics) -> HintEntry:
    offset = tokens.offset
    key = tokens.key()
    if key is None:
        raise tokens.fail("a table, view or alias", _FORM)
    if not tokens.take("="):
        if tokens.kind == "mark":
            raise tokens.source.error("STATE_TTL takes keys with values, not a list", offset, f"write '{key}'='1 d'")
        raise tokens.fail("'='", _FORM)
    place = tokens.offset
    text = tokens.string()
    if text is None:
        raise tokens.fail("a duration in quotes", f"write '{key}'='1 d'")
    report.note_bare(text, place)
    try:
        ttl = format_duration(parse_duration(text))
    except ValueError as error:
        advice = getattr(error, "hint", None) or "write a number and a unit: '30 s', '15 min', '12 h', '1 d'"
        raise tokens.source.error(f"invalid STATE_TTL value '{text}': {error}", place, advice) from None
    return HintEntry(key=key, offset=offset, ttl=ttl)
