"""Which state a STATE_TTL key sets: keys are matched with the inputs of their own block.

Scope rules: FLIP-373; which of several equal keys wins is what Flink 2.3 does, with a warning. What becomes of each key
is written into the :class:`hintplan.planner.hints.ledger.Ledger`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hintplan.planner.context import Context
from hintplan.planner.hints.grammar import STATE_TTL, HintEntry
from hintplan.planner.hints.lookup import LookupHint
from hintplan.planner.relations import Hinted
from hintplan.planner.translation.scope import Input
from hintplan.plans.text.names import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHints:
    """What the hints of a block say of its inputs, by the input's name: TTLs, and how looked-up tables are looked up.

    ``asked_for`` are the names whose TTL some state has taken.
    """

    by_input: dict[str, Hinted] = field(default_factory=dict)
    lookups: dict[str, LookupHint] = field(default_factory=dict)
    asked_for: set[str] = field(default_factory=set)

    def of(self, name: str | None) -> Hinted | None:
        if name is None:
            return None
        self.asked_for.add(name)
        return self.by_input.get(name)


def resolve_block(
    context: Context,
    select: int,
    inputs: tuple[Input, ...],
    *,
    stateful: bool,
    advice: str,
    elsewhere: dict[str, str],
) -> BlockHints:
    """Match the hints after the SELECT at ``select`` with the block's ``inputs``.

    A key that names no input is an error if the block is ``stateful``; else the hint has no effect, and ``advice`` says
    what to do. ``elsewhere`` says of names that are not inputs of this block where they are. In batch mode keys are
    checked all the same, since the same query may stream tomorrow.
    """
    winners = _winners(context, select)
    winners = [entry for entry in winners if not _of_lookup(context, entry, inputs)]
    winners = [entry for entry in winners if not _of_call(context, entry, inputs)]
    looks_up, calls = any(found.looked_up for found in inputs), any(found.called for found in inputs)
    inputs = tuple(found for found in inputs if not (found.looked_up or found.called))
    if not winners:
        return BlockHints()
    if not stateful:
        nothing = "no join and no aggregation"
        if looks_up or calls:
            what = " and ".join([*(["lookups"] if looks_up else []), *(["calls of functions"] if calls else [])])
            nothing = f"no join but {what}, which keep no state"
            advice = "remove it"
            if looks_up:
                advice += "; how long answers of a lookup are kept says its cache: see 'lookup.cache'"
        for entry in winners:
            context.ledger.losers.setdefault(entry.offset, ("refused", f"the block has {nothing}"))
        context.report.warn_of_hint(
            f"{STATE_TTL} has no effect: this query block has {nothing}", winners[0].offset, advice
        )
        return BlockHints()
    found: dict[str, Hinted] = {}
    for entry in winners:
        name = match_name(entry.key, inputs)
        if name is None:
            raise _unknown(context, entry, inputs, elsewhere)
        found[name] = Hinted(ttl=entry.ttl, offset=entry.offset)
    if context.batch:
        for entry in winners:
            context.ledger.losers[entry.offset] = ("refused", "a batch job keeps no state")
        context.report.note(
            f"{STATE_TTL} has no effect: a batch job keeps no state", winners[0].offset, "it counts in streaming"
        )
        return BlockHints()
    return BlockHints(by_input=found)


def explain_division(context: Context, hints: BlockHints, in_from: tuple[Input, ...]) -> None:
    """Say which states the keys of a block set that both joins and aggregates; ``in_from`` are the inputs in FROM.

    Two inputs in FROM are those of a join. A single one is that of the aggregate, wherever sub-queries become joins.
    """
    if len(in_from) == 1:
        _note(
            context,
            [(key, hinted) for key, hinted in hints.by_input.items() if key == in_from[0].name],
            "the state of the aggregation; the joins with sub-queries of this block keep the configured TTL",
            "to hint such a join, put it into a sub-query with an alias, without the aggregation",
        )
    joined = {found.name for found in in_from if not (found.looked_up or found.called)}
    if len(joined) > 1:
        _note(
            context,
            [(key, hinted) for key, hinted in hints.by_input.items() if key in joined],
            "the states of the join; the aggregation of this block keeps the configured TTL",
            "to hint the aggregation, put the join into a sub-query with an alias and use the alias as key",
        )
    _note(
        context,
        [(key, hinted) for key, hinted in hints.by_input.items() if all(key != found.name for found in in_from)],
        "a state of the join with the sub-query, not that of the aggregation of this block",
        "to hint the aggregation, use the name of what stands in FROM",
    )


def _note(context: Context, hinted: list[tuple[str, Hinted]], what: str, advice: str) -> None:
    if hinted:
        keys = ", ".join(f"'{key}'" for key, _ in hinted)
        said = f"{STATE_TTL} key {keys} sets" if len(hinted) == 1 else f"{STATE_TTL} keys {keys} set"
        context.report.note(f"{said} {what}", min(h.offset for _, h in hinted), advice)


def _winners(context: Context, select: int) -> list[HintEntry]:
    """Flink's order: within one hint the last of equal keys wins, among several hints the first."""
    chosen: dict[str, HintEntry] = {}
    for hint in context.ledger.hints.after_select.get(select, ()):
        within: dict[str, HintEntry] = {}
        for entry in hint.entries:
            if entry.key in within:
                _overridden(context, within[entry.key], entry)
            within[entry.key] = entry
        for key, entry in within.items():
            if key in chosen:
                _overridden(context, entry, chosen[key])
            else:
                chosen[key] = entry
    return list(chosen.values())


def _overridden(context: Context, loser: HintEntry, winner: HintEntry) -> None:
    place = context.source.where(winner.offset)
    context.ledger.losers[loser.offset] = ("overridden", f"'{winner.key}'='{winner.ttl}' at {place}")
    if loser.ttl != winner.ttl:
        context.report.warn_of_hint(
            f"{STATE_TTL} key '{loser.key}' is given twice: {loser.ttl} here is overridden by {winner.ttl} at {place}",
            loser.offset,
            "remove one of them",
        )


def _of_lookup(context: Context, entry: HintEntry, inputs: tuple[Input, ...]) -> bool:
    """Whether the key names a table that is looked up, of which nothing is kept in state."""
    if match_name(entry.key, tuple(found for found in inputs if found.looked_up)) is None:
        return False
    context.ledger.losers[entry.offset] = ("refused", "a lookup join keeps no rows of its table in state")
    context.report.warn_of_hint(
        f"{STATE_TTL} key '{entry.key}' has no effect: a lookup join keeps no rows of its table in state",
        entry.offset,
        "to keep rows of the table for a while, write /*+ OPTIONS('lookup.cache'='PARTIAL', "
        f"'lookup.partial-cache.expire-after-write'='{entry.ttl}') */ after its name",
    )
    return True


def _of_call(context: Context, entry: HintEntry, inputs: tuple[Input, ...]) -> bool:
    """Whether the key names what a function returns, or elements of an array, of which nothing is kept in state."""
    called = tuple(found for found in inputs if found.called)
    name = match_name(entry.key, called)
    if name is None:
        return False
    unnested = any(found.name == name and found.kind == "UNNEST" for found in called)
    what = "what UNNEST gives" if unnested else "what a function returns"
    reason = f"'{entry.key}' is {what}, of which no state is kept"
    context.ledger.losers[entry.offset] = ("refused", reason)
    context.report.warn_of_hint(f"{STATE_TTL} key '{entry.key}' has no effect: {reason}", entry.offset, "remove it")
    return True


def match_name(key: str, inputs: tuple[Input, ...]) -> str | None:
    """The name of the input that ``key`` means: its alias, or an ending of the path of a table without one."""
    for candidate in inputs:
        if key == candidate.name:
            return candidate.name
    parts = tuple(key.split("."))
    for candidate in inputs:
        if candidate.path and len(parts) <= len(candidate.path) and candidate.path[-len(parts) :] == parts:
            return candidate.name
    return None


def _unknown(context: Context, entry: HintEntry, inputs: tuple[Input, ...], elsewhere: dict[str, str]) -> Exception:
    names = [i.name for i in inputs if i.name]
    aliased = [i for i in inputs if i.name and i.kind.endswith(f" {entry.key}")]
    if aliased:
        advice = f"the alias hides the name: write '{aliased[0].name}'"
    elif entry.key in elsewhere:
        advice = elsewhere[entry.key]
    elif close := nearest(entry.key, names):
        advice = f"did you mean '{close}'?"
    elif names:
        advice = f"write one of {', '.join(map(repr, names))}"
    else:
        advice = "give the sub-query an alias and use that"
    here = ", ".join(f"'{n}'" for n in names) or "none that has a name"
    return context.source.error(
        f"{STATE_TTL} key '{entry.key}' is not an input of this query block; its inputs are {here}",
        entry.offset,
        advice,
    )
