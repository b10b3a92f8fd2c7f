"""Matches the hints of a query block with the inputs that they name, and warns of hints that no operator of it uses.

- Scopes of STATE_TTL follow FLIP-373. Among equal keys, the same key wins as in Flink 2.3, with a warning. The
  :class:`hintplan.planner.hints.ledger.Ledger` records the outcome of each key.
- The ``table`` of a LOOKUP hint names a lookup of the block. An alias hides the name, as in Flink 2.3. However, an
  example in FLIP-234 uses the name of a table that has an alias. So the name also works if only one input matches.
- Of several LOOKUP hints for one table the first wins as a whole, as in Flink, with a warning. A hint for any other
  input is an error if the block contains a lookup; otherwise it has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from hintplan.planner.context import Context, QueryEnvironment
from hintplan.planner.hints.grammar import STATE_TTL, HintEntry
from hintplan.planner.hints.lookup import LOOKUP, LookupHint
from hintplan.planner.query.sources.inputs import inputs_of_source, names_elsewhere, sources_of
from hintplan.planner.query.subquery_kinds import has_values, semi_join_inputs
from hintplan.planner.relations import Hinted
from hintplan.planner.syntax.dialect import select_offset
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
        "to hint the aggregation, use the name in FROM",
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


def resolve_lookups(
    context: Context, select: int, inputs: tuple[Input, ...], elsewhere: dict[str, str]
) -> dict[str, LookupHint]:
    """Return the LOOKUP hints after the SELECT at ``select``, by the name of the looked-up input.

    ``elsewhere`` maps names that are not inputs of this block to text that describes their place.
    """
    by_name: dict[str, LookupHint] = {}
    looked_up = tuple(input_ for input_ in inputs if input_.looked_up)
    for hint in context.ledger.lookups(select):
        for loser, winner in hint.overridden.items():
            context.ledger.losers[loser] = ("overridden", f"at {context.source.where(winner)}")
        for option, reason in hint.idle.items():
            context.ledger.losers[option] = ("refused", reason)
        wanted = hint.table or ""
        name = match_name(wanted, looked_up) or _behind_alias(context, hint, wanted, inputs)
        if name is None:
            _without_lookup(context, hint, wanted, inputs, elsewhere)
        elif name in by_name:
            place = context.source.where(by_name[name].offset)
            context.ledger.refuse(hint, "overridden", f"{LOOKUP} hint at {place}")
            context.report.warn_of_hint(
                f"a second {LOOKUP} hint for '{name}' has no effect: the first, at {place}, wins as a whole",
                hint.offset,
                "put all options into one hint",
            )
        else:
            by_name[name] = hint
    return by_name


def _behind_alias(context: Context, hint: LookupHint, wanted: str, inputs: tuple[Input, ...]) -> str | None:
    """Return the alias of the only looked-up input whose declared name is ``wanted``, or None."""
    aliases = [input_.name for input_ in inputs if input_.looked_up and input_.kind.endswith(f" {wanted}")]
    if len(aliases) != 1 or match_name(wanted, inputs) is not None:
        return None
    context.report.note(
        f"{LOOKUP} table '{wanted}' is called '{aliases[0]}' in this query block",
        _table_offset(hint),
        f"write '{aliases[0]}': Flink takes the alias only",
    )
    return aliases[0]


def _table_offset(hint: LookupHint) -> int:
    return next(option.value_offset for option in reversed(hint.options) if option.key == "table")


def _without_lookup(
    context: Context,
    hint: LookupHint,
    wanted: str,
    inputs: tuple[Input, ...],
    elsewhere: dict[str, str],
) -> None:
    looked_up = [input_ for input_ in inputs if input_.looked_up and input_.name]
    regular = match_name(wanted, tuple(input_ for input_ in inputs if not input_.looked_up))
    if not looked_up:
        reason = f"'{wanted}' is not looked up" if regular else "this query block has no lookup join"
        advice = elsewhere.get(wanted, "a lookup join is written JOIN <table> FOR SYSTEM_TIME AS OF o.proc_time AS ...")
        context.ledger.refuse(hint, "refused", reason)
        context.report.warn_of_hint(f"{LOOKUP} has no effect: {reason}", hint.offset, advice)
        return
    names = [input_.name for input_ in looked_up if input_.name]
    hidden = [input_.name for input_ in looked_up if input_.name and input_.kind.endswith(f" {wanted}")]
    if hidden:
        advice = f"the aliases hide the name: write {' or '.join(map(repr, hidden))}"
    elif regular is None and wanted in elsewhere:
        advice = elsewhere[wanted]
    elif regular is None and (close := nearest(wanted, names)):
        advice = f"did you mean '{close}'?"
    else:
        advice = f"write {' or '.join(map(repr, names))}"
    what = "is not looked up in this query block" if regular else "is not an input of this query block"
    looked = ", ".join(f"'{name}'" for name in names)
    raise context.source.error(
        f"{LOOKUP} table '{wanted}' {what}, which looks up {looked}", _table_offset(hint), advice
    )


def block_hints(context: Context, environment: QueryEnvironment, select: exp.Select, *, aggregates: bool) -> BlockHints:
    """Return the hints of ``select``, resolved to the inputs of the block."""
    offset = select_offset(select)
    if offset not in context.ledger.hints.after_select:
        return BlockHints()
    inputs = [i for node in sources_of(select) for i in inputs_of_source(context, environment, node)]
    elsewhere = names_elsewhere(context, environment, select)
    lookups = resolve_lookups(context, offset, tuple(inputs), elsewhere)
    in_from = tuple(inputs)
    joins = sum(not (i.looked_up or i.called) for i in inputs) > 1
    joins = joins or has_values(select)
    for name in semi_join_inputs(context, environment, select):
        joins = True
        if name is not None and all(name.name != i.name for i in inputs):
            inputs.append(name)
    advice = "put it after the SELECT of the block that joins or groups"
    if environment.set_operation.startswith(("INTERSECT", "EXCEPT")):
        advice = f"states of {environment.set_operation} cannot be hinted; set their TTLs in the plan, or for the job"
    elif environment.set_operation:
        advice = "UNION's removal of duplicates cannot be hinted; write SELECT DISTINCT over a UNION ALL sub-query"
    resolved = resolve_block(
        context,
        offset,
        tuple(inputs),
        stateful=joins or aggregates,
        advice=advice,
        elsewhere=elsewhere,
    )
    if joins and aggregates:
        explain_division(context, resolved, in_from)
    return replace(resolved, lookups=lookups)


def warn_of_unused(context: Context, hints: BlockHints, select: exp.Select) -> None:
    """Warn of hinted inputs whose rows no state keeps as they are, because a lookup or a call adds columns first."""
    calls = any(isinstance(node, exp.Lateral) for node in sources_of(select))
    added = "but with what a function returned for them" if calls else "but of its lookup join"
    joined = "call" if calls else "lookup join"
    for name, hinted in hints.by_input.items():
        if name not in hints.asked_for:
            reason = f"no state keeps rows of '{name}' itself, {added}"
            context.ledger.losers[hinted.offset] = ("refused", reason)
            context.report.warn_of_hint(
                f"STATE_TTL key '{name}' has no effect: {reason}",
                hinted.offset,
                f"put the {joined} into a sub-query with an alias and use the alias as key",
            )
