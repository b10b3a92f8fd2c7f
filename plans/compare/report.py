"""Formats a list of changes as aligned text with one of three levels of detail.

Each change is a line with a symbol as in Terraform: ``+`` added, ``-`` removed, ``~`` changed, ``-/+`` replaced. The
path follows, then the old and new value, the layer that set it, and the effect on state. If many settings follow one
change of config, they share a line, except in full detail.

>>> changes_text(())
'no differences'
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from hintplan.plans.compare.change import Change
from hintplan.plans.settings.effects import LEVELS, MEANING, Level, worst
from hintplan.plans.settings.state import readable_ttl
from hintplan.plans.text.aligned import unpainted
from hintplan.plans.text.counts import first_of
from hintplan.plans.text.escapes import clean

Detail = Literal["concise", "normal", "full"]
Part = Literal["+", "-", "~", "-/+", "incompatible", "note"]
Paint = Callable[[str, Part], str]

WIDTH = 132
"""Characters per line if the width of the screen is unknown."""

_GAP = "     "
_SHORT_GAP = "   "
_NARROW = 32
_MANY_FOLLOWERS = 5
_NAMED = 3
_MOST_COSTS = 5


def changes_text(
    changes: Sequence[Change],
    *,
    detail: Detail = "normal",
    paint: Paint = unpainted,
    width: int = WIDTH,
) -> str:
    """Return the changes in aligned columns, then the summary.

    ``paint`` may colour a text and must not change its width. If the columns would need more than ``width`` characters,
    only the paths are aligned, and long lines are wrapped.
    """
    if not changes:
        return "no differences"
    rows = [*(_concise(changes) if detail == "concise" else _rows(changes, detail))]
    cells = [tuple(_one_line(cell) for cell in row) for _, row, _ in rows]
    signs = max((len(change.kind) for change, _, _ in rows), default=1)
    columns = [max((len(row[i]) for row in cells), default=0) for i in range(3)]
    columns[0] = max(columns[0], _NARROW)
    used = signs + 1 + sum(columns) + len(_GAP) * (1 + sum(w > 0 for w in columns[1:]))
    fits = used + max((len(row[3]) for row in cells), default=0) <= width
    lines = []
    for (change, _, below), row in zip(rows, cells, strict=True):
        alarming = change.effect.level in ("expire", "drop", "incompatible")
        head = f"{change.kind:>{signs}} {row[0]}"
        if fits:
            padded = paint(f"{head:<{signs + 1 + columns[0]}}", change.kind)
            aligned = [f"{cell:<{w}}" for cell, w in zip(row[1:3], columns[1:], strict=True) if w]
            effect = paint(row[3], "incompatible") if alarming else row[3]
            lines.append(_GAP.join([padded, *aligned, effect]).rstrip())
        else:
            flow = _folded(head, row[1:], signs + 1 + min(columns[0], _NARROW), signs + 3, width)
            painted = paint(head, change.kind)
            flow = [line.replace(head, painted, 1) if i == 0 else line for i, line in enumerate(flow)]
            if alarming and row[3] and flow[-1].endswith(row[3]):
                flow[-1] = flow[-1].removesuffix(row[3]) + paint(row[3], "incompatible")
            lines += flow
        lines += [paint(line, "note") for text in below for line in _wrapped(_one_line(text), " " * (signs + 3), width)]
    idle = sum(change.effect.level == "none" for change in changes) if detail == "concise" else 0
    if idle:
        lines.append(paint(f"{_count(idle, 'change')} without effect not shown", "note"))
    return "\n".join([*lines, changes_summary(changes)])


def _folded(head: str, cells: Sequence[str], start: int, indent: int, width: int) -> list[str]:
    """Return ``head`` followed by ``cells``: each on the current line if it fits, or else on a line of its own."""
    lines = [head]
    for cell in filter(None, cells):
        behind = lines[-1].ljust(start) + _SHORT_GAP if len(lines) == 1 else lines[-1] + _SHORT_GAP
        if len(behind) + len(cell) <= width:
            lines[-1] = behind + cell
        else:
            lines += _wrapped(cell, " " * indent, width)
    return lines


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 40), initial_indent=indent, subsequent_indent=indent + "  ") or [indent]


def changes_summary(changes: Sequence[Change]) -> str:
    """Return the numbers of changes, and whether running state stays readable, as one line."""
    if not changes:
        return "no differences"
    settings = len({change.name for change in changes if change.subject in ("setting", "origin")})
    parts = [f"{_count(settings, 'setting')} changed"]
    tables = len({change.name for change in changes if change.subject == "table"})
    if tables:
        parts.append(f"{_count(tables, 'table')} changed")
    functions = len({change.name for change in changes if change.subject == "function"})
    if functions:
        parts.append(f"{_count(functions, 'function')} changed")
    numbers = operator_counts(changes)
    verbs = (("changed", "changed"), ("renamed", "renamed"), ("added", "added"), ("removed", "removed"))
    counted = [f"{_count(numbers[key], 'operator')} {verb}" for key, verb in verbs if numbers[key]]
    parts.append(", ".join(counted) or "no operator changed")
    if not all(change.effect.stateless for change in changes):
        worst = worst_level(changes)
        fates = {
            "incompatible": "running state cannot be used",
            "drop": _dropped(changes),
            "expire": "older rows of running state expire: hintplan check PLAN --checkpoint DIR counts them",
        }
        parts.append(fates.get(worst, "running state stays readable"))
    return " · ".join(parts)


def _dropped(changes: Sequence[Change]) -> str:
    """Return the number of states that start empty, and the options with which a run continues."""
    emptying = [change.effect for change in changes if change.effect.emptied]
    empty = len(frozenset().union(*(effect.emptied for effect in emptying)))
    states = max((effect.states for effect in emptying), default=0)
    others = any(change.effect.level == "drop" and not change.effect.emptied for change in changes)
    if not empty:
        fate = "some running state is dropped"
    elif empty == states:
        every = {1: "the only state starts", 2: "both states start"}.get(states, f"all {states} states start")
        fate = f"{every} empty"
    else:
        fate = f"{empty} of {states} states {'start' if empty > 1 else 'starts'} empty"
    keep = " or --keep-state" if empty and not others and all(effect.may_be_kept for effect in emptying) else ""
    return f"{fate}; a run is refused without --allow-state-drop{keep}"


def operator_counts(changes: Sequence[Change]) -> Counter[str]:
    """Return the number of operators that were added, removed, renamed and changed."""
    verbs: dict[tuple[str, str], str] = {}
    for change in changes:
        if change.subject == "operator":
            verb = {"+": "added", "-": "removed"}.get(
                change.kind, "renamed" if change.path == change.name else "changed"
            )
            # A reused id counts as one added and one removed operator; a renamed operator that differs is changed.
            key = (change.name, verb if verb in ("added", "removed") else "")
            verbs[key] = "changed" if verbs.get(key, verb) != verb else verb
    return Counter(verbs.values())


def worst_level(changes: Sequence[Change]) -> Level:
    """Return the gravest effect of all changes."""
    return worst(tuple(change.effect.level for change in changes))


def of_level(changes: Sequence[Change], least: Level) -> list[Change]:
    """Return the changes whose effect is ``least`` or worse."""
    return [change for change in changes if LEVELS.index(change.effect.level) >= LEVELS.index(least)]


def shown_changes(changes: Sequence[Change], detail: Detail) -> list[tuple[Change, list[Change]]]:
    """Return the changes to show one by one, each with the changes that share its line."""
    if detail == "full":
        return [(change, []) for change in changes]
    explained = {change.setting for change in changes if change.subject == "setting" and change.reason}
    together: dict[tuple[Any, ...], list[Change]] = {}
    for change in changes:
        if change.follows:
            together.setdefault((change.follows, change.before, change.after, change.note), []).append(change)
    shown: list[tuple[Change, list[Change]]] = []
    for change in changes:
        alike = together.get((change.follows, change.before, change.after, change.note), [])
        if change.subject == "reason" and change.name.removeprefix("reasons.") in explained and change.after:
            continue  # the line of its setting shows it
        if not change.follows or len(alike) <= _MANY_FOLLOWERS:
            shown.append((change, []))
        elif change is alike[0]:
            shown.append((change, alike))
    return shown


def change_values(change: Change, mark: Callable[[str], str] = str) -> str:
    """Return the old and new value, or the only one; a TTL of 0 is ``never``."""
    is_ttl = change.subject in ("setting", "origin") and (change.setting or "").endswith(".ttl")
    texts = [side if not is_ttl else readable_ttl(side) for side in (change.before, change.after) if side is not None]
    return " → ".join(map(mark, texts))


def cost_lines(change: Change, alike: Sequence[Change], mark: Callable[[str], str] = str) -> list[str]:
    """Return the cost of the TTL of ``change``, or the costs of the changes that share its line, as lines below it.

    ``mark`` quotes the path of a state.
    """
    if not alike:
        return [] if change.cost is None else [change.cost.text]
    lines = [f"{mark(one.path)}: {one.cost.text}" for one in alike if one.cost is not None]
    more = len(lines) - _MOST_COSTS
    return lines if more <= 0 else [*lines[:_MOST_COSTS], f"the costs of {more} more states: hintplan diff --full"]


def _rows(changes: Sequence[Change], detail: Detail) -> Iterator[tuple[Change, tuple[str, ...], list[str]]]:
    for change, alike in shown_changes(changes, detail):
        path = change.path if not alike else f"{len(alike)} states that follow config"
        below = [f"{change.reason_label}: {change.reason}"] if change.reason else []
        if alike:
            below.append(first_of([c.path for c in alike], _NAMED))
        below += cost_lines(change, alike)
        if detail == "full":
            below.insert(0, f"{change.effect.level}: {change.effect.because}")
            if change.layers:
                below.insert(
                    1, "layers: " + " · ".join(f"{layer} {layer_value}" for layer, layer_value in change.layers.items())
                )
        yield change, (path, change_values(change), change.note, change.effect.text), below


def _concise(changes: Sequence[Change]) -> Iterator[tuple[Change, tuple[str, ...], list[str]]]:
    """Yield one line for each operator, table and part of the plan, with the gravest effect on it."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        if change.effect.level != "none":
            groups.setdefault(_subject(change), []).append(change)
    for name, group in groups.items():
        gravest = max(group, key=lambda change: LEVELS.index(change.effect.level))
        whole = next((change for change in group if change.path == name), None)
        parts = [change.path.removeprefix(f"{name}.") for change in group if change.path != name]
        leading = whole or gravest
        yield leading, (name, (whole.note if whole else "") or first_of(parts, _NAMED), "", gravest.effect.text), []


def _subject(change: Change) -> str:
    if change.operator is not None:
        return change.operator
    if change.path.startswith("tables."):
        # The name of a table may have dots, but only one ".options." follows it.
        return change.path.partition(".options.")[0] if change.subject == "setting" else f"tables.{change.name}"
    return change.path


def legend(changes: Sequence[Change]) -> list[tuple[Level, int, str]]:
    """Return each level of effect that occurs, worst first, with its number of changes and its meaning."""
    numbers = Counter(change.effect.level for change in changes)
    return [(level, numbers[level], MEANING[level]) for level in reversed(LEVELS) if numbers[level]]


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number <= 1 else 's'}"


def _one_line(text: str) -> str:
    return clean(text.replace("\n", " "))
