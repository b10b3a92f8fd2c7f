"""A plan as a tree: from each sink down to its scans, with every state, its TTL, and the origin of the TTL.

The same plan gives the same text everywhere. An operator with several readers is printed once, and later references
point to it. A tree that is too deep for a screen continues below, from the left.

>>> print(plan_tree(Plan(name="nothing")))
nothing · streaming · 0 operators, 0 with state
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import check_columns
from hintplan.plans.analysis.repeated import repeated
from hintplan.plans.analysis.row_order import told_by_arrival
from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.analysis.watermarks import described, slowest_of
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.frozen import frozen
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LateRows, Operator
from hintplan.plans.settings.cached import CACHED, ENABLED, STORAGE_LEVEL
from hintplan.plans.settings.layers import Settings, edits_of, layers_of, set_by
from hintplan.plans.settings.phases import ONE_PHASE, PHASES, STRATEGY
from hintplan.plans.settings.state import StateEntry
from hintplan.plans.settings.text import layers_text, settings_json
from hintplan.plans.settings.watermark import LATE_ROWS
from hintplan.plans.text.aligned import aligned_rows, unpainted
from hintplan.plans.text.counts import count, shortened
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.terminal import one_line

_MIN_LEFT, _MAX_LEFT = 34, 64
_MAX_DEPTH = 16
_MAX_DESCRIPTION = 160
_LEAST_RIGHT = 12
"""Minimum characters of a description, and of a name, on the narrowest screen."""

Part = Literal["operator", "state", "edit", "text"]
Paint = Callable[[str, Part], str]


@frozen
class _Line:
    part: Part
    left: str
    right: str
    ttl: str = ""


def plan_tree(plan: Plan, *, paint: Paint = unpainted, width: int | None = None, whole: bool = False) -> str:
    """Return the tree as text; ``paint`` may colour the left part of a line but must not change its width.

    Lines are cut to ``width`` characters, with an ellipsis. Long descriptions are always cut, unless ``whole`` is set.
    """
    config = "config: " + " · ".join(f"{key} {plan.config[key]}" for key in sorted(plan.config)) if plan.config else ""
    head = (f"{plan.name} · {plan.mode} · {plan_summary(plan)}", config, _shared_queries(plan), _repeated(plan))
    blocks = ["\n".join(_cut(clean(line), width) for line in head if line)]
    trees = _trees(plan, None if whole else _MAX_DESCRIPTION)
    lines = [line for tree in trees for line in tree]
    if not lines:
        return blocks[0]
    most = _MAX_LEFT if width is None else min(_MAX_LEFT, width // 2)
    left = min(max(_MIN_LEFT, *(len(line.left) for line in lines)), most) + 1
    ttl = max((len(line.ttl) for line in lines), default=0) + 4
    for tree in trees:
        rows = []
        for line in tree:
            right = f"{line.ttl:<{ttl}}{line.right}" if line.ttl else line.right
            name = line.left if width is None else shortened(line.left, max(width - _LEAST_RIGHT - 1, _LEAST_RIGHT))
            padded = f"{name:<{max(left, len(name) + 1)}}"
            description = _cut(right, None if width is None else width - len(padded))
            rows.append((paint(padded, line.part) + description).rstrip())
        blocks.append("\n".join(rows))
    if plan.reasons:
        reasons = [(path, " ".join(plan.reasons[path].split())) for path in sorted(plan.reasons)]
        notes = aligned_rows(reasons, gap="  ", most=most)
        blocks.append("\n".join(["reasons", *(_cut(clean(note), width) for note in notes)]))
    return "\n\n".join(blocks)


def _cut(text: str, width: int | None) -> str:
    return text if width is None else shortened(text, max(width, _LEAST_RIGHT))


def _shared_queries(plan: Plan) -> str:
    """Return the queries of Spark that a stream with several sinks runs as, with the sinks of each."""
    if plan.mode != "streaming" or len(plan.sinks) < 2:
        return ""
    running = queries(plan)
    named = (f"{' + '.join(query.sinks)} from {query.id}" if query.is_shared else query.id for query in running)
    return f"{count(len(running), 'query')}: {' · '.join(named)}".replace("querys", "queries")


def _repeated(plan: Plan) -> str:
    """Return the lookups and calls that run once for each of several branches; an empty text if there are none."""
    texts = [f"{group.target} {group.times} times ({', '.join(group.operators)})" for group in repeated(plan)]
    return f"sent once per branch, responses may differ: {' · '.join(texts)}" if texts else ""


def plan_summary(plan: Plan) -> str:
    """Return the number of operators, and of operators that keep state (streaming) or a cached result (batch)."""
    operators = count(len(plan.operators), "operator")
    if plan.mode == "batch":
        kept = sum(1 for operator in plan.operators if (cached := operator.cached) and cached.enabled)
        return f"{operators}, {kept} cached"
    return f"{operators}, {sum(1 for operator in plan.operators if operator.state)} with state"


def explain_json(plan: Plan) -> dict[str, Any]:
    """Return the content of the tree, and the columns of every operator, as JSON values."""
    columns, _ = check_columns(plan)
    descriptions = _descriptions(plan)
    return {
        "name": plan.name,
        "mode": plan.mode,
        "config": dict(sorted(plan.config.items())),
        "reasons": dict(sorted(plan.reasons.items())),
        "queries": [list(query.sinks) for query in queries(plan)] if plan.mode == "streaming" else [],
        "repeated": [
            {"target": group.target, "operators": list(group.operators), "times": group.times}
            for group in repeated(plan)
        ],
        "operators": [
            {
                "id": operator.id,
                "op": operator.op,
                "inputs": list(operator.inputs),
                "description": descriptions[operator.id],
                "columns": [{"name": c.name, "type": c.type} for c in columns.get(operator.id, ())],
                "state": [_state_json(entry) for entry in operator.state],
                **_settings_json(operator),
            }
            for operator in plan.operators
        ],
    }


def _descriptions(plan: Plan) -> Mapping[str, str]:
    """Return the description of each operator, and of a scan that feeds operators with state also who reads it."""
    from hintplan.plans.analysis.scan_readers import scan_readers  # other commands need only a summary

    slowest, readers = slowest_of(plan), scan_readers(plan)
    return {
        operator.id: " · ".join(filter(None, (described(operator, plan, slowest), readers.get(operator.id))))
        for operator in plan.operators
    }


def _state_json(entry: StateEntry) -> dict[str, Any]:
    document: dict[str, Any] = {"name": entry.name, "input": entry.input, "ttl": entry.ttl}
    if entry.settings is not None:
        document |= {"set-by": set_by(entry.settings, "ttl"), "origin": layers_of(entry.settings, "ttl")}
    return document


def _trees(plan: Plan, longest: int | None) -> list[list[_Line]]:
    by_id = plan.by_id
    read = {name for operator in plan.operators for name in operator.inputs}
    roots = [operator.id for operator in plan.operators if operator.id not in read]
    # Operators on a cycle have no root above them; a plan that cannot run is shown anyway.
    roots += [operator.id for operator in plan.operators if operator.id in read]
    printed: set[str] = set()
    reasons, descriptions = _one_phase(plan), _descriptions(plan)
    trees = []
    while roots:
        root = roots.pop(0)
        if root not in printed:
            trees.append(_tree(root, plan, reasons, descriptions, by_id, printed, roots, longest))
    return trees


def _tree(
    root: str,
    plan: Plan,
    reasons: Mapping[str, str | None],
    descriptions: Mapping[str, str],
    by_id: Mapping[str, Operator],
    printed: set[str],
    roots: list[str],
    longest: int | None,
) -> list[_Line]:
    """Return the lines from ``root`` down; operators that are too deep are put in front of ``roots``."""
    lines: list[_Line] = []
    below: list[str] = []
    # (operator, prefix of its line, prefix of the lines below it, depth)
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
        text = one_line(descriptions[name])
        text = text if longest is None else shortened(text, longest)
        lines.append(_Line(part="operator", left=clean(lead + name), right=text))
        width = max((len(entry.name) for entry in operator.state), default=0)
        for entry in operator.state:
            left = clean(f"{past}{'│  ' if operator.inputs else '   '}{entry.name:<{width}}  {entry.input}")
            if entry.settings is None:
                lines.append(_Line(part="state", left=left, right=operator.readable_lifetime(entry)))
                continue
            part: Part = "edit" if edits_of(entry.settings) else "state"
            right = layers_text(entry.settings, "ttl")
            lines.append(_Line(part=part, left=left, right=right, ttl=operator.readable_lifetime(entry)))
        bar = "│  " if operator.inputs else "   "
        for group, text, edited, ttl in _groups(operator, reasons):
            part = "edit" if edited else "state"
            lines.append(_Line(part=part, left=clean(f"{past}{bar}{group}"), right=clean(text), ttl=ttl))
        children = list(enumerate(operator.inputs, start=1))
        for number, child in reversed(children):
            last = number == len(children)
            waiting.append((child, past + ("└─ " if last else "├─ "), past + ("   " if last else "│  "), depth + 1))
    roots[:0] = below
    return lines


def _settings_json(operator: Operator) -> dict[str, Any]:
    """Return the groups of settings; a cached result, which any operator can have, has a key of its own."""
    groups = {name: settings for name, settings in operator.settings.items() if name != CACHED.name}
    document: dict[str, Any] = {"settings": settings_json(groups)} if groups else {}
    if (cached := operator.settings.get(CACHED.name)) is not None:
        of_cached = settings_json({CACHED.name: cached})
        document["cached"] = {
            setting["setting"].partition(".")[2]: {key: value for key, value in setting.items() if key != "setting"}
            for setting in of_cached
        }
    return document


def _groups(operator: Operator, reasons: Mapping[str, str | None]) -> Iterator[tuple[str, str, bool, str]]:
    """Yield the name of each group of settings, its line, whether it has an edit, and the text in the TTL column."""
    for group in operator.groups:
        settings = operator.settings.get(group.name)
        if settings is None:
            if operator.settings.keys() - {CACHED.name} and not group.optional:
                yield group.name, "off", False, ""
            continue
        edited = bool(edits_of(settings))
        if group is CACHED:
            level = str(settings.values[STORAGE_LEVEL]) if settings.values[ENABLED] else "off"
            yield group.name, _who_cached(settings), edited, level
            continue
        text = " · ".join(operator.settings_text(group.name))
        if reasons.get(operator.id) is not None and group is PHASES and settings.values[STRATEGY] != ONE_PHASE:
            text += f" · runs in one phase: {reasons[operator.id]}"
        yield group.name, text, edited, ""


def _who_cached(settings: Settings) -> str:
    """Return the origin of the cached result, and of its storage level if that differs."""
    enabled_by = layers_text(settings, ENABLED)
    level = layers_text(settings, STORAGE_LEVEL)
    if not settings.values[ENABLED] or level == "default" or level == enabled_by:
        return enabled_by
    return f"{enabled_by} · {STORAGE_LEVEL} {level}"


def _one_phase(plan: Plan) -> Mapping[str, str | None]:
    """Return the reasons why operators with a phase setting run in one phase; none if edges or tables are wrong."""
    set_so = [operator for operator in plan.operators if PHASES.name in operator.settings]
    if not set_so:
        return {}
    tables = {table for operator in plan.operators if (table := operator.table) is not None}
    if any(check_graph(plan)) or not tables <= plan.tables.keys():
        return {}
    kinds, ordered = output_kinds(plan), told_by_arrival(plan)
    dropping = {name for operator in plan.operators if isinstance(operator, LateRows) for name in operator.inputs}
    return {
        operator.id: f"its late rows go to a table one by one ({LATE_ROWS})"
        if operator.id in dropping
        else operator.one_phase_because(
            insert_only=kinds[source] == INSERT_ONLY, in_order=source in ordered, functions=plan.functions
        )
        for operator in set_so
        for source in operator.inputs
    }
