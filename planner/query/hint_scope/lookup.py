"""Matches the ``table`` of a LOOKUP hint with the lookups in the hint's own block.

An alias hides the name, as in Flink 2.3. However, an example in FLIP-234 uses the name of a table that has an alias. So
the name also works if only one input matches. Of several hints for one table the first wins as a whole, as in Flink,
with a warning. A hint for any other input is an error if the block contains a lookup; otherwise it has no effect.
"""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.hints.lookup import LOOKUP, LookupHint
from hintplan.planner.query.hint_scope.state_ttl import match_name
from hintplan.planner.translation.scope import Input
from hintplan.plans.text.names import nearest


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
