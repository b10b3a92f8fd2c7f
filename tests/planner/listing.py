"""A plan in few lines, for expectations that a person can check: one line an operator, then warnings and hints."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.planner.compile import Compilation
from hintplan.planner.hints.ledger import Outcome
from hintplan.plans.declarations.windows import WindowColumns
from hintplan.plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    ChangelogNormalize,
    Correlate,
    Deduplicate,
    Expand,
    IntervalJoin,
    Join,
    LateRows,
    LookupJoin,
    Operator,
    OverAggregate,
    OverCall,
    Rank,
    Scan,
    SelectItem,
    SinkMaterialize,
    Sort,
    Stateful,
    TemporalJoin,
    TemporalSort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.emit import EMIT
from hintplan.plans.settings.layers import layers_of
from hintplan.plans.settings.setting import Value
from hintplan.plans.settings.state import StateEntry

__all__ = ["listing", "states"]


def listing(done: Compilation) -> str:
    lines = [line for operator in done.plan.operators for line in (*_operator(operator), *_cached(operator))]
    lines += [f"{f.severity} {f.diagnostic}" for f in done.findings]
    lines += [f"hint {_name(h)}: {h.status} {h.detail}" for h in done.hints if h.status != "applied"]
    return "\n".join(lines)


def _name(outcome: Outcome) -> str:
    return outcome.key if outcome.hint == "STATE_TTL" else f"{outcome.hint} {outcome.key}"


def states(done: Compilation) -> dict[str, str | None]:
    """TTLs by ``operator.state``."""
    found = ((o.id, s) for o in done.plan.operators if isinstance(o, Stateful) for s in o.state)
    return {f"{operator}.{s.name}": s.ttl for operator, s in found}


def _operator(operator: Operator) -> list[str]:
    if isinstance(operator, Scan):
        return [f"{operator.id}: {operator.table}({', '.join(operator.columns)})"]
    if isinstance(operator, Values):
        columns = ", ".join(f"{column.name} {column.type}" for column in operator.columns)
        return [f"{operator.id}: {columns}: {'; '.join(', '.join(row) for row in operator.rows)}"]
    head = f"{operator.id} <- {', '.join(operator.inputs)}"
    if isinstance(operator, Calc):
        where = f" where {operator.filter}" if operator.filter is not None else ""
        return [f"{head}: {', '.join(map(_item, operator.select))}{where}"]
    if isinstance(operator, Join):
        keys = " and ".join(f"{k.left} = {k.right}" for k in operator.keys)
        condition = f" and ({operator.condition})" if operator.condition is not None else ""
        output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in operator.output)
        kinds = " ".join(operator.changelog)
        return [f"{head}: {operator.join_type} on {keys}{condition}: {output} [{kinds}]", *map(_state, operator.state)]
    if isinstance(operator, LookupJoin):
        return _lookup(head, operator)
    if isinstance(operator, Correlate):
        return _correlate(head, operator)
    if isinstance(operator, Unnest):
        output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in operator.output)
        return [f"{head}: {operator.join_type} {operator.column}: {output}"]
    if isinstance(operator, Expand):
        sets = ", ".join(f"({', '.join(each)})" for each in operator.sets)
        return [f"{head}: {', '.join(operator.keys)} by {sets} with {operator.group_id}"]
    if isinstance(operator, Aggregate):
        calls = ", ".join(map(_call, operator.aggregates))
        kinds = " ".join(operator.changelog)
        by = f"by {', '.join(operator.keys)}" if operator.keys else "by nothing"
        return [f"{head}: {by}: {calls or '-'} [{kinds}]", *map(_state, operator.state)]
    if isinstance(operator, Deduplicate):
        kinds = " ".join(operator.changelog)
        when = " at the watermark" if operator.emit is not None else ""
        how = f"{operator.keep} of {', '.join(operator.key)} by {operator.time or 'arrival'}{when}"
        return [f"{head}: {how} [{kinds}]", *map(_state, operator.state)]
    if isinstance(operator, Rank):
        kinds = " ".join(operator.changelog)
        order = [f"{key.column} {key.direction} nulls {key.nulls}" for key in operator.order]
        keys = ", ".join([*order, "arrival desc"] if operator.arrival == "last" else order or ["arrival"])
        number = "" if operator.number is None else f" as {operator.number}"
        of = ", ".join(operator.key) or "all"
        how = f"{operator.rank_start} to {operator.rank_end} of {of} by {keys}{number}"
        return [f"{head}: {how} [{kinds}]", *map(_state, operator.state)]
    if isinstance(operator, ChangelogNormalize | SinkMaterialize):
        kinds = " ".join(operator.changelog)
        return [f"{head}: by {', '.join(operator.key)} [{kinds}]", *map(_state, operator.state)]
    timed = _timed(head, operator)
    if timed:
        return timed
    if isinstance(operator, OverAggregate):
        arrival = "arrival" if operator.state else "nothing"
        order = ", ".join(f"{key.column} {key.direction} nulls {key.nulls}" for key in operator.order)
        keys = order or operator.time or arrival
        frame = operator.frame
        rows = "" if frame is None else f", {frame.unit} {frame.start} to {frame.end}"
        calls = ", ".join(map(_over, operator.calls))
        kinds = f" [{' '.join(operator.changelog)}]" if operator.changelog else ""
        how = f"{calls} of {', '.join(operator.key) or 'all'} by {keys}{rows}{kinds}"
        return [f"{head}: {how}", *map(_state, operator.state)]
    if isinstance(operator, Sort):
        keys = ", ".join(f"{key.column} {key.direction} nulls {key.nulls}" for key in operator.order) or "nothing"
        kept = "all" if operator.limit is None else operator.limit
        return [f"{head}: by {keys}, {operator.offset} skipped, {kept} kept"]
    return [head if isinstance(operator, Union) else f"{head}: {operator.table}"]


def _timed(head: str, operator: Operator) -> list[str]:
    """The lines of an operator of event time, or none."""
    if isinstance(operator, LateRows):
        return [f"{head}: of {', '.join(operator.scans)} to {operator.target}"]
    if isinstance(operator, WatermarkAssigner):
        return [f"{head}: {operator.column} by {operator.base}", *_groups(operator)]
    if isinstance(operator, WindowTableFunction):
        of = f" of {', '.join(operator.keys)}" if operator.keys else ""
        columns = ", ".join((operator.start, operator.end, operator.window_time))
        how = f"{operator.window.over(operator.time)}{of} as {columns}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, WindowAggregate):
        attached = operator.attached
        over = operator.window.over(operator.time or "" if attached is None else _window(attached))
        named = ", ".join(f"{name or '-'}" for name in (operator.start, operator.end, operator.window_time))
        calls = ", ".join(map(_call, operator.aggregates)) or "-"
        emits = "".join(f" {word}" for word, on in (("early", operator.early_fire), ("late", operator.late_fire)) if on)
        how = f"{over}{emits} by {', '.join(operator.keys) or 'nothing'}: {calls} as {named}"
        settings = operator.settings.get(EMIT.name)
        values = "" if settings is None else ", ".join(f"{name} {value}" for name, value in settings.values.items())
        shown = [f"    emit: {values}"] if values else []
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *shown, *map(_state, operator.state)]
    if isinstance(operator, WindowRank):
        order = ", ".join(f"{key.column} {key.direction} nulls {key.nulls}" for key in operator.order) or "arrival"
        number = "" if operator.number is None else f" as {operator.number}"
        numbers = f"{operator.rank_start} to {operator.rank_end} of {', '.join(operator.key) or 'all'}"
        how = f"{numbers} by {order}{number} in {operator.window.over(_window(operator.attached))}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, WindowDeduplicate):
        kept = f"{operator.keep} of {', '.join(operator.key) or 'all'} by {operator.time}"
        how = f"{kept} in {operator.window.over(_window(operator.attached))}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, IntervalJoin):
        keys = " and ".join(f"{k.left} = {k.right}" for k in operator.keys) or "nothing"
        condition = f" and ({operator.condition})" if operator.condition is not None else ""
        times = f"{operator.left_time} - {operator.right_time} from {operator.lower} to {operator.upper}"
        output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in operator.output)
        how = f"{operator.join_type} on {keys}{condition}, {times}: {output}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, TemporalSort):
        keys = ", ".join(f"{key.column} {key.direction} nulls {key.nulls}" for key in operator.order)
        return [f"{head}: by {keys} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, WindowJoin):
        keys = " and ".join(f"{k.left} = {k.right}" for k in operator.keys) or "nothing"
        condition = f" and ({operator.condition})" if operator.condition is not None else ""
        windows = f"{_window(operator.left_window)} = {_window(operator.right_window)}"
        output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in operator.output)
        how = f"{operator.join_type} on {keys}{condition} in {operator.window.over(windows)}: {output}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    if isinstance(operator, TemporalJoin):
        keys = " and ".join(f"{k.left} = {k.right}" for k in operator.keys)
        condition = f" and ({operator.condition})" if operator.condition is not None else ""
        times = f"{operator.left_time} as of {operator.right_time}, {operator.versions} versions"
        output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in operator.output)
        how = f"{operator.join_type} on {keys}{condition} at {times}: {output}"
        return [f"{head}: {how} [{' '.join(operator.changelog)}]", *map(_state, operator.state)]
    return []


def _window(columns: WindowColumns) -> str:
    return f"({columns.start}, {columns.end})"


def _cached(operator: Operator) -> list[str]:
    cached = operator.settings.get(CACHED.name)
    if cached is None:
        return []
    layers = [f"{layer} {_settings(said)}" for layer, said in cached.origin.items() if layer != "default"]
    return [f"    cached: {_settings(cached.values)} ({'; '.join(layers)})"]


def _lookup(head: str, lookup: LookupJoin) -> list[str]:
    keys = " and ".join(f"{k.column} = {k.left if k.left is not None else k.constant}" for k in lookup.keys)
    given = (("pre-filter", lookup.pre_filter), ("filter", lookup.filter), ("condition", lookup.condition))
    rest = "".join(f" {name} ({text})" for name, text in given if text is not None)
    output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in lookup.output)
    columns = ", ".join(lookup.columns)
    lines = [f"{head}: {lookup.join_type} {lookup.table}({columns}) on {keys}{rest}: {output}"]
    return [*lines, *_groups(lookup)]


def _correlate(head: str, call: Correlate) -> list[str]:
    output = ", ".join(_renamed(f"{c.side[0]}.{c.column}", c.column, c.name) for c in call.output)
    arguments = ", ".join(a.column if a.column is not None else f"={a.constant}" for a in call.arguments)
    return [f"{head}: {call.join_type} {call.function}({arguments}): {output}", *_groups(call)]


def _groups(operator: Operator) -> list[str]:
    lines = []
    for group, settings in operator.settings.items():
        if group == CACHED.name:
            continue
        # what is not said to come from a layer is the default
        said = [layer for layer in ("config", "table", "hint") if settings.origin.get(layer)]
        layers = [f"{layer} {_settings(settings.origin[layer])}" for layer in said]
        lines.append(f"    {group}: {_settings(settings.values)}" + (f" ({'; '.join(layers)})" if layers else ""))
    return lines


def _settings(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name.removeprefix('lookup.')} {value}" for name, value in values.items())


def _renamed(shown: str, old: str, new: str) -> str:
    return shown if old == new else f"{shown} as {new}"


def _item(item: SelectItem) -> str:
    return item.name if item.expression is None else f"{item.name} {item.type} = {item.expression}"


def _call(call: AggregateCall) -> str:
    distinct = "distinct " if call.distinct else ""
    where = f" where {call.filter}" if call.filter else ""
    given = ", ".join(call.arguments) if call.is_users else call.argument or "*"
    return f"{call.name} {call.type} = {call.function}({distinct}{given}{where})"


def _state(state: StateEntry) -> str:
    if state.settings is None:
        return f"    {state.name} of {state.input}"
    layers = ", ".join(f"{layer} {ttl}" for layer, ttl in layers_of(state.settings, "ttl").items())
    return f"    {state.name} of {state.input}: {state.ttl} ({layers})"


def _over(call: OverCall) -> str:
    given = ", ".join(str(each) for each in (call.argument, call.count, call.default) if each is not None)
    distinct = "distinct " if call.distinct else ""
    return f"{call.name} {call.type} = {call.function}({distinct}{given})"
