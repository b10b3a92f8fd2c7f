"""Paths into a plan document as people write them: operators by id, columns and states by name.

    operators.join_o_c.state.leftState.ttl     config.table.exec.state.ttl     operators.calc_o.select[2]

Names may contain dots; a path is resolved against a document, never split blindly.

>>> show(("operators", 0, "op"), {"operators": [{"id": "scan_o", "op": "scan"}]})
'operators.scan_o.op'
"""

from __future__ import annotations

from typing import Any

from hintplan.plans.text.jsontext import Path


def show(path: Path, document: Any) -> str:
    """The readable form of ``path``; items without a name, or whose name is not unique, by position."""
    text, value = "", document
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


def find(text: str, document: Any) -> Path:
    """The path that ``text`` names, or as much of it as the document has."""
    path: Path = ()
    value, rest = document, "." + text
    while rest:
        if isinstance(value, dict):
            candidates = [(f".{key}", key) for key in value]
        elif isinstance(value, list):
            candidates = [(f"[{index}]", index) for index in range(len(value))]
            candidates += [(f".{name}", index) for index, name in enumerate(_names(value)) if name is not None]
        else:
            break
        matching = [(prefix, part) for prefix, part in candidates if _starts(rest, prefix)]
        if not matching:
            break
        prefix, part = max(matching, key=lambda match: len(match[0]))
        path, value, rest = (*path, part), value[part], rest[len(prefix) :]
    return path


def _starts(rest: str, prefix: str) -> bool:
    return rest.startswith(prefix) and rest[len(prefix) : len(prefix) + 1] in ("", ".", "[")


def _names(items: list[Any]) -> list[str | None]:
    names: list[str | None] = []
    for item in items:
        name = item.get("id", item.get("name")) if isinstance(item, dict) else None
        names.append(name if isinstance(name, str) and name else None)
    return names
