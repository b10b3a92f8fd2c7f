"""Words a list of changes as aligned text: concise, as it is by default, or in full.

A line a change: a symbol as Terraform has them (``+`` added, ``-`` removed, ``~`` changed, ``-/+`` replaced), the path,
old and new value, who set it, and what becomes of state. Settings that follow one change of config in large numbers are
told in one line, except in full.

>>> report_text(())
'no differences'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from plans.diff import Change
from plans.effects import LEVELS, MEANING, Level, worst
from plans.terminal import clean

__all__ = ["Detail", "counts", "legend", "of_level", "report_text", "shown_changes", "summary", "values", "worst_level"]

Detail = Literal["concise", "normal", "full"]
Part = Literal["+", "-", "~", "-/+", "incompatible", "note"]
Paint = Callable[[str, Part], str]

_GAP = "     "
_MANY_FOLLOWERS = 5
_NAMED = 3


def report_text(changes: Sequence[Change], *, detail: Detail = "normal", paint: Paint = lambda text, part: text) -> str:
    """The changes in aligned columns, then the summary; ``paint`` may colour a text and must not change its width."""
    if not changes:
        return "no differences"
    rows = [*(_concise(changes) if detail == "concise" else _rows(changes, detail))]
    cells = [[_one_line(cell) for cell in row] for _, row, _ in rows]
    signs = max((len(change.kind) for change, _, _ in rows), default=1)
    # One absurdly long name must not push all the others off the screen.
    widths = [min(max(len(row[i]) for row in cells), limit) if cells else 0 for i, limit in enumerate((50, 40, 60))]
    widths[0] = max(widths[0], 32)
    lines = []
    for (change, _, below), row in zip(rows, cells, strict=True):
        path = paint(f"{change.kind:>{signs}} {row[0]:<{widths[0]}}", change.kind)
        aligned = [f"{cell:<{width}}" for cell, width in zip(row[1:3], widths[1:], strict=True) if width]
        effect = paint(row[3], "incompatible") if change.effect.level in ("drop", "incompatible") else row[3]
        lines.append(_GAP.join([path, *aligned, effect]).rstrip())
        lines += [paint(f"{' ' * signs}   {_one_line(text)}", "note") for text in below]
    idle = sum(change.effect.level == "none" for change in changes) if detail == "concise" else 0
    if idle:
        lines.append(paint(f"{_count(idle, 'change')} without effect not shown", "note"))
    return "\n".join([*lines, summary(changes)])


def summary(changes: Sequence[Change]) -> str:
    """What changed, counted, and whether running state stays readable."""
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
    found = counts(changes)
    verbs = (("changed", "changed"), ("renamed", "renamed"), ("added", "added"), ("removed", "removed"))
    counted = [f"{_count(found[key], 'operator')} {verb}" for key, verb in verbs if found[key]]
    parts.append(", ".join(counted) or "no operator changed")
    if not all(change.effect.stateless for change in changes):
        worst = worst_level(changes)
        fates = {"incompatible": "running state cannot be used", "drop": "some running state is dropped"}
        parts.append(fates.get(worst, "running state stays readable"))
    return " · ".join(parts)


def counts(changes: Sequence[Change]) -> Counter[str]:
    """How many operators were added, removed, renamed, changed."""
    verbs: dict[str, str] = {}
    for change in changes:
        if change.subject == "operator":
            verb = {"+": "added", "-": "removed"}.get(
                change.kind, "renamed" if change.path == change.name else "changed"
            )
            # An operator that is renamed and differs is changed.
            verbs[change.name] = "changed" if verbs.get(change.name, verb) != verb else verb
    return Counter(verbs.values())


def worst_level(changes: Sequence[Change]) -> Level:
    """The gravest effect of all changes."""
    return worst(tuple(change.effect.level for change in changes))


def of_level(changes: Sequence[Change], least: Level) -> list[Change]:
    """The changes whose effect is ``least`` or worse."""
    return [change for change in changes if LEVELS.index(change.effect.level) >= LEVELS.index(least)]


def shown_changes(changes: Sequence[Change], detail: Detail) -> list[tuple[Change, list[Change]]]:
    """The changes to show one by one, and with each those that are told together with it."""
    if detail == "full":
        return [(change, []) for change in changes]
    noted = {change.setting for change in changes if change.subject == "setting" and change.reason}
    together: dict[tuple[Any, ...], list[Change]] = {}
    for change in changes:
        if change.follows:
            together.setdefault((change.follows, change.before, change.after, change.note), []).append(change)
    shown: list[tuple[Change, list[Change]]] = []
    for change in changes:
        alike = together.get((change.follows, change.before, change.after, change.note), [])
        if change.subject == "reason" and change.name.removeprefix("reasons.") in noted and change.after:
            continue  # it stands with its setting
        if not change.follows or len(alike) <= _MANY_FOLLOWERS:
            shown.append((change, []))
        elif change is alike[0]:
            shown.append((change, alike))
    return shown


def values(change: Change, mark: Callable[[str], str] = str) -> str:
    """Old and new value, or the one there is."""
    if change.before is None or change.after is None:
        there = change.before if change.after is None else change.after
        return "" if there is None else mark(there)
    return f"{mark(change.before)} → {mark(change.after)}"


def _rows(changes: Sequence[Change], detail: Detail) -> Iterator[tuple[Change, tuple[str, ...], list[str]]]:
    for change, alike in shown_changes(changes, detail):
        path = change.path if not alike else f"{len(alike)} states that follow config"
        below = [f"reason: {change.reason}"] if change.reason else []
        if alike:
            below.append(", ".join(c.path for c in alike[:_NAMED]) + f" and {len(alike) - _NAMED} more")
        if detail == "full":
            below.insert(0, f"{change.effect.level}: {change.effect.because}")
            if change.layers:
                below.insert(1, "layers: " + " · ".join(f"{layer} {said}" for layer, said in change.layers.items()))
        yield change, (path, values(change), change.note, change.effect.text), below


def _concise(changes: Sequence[Change]) -> Iterator[tuple[Change, tuple[str, ...], list[str]]]:
    """One line for each operator, table and part of the plan, with the worst that happens to it."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        if change.effect.level != "none":
            groups.setdefault(_subject(change), []).append(change)
    for name, found in groups.items():
        gravest = max(found, key=lambda change: LEVELS.index(change.effect.level))
        whole = next((change for change in found if change.path == name), None)
        parts = [change.path.removeprefix(f"{name}.") for change in found if change.path != name]
        what = ", ".join(parts[:_NAMED]) + (f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else "")
        leading = whole or gravest
        yield leading, (name, (whole.note if whole else "") or what, "", gravest.effect.text), []


def _subject(change: Change) -> str:
    if change.operator is not None:
        return change.operator
    if change.path.startswith("tables."):
        # The name of a table may have dots; what differs below it never begins with "options." twice.
        return change.path.partition(".options.")[0] if change.subject == "setting" else f"tables.{change.name}"
    return change.path


def legend(changes: Sequence[Change]) -> list[tuple[Level, int, str]]:
    """Each level of effect that occurs, worst first, with how many changes have it and what it means."""
    found = Counter(change.effect.level for change in changes)
    return [(level, found[level], MEANING[level]) for level in reversed(LEVELS) if found[level]]


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number <= 1 else 's'}"


def _one_line(text: str) -> str:
    return clean(text.replace("\n", " "))
