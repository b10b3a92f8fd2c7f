"""Describes the differences between the facts of two operators or tables: which fact, and its old and new value.

>>> [(f.path, f.before, f.after) for f in facts_between({"join-type": "left"}, {"join-type": "full"})]
[('join-type', 'left', 'full')]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import shortened

_MAX_TEXT = 2000
_EXPRESSIONS = ("expression", "filter", "condition", "pre-filter", "constant", "rows")
"""The keys of facts that are Spark SQL. The ``filter`` of an aggregate is a column, which is the same in Flink SQL."""


@frozen
class Fact:
    """A fact that differs, under its relative path; for a list, ``note`` describes the difference."""

    path: str
    before: str | None = None
    after: str | None = None
    note: str = ""


def facts_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the facts that differ, down to state entries and options, with expressions in Flink SQL."""
    yield from _between(in_flink(old), in_flink(new))


def in_flink(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an operator or table with its expressions in Flink SQL, as an author writes them."""
    inputs = [entry["input"] for entry in facts.get("state") or ()]
    sides = dict(zip(("l", "r"), inputs, strict=True)) if len(inputs) == 2 else {}

    def told(key: str, value: object) -> object:
        if isinstance(value, str) and key in _EXPRESSIONS:
            return shown_expression(value, sides)
        if isinstance(value, list):
            return [told(key, item) for item in value]
        return {name: told(name, item) for name, item in value.items()} if isinstance(value, dict) else value

    if facts.get("op") is None:
        return dict(facts)  # the expressions of a table are Flink SQL already
    return {key: told(key, value) for key, value in facts.items()}


def _between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Fact]:
    for key in [*old, *(key for key in new if key not in old)]:
        a, b = old.get(key), new.get(key)
        if a == b:
            continue
        if key == "state" and a and b:
            by_name = {entry["name"]: entry for entry in a}
            if [entry["name"] for entry in a] == [entry["name"] for entry in b]:
                for entry in b:
                    for fact in _between(by_name[entry["name"]], entry):
                        yield replace(fact, path=f"state.{entry['name']}.{fact.path}")
                continue
        if isinstance(a, dict) and isinstance(b, dict):
            for fact in _between(a, b):
                yield replace(fact, path=f"{key}.{fact.path}")
        elif isinstance(a, list) and isinstance(b, list):
            yield Fact(path=key, note=_list_note(a, b))
        else:
            yield Fact(path=key, before=_brief(a), after=_brief(b))


def _list_note(old: list[Any], new: list[Any]) -> str:
    # A list of thousands of columns must not be compared pair by pair.
    was, is_now = {json.dumps(item) for item in old}, {json.dumps(item) for item in new}
    came = [item for item in new if json.dumps(item) not in was]
    went = [item for item in old if json.dumps(item) not in is_now]
    before = {_name(item): item for item in went}
    changed = {_name(item) for item in came} & before.keys() - {None}
    parts = [_other(before[_name(item)], item) for item in came if _name(item) in changed]
    added = [_brief(item) for item in came if _name(item) not in changed]
    removed = [_brief(item) for item in went if _name(item) not in changed]
    parts += [f"added {', '.join(added)}"] if added else []
    parts += [f"removed {', '.join(removed)}"] if removed else []
    return brief("; ".join(parts) or "order changed")


def _name(item: object) -> str | None:
    """Return the name of a column or call; a column that is passed through is only its name."""
    return item if isinstance(item, str) else item.get("name") if isinstance(item, dict) else None


def _other(old: str | dict[str, Any], new: str | dict[str, Any]) -> str:
    """Describe a column or call with another definition: ``total: SUM(price) → SUM(net)``.

    The description includes the types if both are known and differ.
    """
    sides = [{"expression": item} if isinstance(item, str) else item for item in (old, new)]
    same = {"name", *(key for key in sides[0] if key != "expression" and sides[0][key] == sides[1].get(key))}
    if {"expression"} <= sides[0].keys() & sides[1].keys() and ("type" not in sides[0] or "type" not in sides[1]):
        same.add("type")  # the type of a passed-through column is unknown here
    texts = [" ".join(str(value) for key, value in side.items() if key not in same) for side in sides]
    return f"{_name(new)}: {' → '.join(text or '(none)' for text in texts)}"


def _brief(value: object) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return brief(value)
    if isinstance(value, dict) and value.keys() == {"left", "right"}:
        return f"{value['left']} = {value['right']}"
    if isinstance(value, dict) and "name" in value:
        details = " ".join(str(item) for key, item in value.items() if key != "name")
        return brief(f"{value['name']} ({details})")
    return brief(json.dumps(value, ensure_ascii=False))


def brief(text: str) -> str:
    """Return ``text``, cut to a length that people still read."""
    return shortened(text, _MAX_TEXT)
