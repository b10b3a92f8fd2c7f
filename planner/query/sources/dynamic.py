"""Tables with the options of an OPTIONS hint over those of their WITH, for one reference (FLIP-113).

Such a table is one of its own in the plan. It has the name of the declared one if the job uses that with these options
only, else one that says so: ``orders_hinted``. Options of a lookup's cache are the lookup's, and make no other table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.context import Context, DynamicTable, TableEntry
from hintplan.planner.hints.lookup import OPTIONS, LookupHint
from hintplan.plans.connectors.check import check_given, check_table
from hintplan.plans.connectors.table import connector_of
from hintplan.plans.model.config import DYNAMIC_OPTIONS


def dynamic_table(
    context: Context, name: str, entry: TableEntry, hint: LookupHint | None, *, written: bool = False
) -> tuple[str, TableEntry]:
    """What the plan calls table ``name`` for now, and the table, with the options of ``hint``.

    SqlError for an option that its connector would not take in WITH, and for a table that lacks one. That OPTIONS may
    be switched off goes for what is read, as in Flink, not for what is ``written``.
    """
    source = context.source
    source.problems.unsure |= entry.unsure
    if hint is None or entry.unsure:
        if entry.missing is not None:
            source.problems.add_known(entry.missing)
        return name, entry
    if not written and context.compiler.get(DYNAMIC_OPTIONS) == "false":
        message = f"OPTIONS is switched off: '{DYNAMIC_OPTIONS}' is false"
        raise source.error(message, hint.offset, "remove the hint, or SET it to 'true'")
    for loser, winner in hint.overridden.items():
        context.ledger.losers[loser] = ("overridden", f"at {source.where(winner)}")
    table = entry.table
    heeded = [option for option in hint.options if option.offset not in hint.overridden]
    for option in heeded:
        if option.key == "connector" and option.value != table.options.get("connector"):
            message = f"OPTIONS cannot change the connector of table '{name}'"
            raise source.error(message, option.offset, "declare another table, such as with CREATE TABLE ... LIKE")
    places = {option.key: option.offset for option in heeded}
    spec = connector_of(table)
    # Contradictions of a cache are for the lookup to find, which knows all layers.
    caching = {key for _, key in hint.places} if spec is not None and spec.looking_up is not None else set()
    own = {option.key: option.value for option in heeded if option.key not in caching}
    options = {**table.options, **own}
    # A hint may well set what stands in WITH: only its own options are no suggestions for its own.
    alone = replace(table, options={"connector": table.options.get("connector", ""), **own})
    for found in (*check_given(name, alone), *check_table(name, replace(table, options=options))):
        key = (found.path or "").rpartition(f"tables.{name}.options.")[2]
        raise source.error(f"table '{name}': {found.message}", places.get(key, hint.offset), found.hint)
    if options == table.options:
        for key in own:
            context.ledger.applied(places[key], f"tables.{name}.options.{key}")
        return name, entry
    return _named(context, name, entry, options, {key: places[key] for key in own})


def _named(
    context: Context, name: str, entry: TableEntry, options: Mapping[str, str], places: Mapping[str, int]
) -> tuple[str, TableEntry]:
    """The table with ``options``, under the name that it got where it was first asked for, or a free one."""
    known = context.dynamic
    if entry.missing is not None:
        context.catalog.bases.add(name)
    for called, found in known.items():
        if found.declared is entry and found.entry.table.options == options:
            known[called] = replace(found, places=found.places | frozenset(places.items()))
            return called, found.entry
    names = (f"{name}_hinted{'' if n == 1 else f'_{n}'}" for n in itertools.count(1))
    free = next(n for n in names if n not in context.catalog.names() and n not in known)
    table = replace(entry.table, options=options)
    hinted = replace(entry, table=table, option_offsets={**entry.option_offsets, **places}, missing=None)
    known[free] = DynamicTable(name=name, declared=entry, entry=hinted, places=frozenset(places.items()))
    return free, hinted


def warn_of_idle_cache(context: Context, hint: LookupHint, reason: str) -> None:
    """Account for the options of a lookup's cache in the hint of a table that is not looked up."""
    for (_, key), offset in hint.places.items():
        context.ledger.losers.setdefault(offset, ("refused", reason))
        message = f"OPTIONS option '{key}' has no effect: only a table that is looked up has a cache, and {reason}"
        context.report.warn_of_hint(message, offset, "remove it")


def check_name(context: Context, name: str, offset: int) -> None:
    """SqlError for a declared table under a name that the job has already for one with a hint."""
    found = context.dynamic.get(name)
    if found is not None:
        message = f"'{name}' is what the plan calls '{found.name}' with the options of a hint"
        raise context.source.error(message, offset, f"declare '{name}' above the first {OPTIONS} hint, or rename it")


def final_names(context: Context, used: set[str]) -> dict[str, str]:
    """The names in the finished plan of the tables with hints that are ``used``: the declared one for the only one."""
    found = {called: each for called, each in context.dynamic.items() if called in used}
    names = [each.name for each in found.values()]
    return {
        called: each.name if names.count(each.name) == 1 and each.name not in used else called
        for called, each in found.items()
    }
