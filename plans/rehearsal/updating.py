"""Writes what came into a file of tests, for a person to review: rows in place of the expected rows.

>>> rows_text(("id", "method"), [(1, "card"), (2, None)], indent=4)
'[\\n        {id: 1, method: card},\\n        {id: 2, method: null},\\n    ]'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from hintplan.plans.rehearsal.yaml_nodes import Place

_PLAIN = re.compile(r"[\w+.-](?:[\w .+/-]|:(?=\d))*")
_NULLS = ("null", "~", "")
_WIDEST = 90


def rows_text(names: Sequence[str], rows: Sequence[Sequence[object]], *, indent: int) -> str:
    """Return rows as YAML in brackets: in one line if it is short, or else a row per line, deeper than ``indent``."""
    texts = [_flow(dict(zip(names, row, strict=True))) for row in rows]
    if len(texts) < 2:
        return f"[{', '.join(texts)}]"
    inner = " " * (indent + 4)
    return "[\n" + "".join(f"{inner}{text},\n" for text in texts) + " " * indent + "]"


def updated(text: str, replacements: Mapping[Place, str]) -> str:
    """Return ``text`` with new texts at places, which do not overlap."""
    for place in sorted(replacements, key=lambda place: place.begin, reverse=True):
        text = text[: place.begin] + replacements[place] + text[place.end :]
    return text


def indent_of(text: str, place: Place) -> int:
    """Return the number of blanks at the start of the line of ``place``."""
    line = text.split("\n")[place.line - 1]
    return len(line) - len(line.lstrip(" -"))


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if value is None:
        return "null"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) is not None and value not in _NULLS and value == value.strip()
        return value if plain and value.lower() != "null" else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
