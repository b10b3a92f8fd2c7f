"""The content of a picture of a plan: boxes and arrows with their texts, independent of the output format.

Mermaid, dot, SVG and the page are drawn from it, so they agree. With an older plan, differences are marked, and removed
operators are included. This module knows no layouts and files.

>>> from hintplan.plans.operators import Operator, Scan
>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> [(box.id, box.kind, box.states) for box in picture(Plan(name="p", operators=(scan,))).boxes]
[('scan_o', 'scan', ())]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hintplan.plans.analysis.watermarks import described, slowest_of
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.consequences import emptied_operators
from hintplan.plans.compare.match import match
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Operator
from hintplan.plans.settings.layers import EDIT
from hintplan.plans.settings.setting import value_text
from hintplan.plans.text.terminal import one_line

Mark = Literal["", "added", "removed", "changed", "moved"]


@frozen
class Row:
    """A line in a box: a state with its TTL, or a group of settings with its values.

    ``label`` is its name, ``value`` the effective value, and ``set_by`` its origin; ``before`` is the value of the
    older plan.
    """

    label: str
    value: str
    set_by: str
    state: bool
    before: str | None = None

    @property
    def edited(self) -> bool:
        """True if a person changed it in the plan."""
        return self.set_by == EDIT


@frozen
class Box:
    """An operator: its id, kind and description, with its states and settings.

    ``live`` names the rows of numbers that a run fills in.
    """

    id: str
    op: str
    kind: str
    text: str
    rows: tuple[Row, ...] = ()
    live: tuple[str, ...] = ()
    mark: Mark = ""
    emptied: bool = False
    """True if its state starts empty, compared with an older plan."""

    @property
    def states(self) -> tuple[Row, ...]:
        """The rows that are states."""
        return tuple(row for row in self.rows if row.state)

    @property
    def edited(self) -> bool:
        """True if a person changed one of its settings."""
        return any(row.edited for row in self.rows)


@frozen
class Arrow:
    """The flow of rows from ``source`` to input ``port`` of ``target``; ``via`` are boxes folded into the arrow."""

    source: str
    target: str
    port: int = 0
    mark: Mark = ""
    via: tuple[str, ...] = ()


@frozen
class Picture:
    """Boxes in dependency order, and the arrows between them."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(plan: Plan, *, before: Plan | None = None, changes: Sequence[Change] = ()) -> Picture:
    """Return the picture of ``plan``; with ``before``, the ``changes`` since then are marked.

    ``changes`` come from :func:`hintplan.plans.compare.diff.compare_plans`. An operator whose id changed appears once.
    """
    older = under_new_ids(before, plan) if before is not None else ()
    old, new = {operator.id: operator for operator in older}, plan.by_id
    differing = changed_operators(changes, {*old, *new})
    emptied = emptied_operators(before, plan) if before is not None else frozenset()
    slowest = {**(slowest_of(before) if before is not None else {}), **slowest_of(plan)}
    boxes = []
    for operator in _merged(plan.operators, older):
        shown_in = plan if operator.id in new or before is None else before
        previous = old.get(operator.id) if operator.id in new else None
        mark: Mark = "changed" if operator.id in differing else ""
        if before is not None and operator.id not in old:
            mark = "added"
        elif operator.id not in new:
            mark = "removed"
        elif mark and previous is not None and _moved(previous, operator, old, new):
            mark = "moved"
        box = _box(operator, shown_in, previous, slowest)
        boxes.append(replace(box, mark=mark, emptied=operator.id in emptied))
    ids = {*old, *new}
    arrows = _arrows(plan.operators, ids, "added" if before is not None else "", _edges(older))
    if before is not None:
        arrows += _arrows(older, ids, "removed", _edges(plan.operators), only=True)
    return Picture(title=one_line(plan.name), boxes=tuple(boxes), arrows=tuple(arrows))


def changed_operators(changes: Sequence[Change], ids: Collection[str]) -> set[str]:
    """Return the ids of the operators that the changes concern."""
    return {change.operator for change in changes if change.operator in ids and change.operator is not None}


def changed_part(before: Plan, after: Plan, changes: Sequence[Change]) -> Picture | None:
    """Return the picture of the changed operators and their neighbours; None if no operator has changed."""
    touched = changed_operators(changes, {*before.by_id, *after.by_id})
    return around(picture(after, before=before, changes=changes), touched) if touched else None


def under_new_ids(before: Plan, after: Plan) -> tuple[Operator, ...]:
    """Return the operators of ``before``, with the ids of ``after`` for operators that were only renamed."""
    renamed = match(before, after).renamed
    return tuple(_called(operator, renamed) for operator in before.operators) if renamed else before.operators


def _called(operator: Operator, names: Mapping[str, str]) -> Operator:
    called = operator.with_id(names.get(operator.id, operator.id))
    return called.with_inputs(tuple(names.get(name, name) for name in operator.inputs))


def _moved(old: Operator, new: Operator, before: Collection[str], after: Collection[str]) -> bool:
    """Return True if the operator reads other inputs that exist in both plans, so its place in the query changed."""
    apart = set(old.inputs) ^ set(new.inputs)
    return bool(apart) and all(name in before and name in after for name in apart)


def around(whole: Picture, ids: Collection[str], *, hops: int = 1) -> Picture:
    """Return the part of the picture that is at most ``hops`` arrows away from one of ``ids``."""
    near = set(ids)
    for _ in range(hops):
        near |= {end for a in whole.arrows if a.source in near or a.target in near for end in (a.source, a.target)}
    return replace(
        whole,
        boxes=tuple(box for box in whole.boxes if box.id in near),
        arrows=tuple(arrow for arrow in whole.arrows if arrow.source in near and arrow.target in near),
    )


def without_pass_through(whole: Picture) -> Picture:
    """Fold pass-through boxes: boxes with one input, one reader, no settings and no mark."""
    incoming: dict[str, list[Arrow]] = {}
    outgoing: dict[str, list[Arrow]] = {}
    for arrow in whole.arrows:
        incoming.setdefault(arrow.target, []).append(arrow)
        outgoing.setdefault(arrow.source, []).append(arrow)
    gone = {
        box.id
        for box in whole.boxes
        if not (box.rows or box.live or box.mark)
        and len(incoming.get(box.id, ())) == len(outgoing.get(box.id, ())) == 1
    }
    arrows = []
    for arrow in whole.arrows:
        if arrow.source in gone:
            continue
        end, via = arrow, list(arrow.via)
        # This ends: no arrow from outside leads into a cycle of folded boxes.
        while end.target in gone:
            via.append(end.target)
            end = outgoing[end.target][0]
        arrows.append(replace(end, source=arrow.source, via=tuple(via)))
    return replace(whole, boxes=tuple(box for box in whole.boxes if box.id not in gone), arrows=tuple(arrows))


def _box(operator: Operator, plan: Plan, previous: Operator | None, slowest: Mapping[str, tuple[str, ...]]) -> Box:
    earlier = {s.path: value_text(s.value) for s in operator_settings(previous)} if previous is not None else None
    inputs = {entry.name: entry.input for entry in operator.state}
    groups: dict[str, list[PlanSetting]] = {}
    for setting in operator_settings(operator):
        groups.setdefault(setting.group, []).append(setting)
    rows = [
        _group_row(group, settings, earlier)
        if (state := settings[0].state) is None
        # The TTL is the only setting of a state.
        else _state_row(f"{state} {inputs[state]}", settings[0], earlier)
        for group, settings in groups.items()
    ]
    timed = [
        Row(label=one_line(f"{entry.name} {entry.input}"), value="until the watermark", set_by="default", state=True)
        for entry in operator.state
        if entry.settings is None
    ]
    return Box(
        id=operator.id,
        op=operator.op,
        kind=operator.title,
        text=one_line(described(operator, plan, slowest)),
        rows=(*timed, *rows),
    )


def _state_row(label: str, setting: PlanSetting, earlier: Mapping[str, str] | None) -> Row:
    value, before = value_text(setting.value), None if earlier is None else earlier.get(setting.path)
    return Row(
        label=one_line(label),
        value=value,
        set_by=setting.set_by,
        state=True,
        before=before if before != value else None,
    )


def _group_row(group: str, settings: Sequence[PlanSetting], earlier: Mapping[str, str] | None) -> Row:
    """Return the row of a group: values that differ from the default, or the first; one edit marks the whole row."""
    # A setting with only one possible value is not worth showing.
    chosen = [s for s in settings if s.setting is None or len(s.setting.choices) != 1]
    shown_settings = [s for s in chosen if s.set_by != "default"] or settings[:1]
    text = _attempts(settings)
    changed = [s for s in settings if earlier is not None and earlier.get(s.path) != value_text(s.value)]
    by = EDIT if any(s.set_by == EDIT for s in settings) else shown_settings[-1].set_by
    before = ", ".join(f"{_short(s)} {earlier.get(s.path, 'off')}" for s in changed) if earlier is not None else ""
    if text is None or changed:
        text = ", ".join(dict.fromkeys(_said(s) for s in (changed or shown_settings)))
    return Row(label=group, value=one_line(text), set_by=by, state=False, before=one_line(before) or None)


def _attempts(settings: Sequence[PlanSetting]) -> str | None:
    """Return a retry in the notation of edits, such as ``3 x 10 s``; None for other settings."""
    values = {setting.name: value_text(setting.value) for setting in settings}
    if values.get("retry-strategy") != "fixed_delay" or not values.keys() >= {"fixed-delay", "max-attempts"}:
        return None
    return f"{values['max-attempts']} x {values['fixed-delay']}"


def _said(setting: PlanSetting) -> str:
    # Values like PARTIAL explain themselves; values like true and 3 need a name.
    value = value_text(setting.value)
    return value if value.isupper() else f"{_short(setting)} {value}"


def _short(setting: PlanSetting) -> str:
    return setting.name.rpartition(".")[2]


def _merged(after: Sequence[Operator], before: Sequence[Operator]) -> list[Operator]:
    """Return the operators of both plans in one order; a removed operator follows its former predecessor."""
    present = {operator.id for operator in after}
    followers: dict[str | None, list[Operator]] = {}
    last: str | None = None
    for operator in before:
        if operator.id in present:
            last = operator.id
        else:
            followers.setdefault(last, []).append(operator)
    merged = list(followers.get(None, ()))
    for operator in after:
        merged += [operator, *followers.get(operator.id, ())]
    return merged


def _edges(operators: Collection[Operator]) -> set[tuple[str, str]]:
    return {(source, operator.id) for operator in operators for source in operator.inputs}


def _arrows(
    operators: Sequence[Operator], known: Collection[str], mark: Mark, other: set[tuple[str, str]], only: bool = False
) -> list[Arrow]:
    """Return the arrows into ``operators``; arrows that ``other`` lacks get ``mark``.

    With ``only``, return just the marked arrows.
    """
    return [
        Arrow(source=source, target=operator.id, port=port, mark="" if (source, operator.id) in other else mark)
        for operator in operators
        for port, source in enumerate(operator.inputs)
        if source in known and not (only and (source, operator.id) in other)
    ]
