"""A plan as a tree: from each sink down to its scans, with every state, its TTL, and who set it.

The same plan gives the same text everywhere. An operator that several others read is printed once and referred to after
that; a tree that grows too deep for a screen goes on below, from the left.

>>> print(explain(Plan(name="nothing")))
nothing · streaming · 0 operators, 0 with state
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from plans.analysis.changelog import INSERT_ONLY, output_kinds
from plans.analysis.columns import check_columns
from plans.analysis.repeated import repeated
from plans.analysis.row_order import told_by_arrival
from plans.analysis.states import source, state_of, top_layer
from plans.analysis.streaming_queries import queries
from plans.declarations.durations import parse_duration
from plans.format.document import LAYERS, op_name
from plans.model.graph import check_graph
from plans.model.operator_settings import group_names, settings_of
from plans.model.plan import Plan
from plans.operators import Aggregate, Correlate, LookupJoin, Operator, Scan, Settable, Sink
from plans.operators.descriptions import describe
from plans.settings.cached import ENABLED, STORAGE_LEVEL, cached_of, cached_values, set_by, who_set_cached
from plans.settings.cached import SETTINGS as CACHED
from plans.settings.call_text import call_parts
from plans.settings.groups import CachedSettings, StateEntry
from plans.settings.layers import edits_of
from plans.settings.lookup_text import lookup_parts
from plans.settings.phases import one_phase_because, phase_words
from plans.settings.text import settings_json
from plans.text.terminal import clean

__all__ = ["explain", "explain_json", "summary", "who_set"]

_MIN_LEFT, _MAX_LEFT = 34, 64
_MAX_DEPTH = 16
_MAX_DESCRIPTION = 160

Part = Literal["operator", "state", "edit", "text"]
Paint = Callable[[str, Part], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    part: Part
    left: str
    right: str
    ttl: str = ""


def explain(plan: Plan, *, paint: Paint = lambda text, part: text) -> str:
    """The tree as text; ``paint`` may colour the left part of a line and must not change its width."""
    head = f"{plan.name} · {plan.mode} · {summary(plan)}"
    blocks = [clean(head)]
    if plan.config:
        blocks[0] += "\n" + clean("config: " + " · ".join(f"{key} {plan.config[key]}" for key in sorted(plan.config)))
    shared = _shared_queries(plan)
    if shared:
        blocks[0] += "\n" + clean(shared)
    again = _repeated(plan)
    if again:
        blocks[0] += "\n" + clean(again)
    trees = _trees(plan)
    lines = [line for tree in trees for line in tree]
    if not lines:
        return blocks[0]
    left = min(max(_MIN_LEFT, *(len(line.left) for line in lines)), _MAX_LEFT) + 1
    ttl = max((len(line.ttl) for line in lines), default=0) + 4
    for tree in trees:
        rows = []
        for line in tree:
            right = f"{line.ttl:<{ttl}}{line.right}" if line.ttl else line.right
            rows.append((paint(f"{line.left:<{left}}", line.part) + right).rstrip())
        blocks.append("\n".join(rows))
    if plan.reasons:
        wide = min(max(len(path) for path in plan.reasons), _MAX_LEFT)
        notes = (f"{path:<{wide}}  {' '.join(plan.reasons[path].split())}" for path in sorted(plan.reasons))
        blocks.append("\n".join(["reasons", *map(clean, notes)]))
    return "\n\n".join(blocks)


def _shared_queries(plan: Plan) -> str:
    """Which sinks run as one query of Spark; nothing if none do."""
    found = queries(plan) if plan.mode == "streaming" else ()
    if not any(query.is_shared for query in found):
        return ""
    named = (f"{' + '.join(q.sinks)} from {q.id}" if q.is_shared else q.id for q in found)
    return f"{_count(len(found), 'query')}: {' · '.join(named)}".replace("querys", "queries")


def _repeated(plan: Plan) -> str:
    """What is looked up or called once for each of several branches; nothing if nothing is."""
    found = [f"{each.target} {each.times} times ({', '.join(each.operators)})" for each in repeated(plan)]
    return f"asked once per branch, answers may differ: {' · '.join(found)}" if found else ""


def summary(plan: Plan) -> str:
    """How many operators there are, and how many of them keep something: state in a stream, results in a batch."""
    count = _count(len(plan.operators), "operator")
    if plan.mode == "batch":
        kept = sum(1 for operator in plan.operators if (found := cached_of(operator)) and found.enabled)
        return f"{count}, {kept} cached"
    return f"{count}, {sum(1 for operator in plan.operators if state_of(operator))} with state"


def explain_json(plan: Plan) -> dict[str, Any]:
    """What the tree shows, and the columns of every operator, as JSON values."""
    columns, _ = check_columns(plan)
    return {
        "name": plan.name,
        "mode": plan.mode,
        "config": dict(sorted(plan.config.items())),
        "reasons": dict(sorted(plan.reasons.items())),
        "queries": [list(query.sinks) for query in queries(plan)] if plan.mode == "streaming" else [],
        "repeated": [
            {"target": each.target, "operators": list(each.operators), "times": each.times} for each in repeated(plan)
        ],
        "operators": [
            {
                "id": operator.id,
                "op": op_name(operator),
                "inputs": list(operator.inputs),
                "description": describe(operator, plan),
                "columns": [{"name": c.name, "type": c.type} for c in columns.get(operator.id, ())],
                "state": [
                    {
                        "name": entry.name,
                        "input": entry.input,
                        "ttl": entry.ttl,
                        "set-by": source(entry),
                        "origin": {layer: entry.origin[layer] for layer in LAYERS if layer in entry.origin},
                    }
                    for entry in state_of(operator)
                ],
                **({"settings": settings_json(settings_of(operator))} if settings_of(operator) else {}),
                **({"cached": _cached_json(found)} if (found := cached_of(operator)) else {}),
            }
            for operator in plan.operators
        ],
    }


def who_set(entry: StateEntry) -> str:
    """Who set the TTL, then what the weaker layers said, such as ``edit · hint 1 d · config 1 h``."""
    by = source(entry)
    top = top_layer(entry)
    parts = [by]
    for layer in reversed(LAYERS):
        # That a built-in default exists below a hint tells nobody anything.
        weaker = layer != by and (layer != "default" or layer == top)
        if layer in entry.origin and weaker:
            parts.append(f"{layer} {entry.origin[layer]}")
    return " · ".join(parts)


def _shown_ttl(entry: StateEntry) -> str:
    return "never" if parse_duration(entry.ttl) == 0 else entry.ttl


def _trees(plan: Plan) -> list[list[_Line]]:
    by_id = {operator.id: operator for operator in plan.operators}
    read = {name for operator in plan.operators for name in operator.inputs}
    roots = [operator.id for operator in plan.operators if operator.id not in read]
    # Operators on a cycle hang under no root; a plan that cannot run is shown all the same.
    roots += [operator.id for operator in plan.operators if operator.id in read]
    printed: set[str] = set()
    reasons = _one_phase(plan)
    trees = []
    while roots:
        root = roots.pop(0)
        if root not in printed:
            trees.append(_tree(root, plan, reasons, by_id, printed, roots))
    return trees


def _tree(
    root: str,
    plan: Plan,
    reasons: Mapping[str, str | None],
    by_id: dict[str, Operator],
    printed: set[str],
    roots: list[str],
) -> list[_Line]:
    """The lines from ``root`` down; what lies too deep is put in front of ``roots``."""
    lines: list[_Line] = []
    below: list[str] = []
    # (operator, what leads to it, what leads past it, depth)
    waiting = [(root, "", "", 0)]
    while waiting:
        name, lead, past, depth = waiting.pop()
        operator = by_id.get(name)
        if operator is None or name in printed or depth > _MAX_DEPTH:
            if operator is not None and name in printed:
                lines.append(_Line(part="operator", left=clean(f"{lead}↑ {name}"), right="shown above"))
                continue
            note = "not in the plan" if operator is None else "continues below"
            lines.append(_Line(part="operator", left=clean(lead + name), right=f"({note})"))
            if operator is not None:
                below.append(name)
            continue
        printed.add(name)
        lines.append(_Line(part="operator", left=clean(lead + name), right=_shortened(describe(operator, plan))))
        width = max((len(entry.name) for entry in state_of(operator)), default=0)
        for entry in state_of(operator):
            left = clean(f"{past}{'│  ' if operator.inputs else '   '}{entry.name:<{width}}  {entry.input}")
            part: Part = "edit" if source(entry) == "edit" else "state"
            lines.append(_Line(part=part, left=left, right=who_set(entry), ttl=_shown_ttl(entry)))
        for group, text, edited in _groups(operator, reasons):
            lines.append(_Line(part="edit" if edited else "state", left=clean(f"{past}│  {group}"), right=clean(text)))
        if (cached := cached_of(operator)) is not None:
            edited = any(set_by(cached, setting) == "edit" for setting in CACHED)
            left = clean(f"{past}{'│  ' if operator.inputs else '   '}cached")
            level = cached.storage_level if cached.enabled else "off"
            lines.append(_Line(part="edit" if edited else "state", left=left, right=_who_cached(cached), ttl=level))
        children = list(enumerate(operator.inputs, start=1))
        for number, child in reversed(children):
            last = number == len(children)
            waiting.append((child, past + ("└─ " if last else "├─ "), past + ("   " if last else "│  "), depth + 1))
    roots[:0] = below
    return lines


def _who_cached(settings: CachedSettings) -> str:
    """Who asked for the cached result, and for its storage level if that was someone else."""
    asked = who_set_cached(settings, ENABLED)
    level = who_set_cached(settings, STORAGE_LEVEL)
    if not settings.enabled or level == "default" or level == asked:
        return asked
    return f"{asked} · {STORAGE_LEVEL} {level}"


def _cached_json(settings: CachedSettings) -> dict[str, Any]:
    return {
        name: {
            "value": value,
            "set-by": set_by(settings, name),
            "origin": {layer: said[name] for layer, said in settings.origin.items() if name in said},
        }
        for name, value in cached_values(settings).items()
    }


def _groups(operator: Operator, reasons: Mapping[str, str | None]) -> Iterator[tuple[str, str, bool]]:
    """Each group of settings, its line, and whether an edit is in it."""
    groups = settings_of(operator)
    if not groups or not isinstance(operator, Settable):
        return
    for group in group_names(operator):
        settings = groups.get(group)
        if settings is None:
            yield group, "off", False
            continue
        match operator:
            case LookupJoin():
                text = " · ".join(lookup_parts(operator, group, settings))
            case Correlate():
                text = " · ".join(call_parts(operator, group, settings))
            case Aggregate():
                text = phase_words(settings, reasons.get(operator.id))
            case _:
                assert_never(operator)
        yield group, text, bool(edits_of(settings))


def _one_phase(plan: Plan) -> Mapping[str, str | None]:
    """Why aggregates with a setting for phases run in one; nothing is known if edges or tables are wrong."""
    aggregates = [operator for operator in plan.operators if isinstance(operator, Aggregate) and operator.phases]
    if not aggregates:
        return {}
    tables = (Scan, LookupJoin, Sink)
    if any(check_graph(plan)) or any(isinstance(o, tables) and o.table not in plan.tables for o in plan.operators):
        return {}
    kinds, told = output_kinds(plan), told_by_arrival(plan)
    return {
        operator.id: one_phase_because(operator, insert_only=kinds[source] == INSERT_ONLY, by_arrival=source in told)
        for operator in aggregates
        for source in operator.inputs
    }


def _shortened(text: str) -> str:
    text = clean(" ".join(text.split()))
    return text if len(text) <= _MAX_DESCRIPTION else text[: _MAX_DESCRIPTION - 1] + "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
