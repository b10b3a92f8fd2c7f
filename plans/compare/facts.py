"""What differs between the facts of two operators or tables, in words: which fact, and from what to what.

>>> [(f.path, f.before, f.after) for f in facts_between({"join-type": "left"}, {"join-type": "full"})]
[('join-type', 'left', 'full')]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hintplan.plans.text.counts import shortened

_MAX_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact that differs, under its relative path; a list in the words of ``note``."""

    path: str
    before: str | None = None
    after: str | None = None
    note: str = ""


def facts_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts that differ, down to the state entries and options."""
    for key in [*old, *(key for key in new if key not in old)]:
        a, b = old.get(key), new.get(key)
        if a == b:
            continue
        if key == "state" and a and b:
            by_name = {entry["name"]: entry for entry in a}
            if [entry["name"] for entry in a] == [entry["name"] for entry in b]:
                for entry in b:
                    for fact in facts_between(by_name[entry["name"]], entry):
                        yield replace(fact, path=f"state.{entry['name']}.{fact.path}")
                continue
        if isinstance(a, dict) and isinstance(b, dict):
            for fact in facts_between(a, b):
                yield replace(fact, path=f"{key}.{fact.path}")
        elif isinstance(a, list) and isinstance(b, list):
            yield Fact(path=key, note=_list_note(a, b))
        else:
            yield Fact(path=key, before=_brief(a), after=_brief(b))


def _list_note(old: list[Any], new: list[Any]) -> str:
    # A list of thousands of columns must not be compared pair by pair.
    was, is_now = {json.dumps(item) for item in old}, {json.dumps(item) for item in new}
    added = [_brief(item) for item in new if json.dumps(item) not in was]
    removed = [_brief(item) for item in old if json.dumps(item) not in is_now]
    parts = [f"added {', '.join(added)}"] if added else []
    parts += [f"removed {', '.join(removed)}"] if removed else []
    return brief("; ".join(parts) or "order changed")


def _brief(value: Any) -> str:
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
    """``text``, cut where it is longer than anybody reads."""
    return shortened(text, _MAX_TEXT)
