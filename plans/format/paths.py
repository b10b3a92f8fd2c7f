"""Paths into a plan document in the notation for people: operators by id, columns and states by name.

    operators.join_o_c.state.leftState.ttl     config.table.exec.state.ttl     operators.calc_o.select[2]

Names may contain dots, so a path is always resolved against a document, and never just split.

>>> path_text(("operators", 0, "op"), {"operators": [{"id": "scan_o", "op": "scan"}]})
'operators.scan_o.op'
"""

from __future__ import annotations

import re
from typing import Any, cast

from hintplan.plans.text.jsontext import Path

_END = re.compile(r"(?<=.)(?=[.\[])|\Z", re.DOTALL)
_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,9})\]")


def path_text(path: Path, document: object) -> str:
    """Return the readable form of ``path``; an item without a unique name is shown by position."""
    text, value = "", cast(Any, document)
    for part in path:
        if isinstance(part, int):
            names = _names(value)
            name = names[part] if part < len(names) else None
            text += f".{name}" if name is not None and names.count(name) == 1 else f"[{part}]"
            value = value[part] if part < len(value) else None
        else:
            text += f".{part}"
            value = value.get(part) if isinstance(value, dict) else None
    return text.removeprefix(".")


def find(text: str, document: object) -> Path:
    """Return the path that ``text`` denotes, or the longest part of it that the document has."""
    path: Path = ()
    value, remaining = document, "." + text
    while remaining:
        # Look up the few possible names in the path, because a document may have any number of keys.
        if not isinstance(value, dict | list):
            break
        prefixes = (remaining[: match.start()] for match in reversed(list(_END.finditer(remaining))))
        places = {name: i for i, name in reversed(list(enumerate(_names(value))))} if isinstance(value, list) else {}
        step = next(((p, part) for p in prefixes if (part := _part(p, value, places)) is not None), None)
        if step is None:
            break
        prefix, part = step
        path, value, remaining = (*path, part), cast(Any, value)[part], remaining[len(prefix) :]
    return path


def _part(prefix: str, value: dict[str, Any] | list[Any], places: dict[str | None, int]) -> str | int | None:
    """Return the key or index in ``value`` that ``prefix``, which is ``.name`` or ``[index]``, denotes."""
    name = prefix[1:]
    if isinstance(value, dict):
        return name if prefix[0] == "." and name in value else None
    if prefix[0] == ".":
        return places.get(name)
    index = _INDEX.fullmatch(prefix)
    return int(index[1]) if index is not None and int(index[1]) < len(value) else None


def _names(items: list[Any]) -> list[str | None]:
    names: list[str | None] = []
    for item in items:
        name = item.get("id", item.get("name")) if isinstance(item, dict) else None
        names.append(name if isinstance(name, str) and name else None)
    return names
