"""The positions of changes to a plan, in the newer plan file or in the script that it is compiled from.

>>> from hintplan.plans.compare.diff import compare_plans
>>> from hintplan.plans.model.plan import Plan
>>> plan = Plan(name="b")
>>> source = PlanSource(name="b.json", file="b.json", data=b'{\\n "name": "b"}', plan=plan)
>>> locate(source, compare_plans(Plan(name="a"), plan))
[Location(file='b.json', line=2, column=10)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hintplan.plans.compare.change import Change
from hintplan.plans.files.plan_source import PlanSource
from hintplan.plans.format.paths import find
from hintplan.plans.frozen import frozen
from hintplan.plans.text.jsontext import JsonText, Path

_LAYERS = ("hint", "table", "config")


@frozen
class Location:
    """A position in a file; without a line, the whole file; without a file, standard input."""

    file: str | None = None
    line: int | None = None
    column: int | None = None


def locate(source: PlanSource, changes: Sequence[Change]) -> list[Location]:
    """Return the position of each change in ``source``; for a removal, the file."""
    if source.file is None:
        return [Location()] * len(changes)
    if source.places is not None:
        return [_in_script(source.file, source.places, change) for change in changes]
    return _in_plan(source, source.file, changes)


def _in_script(file: str, places: Mapping[tuple[str, str, str], Any], change: Change) -> Location:
    path = change.setting or ""
    operator = change.operator or ""
    below = path.removeprefix(f"{operator}.") if operator else path
    for layer in _LAYERS:
        place = places.get((operator, below, layer))
        if place is not None:
            return Location(file=place.file or file, line=place.line, column=place.column)
    return Location(file=file)


def _in_plan(source: PlanSource, file: str, changes: Sequence[Change]) -> list[Location]:
    text = JsonText(source.data, file=file)
    # Operators that the options of a table imply are in the plan, and not in its file.
    index = {operator["id"]: number for number, operator in enumerate(text.value.get("operators", ()))}
    paths = [_path(change, text.value, index) for change in changes]
    spans = text.spans({path for path in paths if path})
    locations = []
    for path in paths:
        if not path:
            locations.append(Location(file=file))
            continue
        line, column = text.line_column(spans[path][1])
        locations.append(Location(file=file, line=line, column=column))
    return locations


def _path(change: Change, document: Mapping[str, Any], index: dict[str, int]) -> Path:
    if change.kind == "-" and change.setting is None:
        return ()
    if change.subject != "reason" and change.operator is not None:
        number = index.get(change.operator)
        if number is None:
            return ()
        below = (change.setting or change.path).removeprefix(change.operator).removeprefix(".")
        return ("operators", number, *find(below, document["operators"][number]))
    return find(change.path, document)
