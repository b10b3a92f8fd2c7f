"""The data of every operator for the page of a plan, as JSON values: settings with layers, facts, columns, differences.

Unprintable characters in texts are escaped. The values of refused options, which may be secrets, are left out.
:mod:`hintplan.plans.show.page` adds the positions of boxes and assembles the page.

>>> from hintplan.plans.operators import Scan
>>> from hintplan.plans.show.picture import picture
>>> plan = Plan(name="p", operators=(Scan(id="scan_o", table="o", columns=("a",)),))
>>> box_data(picture(plan), plan, None, ())[0]["facts"]
[['table', ['o']], ['columns', ['a']]]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import check_columns
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.facts import in_flink
from hintplan.plans.compare.report import change_values
from hintplan.plans.connectors.check import shown_options
from hintplan.plans.declarations.tables import Table
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.document import to_document
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Operator
from hintplan.plans.settings.setting import value_text
from hintplan.plans.show.picture import Picture, changed_operators, under_new_ids
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.terminal import one_line

Json = dict[str, Any]
T = TypeVar("T")

_NOT_FACTS = ("id", "op", "inputs", "output", "changelog", "state")
"""Facts that the page shows elsewhere: as name, arrows, columns, row kinds and settings."""


def box_data(shown_picture: Picture, plan: Plan, before: Plan | None, changes: Sequence[Change]) -> list[Json]:
    """Return the page's data of every box, in the order of the picture."""
    new = plan.by_id
    old = {operator.id: operator for operator in under_new_ids(before, plan)} if before is not None else {}
    columns = facts_of_both(lambda version: check_columns(version)[0], plan, before)
    kinds = facts_of_both(row_kinds, plan, before)
    number = {box.id: index for index, box in enumerate(shown_picture.boxes)}
    readers: dict[str, list[int]] = {}
    inputs: dict[str, list[int]] = {}
    for arrow in shown_picture.arrows:
        readers.setdefault(arrow.source, []).append(number[arrow.target])
        inputs.setdefault(arrow.target, []).append(number[arrow.source])
    changes_of = _changes_by_operator(changes, number)
    boxes = []
    for box in shown_picture.boxes:
        operator = new.get(box.id) or old[box.id]
        previous = old.get(box.id) if box.id in new else None
        boxes.append(
            {
                "id": one_line(box.id),
                "kind": box.kind,
                "text": box.text,
                "mark": box.mark,
                "edited": box.edited,
                "emptied": box.emptied,
                "stateful": bool(box.states),
                "wait": bool(box.rows) and not box.states,
                "in": list(dict.fromkeys(inputs.get(box.id, ()))),
                "out": list(dict.fromkeys(readers.get(box.id, ()))),
                "settings": [*_settings(operator, previous, plan.reasons)],
                "facts": [*_facts(operator)],
                "columns": _columns(operator, [(c.name, c.type) for c in columns.get(box.id, ())]),
                "kinds": list(kinds.get(box.id, ())),
                "table": one_line(operator.table or ""),
                "functions": [*map(one_line, operator.functions)],
                "changes": changes_of.get(box.id, []),
            }
        )
    return boxes


def facts_of_both(told: Callable[[Plan], Mapping[str, T]], plan: Plan, before: Plan | None) -> dict[str, T]:
    """Apply ``told`` to ``plan``, and add the results for an older plan under names that are gone."""
    return {**(told(before) if before is not None else {}), **told(plan)}


def table_data(plan: Plan) -> Json:
    """Return the tables by name: columns, keys and options; refused options have no value."""
    return {one_line(name): _table(name, table) for name, table in plan.tables.items()}


def function_data(plan: Plan) -> Json:
    """Return the user-defined functions by name, with their facts as lines."""
    functions = to_document(plan)["functions"]
    return {
        one_line(name): [[key, [*_lines(value)]] for key, value in facts.items()] for name, facts in functions.items()
    }


def change_data(changes: Sequence[Change]) -> list[Json]:
    """Return the differences as text."""
    kinds = {"~": "changed", "+": "added", "-": "removed", "-/+": "removed"}
    return [
        {
            "sign": change.kind,
            "kind": kinds.get(change.kind, "changed"),
            "level": change.effect.level,
            "path": one_line(change.path),
            "value": one_line(change_values(change)),
            "note": one_line(change.note),
            "effect": one_line(change.effect.text),
            "because": one_line(change.effect.because),
            **({} if change.cost is None else {"cost": one_line(change.cost.text)}),
        }
        for change in changes
    ]


def row_kinds(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the row kinds that every operator emits; none for a plan with wrong edges."""
    return {} if any(check_graph(plan)) else {name: tuple(kinds) for name, kinds in output_kinds(plan).items()}


def _changes_by_operator(changes: Sequence[Change], ids: Mapping[str, int]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for index, change in enumerate(changes):
        for operator_id in changed_operators([change], ids):
            indexes.setdefault(operator_id, []).append(index)
    return indexes


def _settings(operator: Operator, previous: Operator | None, reasons: Mapping[str, str]) -> Iterator[Json]:
    earlier = {s.path: s for s in operator_settings(previous)} if previous is not None else None
    inputs = {entry.name: entry.input for entry in operator.state}
    for entry in operator.state:
        if entry.settings is None:
            # Nothing can set it, so it has no path.
            yield {
                "path": "",
                "state": True,
                "group": one_line(entry.name),
                "name": "",
                "input": one_line(entry.input),
                "value": operator.readable_lifetime(entry),
                "by": "",
                "layers": [],
            }
    for setting in operator_settings(operator):
        yield {
            "path": one_line(setting.path),
            "state": setting.state is not None,
            "group": one_line(setting.state or setting.group),
            "name": one_line(setting.name),
            "input": one_line(inputs[setting.state]) if setting.state else "",
            "value": one_line(value_text(setting.value)),
            "by": setting.set_by,
            "layers": [[layer, one_line(value_text(value))] for layer, value in setting.layers.items()],
            **_before(setting, earlier),
            **({"reason": clean(reasons[setting.path])} if setting.path in reasons else {}),
        }


def _before(setting: PlanSetting, earlier: Mapping[str, PlanSetting] | None) -> Json:
    if earlier is None:
        return {}
    old = earlier.get(setting.path)
    if old is not None and old.value == setting.value:
        return {}
    return {"before": "(none)" if old is None else one_line(value_text(old.value))}


def _facts(operator: Operator) -> Iterator[list[Any]]:
    for name, value in in_flink(operator_facts(operator)).items():
        if name not in _NOT_FACTS and value not in (None, [], {}):
            yield [name, [*_lines(value)]]


def _lines(value: object) -> Iterator[str]:
    """Yield a fact as lines: one per item of a list; an item with a name begins with it."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        yield one_line(", ".join(value))
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item)
    elif isinstance(value, dict) and {"left", "right"} == value.keys():
        yield one_line(f"{value['left']} = {value['right']}")
    elif isinstance(value, dict):
        first = [str(value["name"])] if "name" in value else []
        members = [f"{key} {_plain(item)}" for key, item in value.items() if key != "name"]
        yield one_line(" · ".join([*first, *members]))
    else:
        yield one_line(_plain(value))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _columns(operator: Operator, columns: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return name, type and source of each column: an input column, or an expression."""
    sources: dict[str, str] = {}
    for column in getattr(operator, "output", ()):
        sources[column.name] = f"{column.side}.{column.column}"
    for item in getattr(operator, "select", ()):
        if item.expression is not None:
            sources[item.name] = shown_expression(item.expression)
    return [[one_line(name), type_, one_line(sources.get(name, ""))] for name, type_ in columns]


def _table(name: str, table: Table) -> Json:
    options = [[one_line(key), one_line(value)] for key, value in shown_options(name, table).items()]
    columns = []
    for column in table.columns:
        more = [f"AS {column.expression}"] if column.expression is not None else []
        more += [f"METADATA FROM '{column.metadata}'{' VIRTUAL' * column.virtual}"] if column.metadata else []
        more += ["primary key"] if column.name in table.primary_key else []
        more += ["partitions"] if column.name in table.partitioned_by else []
        more += [column.comment] if column.comment else []
        columns.append([one_line(column.name), column.type, one_line(" · ".join(more))])
    return {"columns": columns, "options": options, "comment": one_line(table.comment or "")}
