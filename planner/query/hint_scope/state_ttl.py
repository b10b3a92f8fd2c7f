"""Matches the keys of STATE_TTL hints with the inputs of the hint's own block.

Scopes follow FLIP-373. Among equal keys, the same key wins as in Flink 2.3, with a warning. The
:class:`hintplan.planner.hints.ledger.Ledger` records the outcome of each key.
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
    """The hints of a block by input name: TTLs, and the options of lookups.

    ``asked_for`` are the names whose TTL a state has requested.
    """

    by_input: dict[str, Hinted] = field(default_factory=dict)
    lookups: dict[str, LookupHint] = field(default_factory=dict)
    asked_for: set[str] = field(default_factory=set)

    def of(self, name: str | None) -> Hinted | None:
        """Return the TTL for the input ``name``, and record that a state has requested it."""
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

    A key that matches no input is an error if the block is ``stateful``. Otherwise the hint has no effect, and the
    warning gives ``advice``. ``elsewhere`` maps names that are not inputs of this block to text that describes their
    place. Batch mode also checks keys, since the same query may run as a stream later.
    """
    winners = _winners(context, select)
    winners = [entry for entry in winners if not _of_lookup(context, entry, inputs)]
    winners = [entry for entry in winners if not _of_call(context, entry, inputs)]
    looks_up, calls = any(input_.looked_up for input_ in inputs), any(input_.called for input_ in inputs)
    inputs = tuple(input_ for input_ in inputs if not (input_.looked_up or input_.called))
    if not winners:
        return BlockHints()
    if not stateful:
        nothing = "no join and no aggregation"
        if looks_up or calls:
            what = " and ".join([*(["lookups"] if looks_up else []), *(["calls of functions"] if calls else [])])
            nothing = f"no join but {what}, which keep no state"
            advice = "remove it"
            if looks_up:
                advice += "; the cache of a lookup sets how long its answers are kept: see 'lookup.cache'"
        for entry in winners:
            context.ledger.losers.setdefault(entry.offset, ("refused", f"the block has {nothing}"))
        context.report.warn_of_hint(
            f"{STATE_TTL} has no effect: this query block has {nothing}", winners[0].offset, advice
        )
        return BlockHints()
    by_input: dict[str, Hinted] = {}
    for entry in winners:
        name = match_name(entry.key, inputs)
        if name is None:
            raise _unknown(context, entry, inputs, elsewhere)
        by_input[name] = Hinted(ttl=entry.ttl, offset=entry.offset)
    if context.batch:
        for entry in winners:
            context.ledger.losers[entry.offset] = ("refused", "a batch job keeps no state")
        context.report.note(
            f"{STATE_TTL} has no effect: a batch job keeps no state", winners[0].offset, "it counts in streaming"
        )
        return BlockHints()
    return BlockHints(by_input=by_input)


def explain_division(context: Context, hints: BlockHints, in_from: tuple[Input, ...]) -> None:
    """Report which states the keys set in a block that both joins and aggregates; ``in_from`` are the inputs in FROM.

    With two inputs in FROM, their keys set the states of the join. With one input, its key sets the state of the
    aggregate, even if sub-queries become joins.
    """
    if len(in_from) == 1:
        _note(
            context,
            [(key, hinted) for key, hinted in hints.by_input.items() if key == in_from[0].name],
            "the state of the aggregation; the joins with sub-queries of this block keep the configured TTL",
            "to hint such a join, put it into a sub-query with an alias, without the aggregation",
        )
    joined = {input_.name for input_ in in_from if not (input_.looked_up or input_.called)}
    if len(joined) > 1:
        _note(
            context,
            [(key, hinted) for key, hinted in hints.by_input.items() if key in joined],
            "the states of the join; the aggregation of this block keeps the configured TTL",
            "to hint the aggregation, put the join into a sub-query with an alias and use the alias as key",
        )
    _note(
        context,
        [(key, hinted) for key, hinted in hints.by_input.items() if all(key != input_.name for input_ in in_from)],
        "a state of the join with the sub-query, not the state of the aggregation of this block",
        "to hint the aggregation, use the name of what stands in FROM",
    )


def _note(context: Context, hinted: list[tuple[str, Hinted]], what: str, advice: str) -> None:
    if hinted:
        keys = ", ".join(f"'{key}'" for key, _ in hinted)
        subject = f"{STATE_TTL} key {keys} sets" if len(hinted) == 1 else f"{STATE_TTL} keys {keys} set"
        context.report.note(f"{subject} {what}", min(h.offset for _, h in hinted), advice)


def _winners(context: Context, select: int) -> list[HintEntry]:
    """Return the entries in effect. As in Flink, the last of equal keys wins within a hint, the first among hints."""
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
    """Return True, with a warning, if the key names a looked-up table, whose rows are not in state."""
    if match_name(entry.key, tuple(input_ for input_ in inputs if input_.looked_up)) is None:
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
    """Return True, with a warning, if the key names the result of a function or of UNNEST, which is not in state."""
    called = tuple(input_ for input_ in inputs if input_.called)
    name = match_name(entry.key, called)
    if name is None:
        return False
    unnested = any(input_.name == name and input_.kind == "UNNEST" for input_ in called)
    what = "what UNNEST gives" if unnested else "what a function returns"
    reason = f"'{entry.key}' is {what}, of which no state is kept"
    context.ledger.losers[entry.offset] = ("refused", reason)
    context.report.warn_of_hint(f"{STATE_TTL} key '{entry.key}' has no effect: {reason}", entry.offset, "remove it")
    return True


def match_name(key: str, inputs: tuple[Input, ...]) -> str | None:
    """Return the name of the input that ``key`` matches: its alias, or the end of its path if it has no alias."""
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
    listed = ", ".join(f"'{n}'" for n in names) or "none that has a name"
    return context.source.error(
        f"{STATE_TTL} key '{entry.key}' is not an input of this query block; its inputs are {listed}",
        entry.offset,
        advice,
    )
