r"""Prints a plan document in its canonical layout: two-space indent, one fact per line, UTF-8, final newline.

The structure that reviewers read line by line (see ``_EXPANDED``) always has one key per line. A state entry is one
line, so that its edit is a diff of one line. Any other value is one line if it fits into 120 columns, and is expanded
otherwise. Characters that a terminal or a review page would not show, such as escape sequences and direction overrides,
are written as ``\\u`` escapes.

>>> print_value({"name": "a", "type": "INT"})
'{ "name": "a", "type": "INT" }'
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from hintplan.plans.operators import KINDS

_WIDTH = 120
_EXPANDED: frozenset[tuple[str, ...]] = frozenset(
    (
        (),
        ("config",),
        ("tables",),
        ("tables", "*"),
        ("tables", "*", "options"),
        ("functions",),
        ("functions", "*"),
        ("operators",),
        ("operators", "*"),
        *(("operators", "*", group.name) for kind in KINDS for group in kind.groups),
        ("reasons",),
        ("digests",),
        ("digests", "settings"),
        ("digests", "tables"),
        ("digests", "functions"),
        ("digests", "operators"),
    )
)
_STATE_ENTRY = ("operators", "*", "state", "*")
_PLACES = _EXPANDED | {_STATE_ENTRY[:-1], _STATE_ENTRY}

Path = tuple[str, ...]


def print_document(document: dict[str, Any]) -> bytes:
    """Return the canonical bytes of a whole plan document, whose keys are already in canonical order."""
    return (print_value(document, path=()) + "\n").encode()


def layout_of(path: tuple[str | int, ...]) -> Path | None:
    """Return the argument ``path`` of :func:`print_value` for the value at this path of a plan."""
    layout: Path | None = ()
    for part in path:
        layout = _child_path(layout, str(part))
    return layout


def print_value(value: object, *, path: Path | None = None, indent: int = 0, column: int = 0) -> str:
    """Print ``value`` as at ``path`` of a plan (``*`` for any name or index; None for the inside of other values).

    ``indent`` is the indent of its line, ``column`` the column in which it starts. The parts of an expanded value
    follow the same rule.
    """
    children = _children(value)
    expand = path in _EXPANDED
    if not children or not expand:
        text = _one_line(value)
        # One column is reserved for a comma.
        if not children or path == _STATE_ENTRY or column + len(text) < _WIDTH:
            return text
    open_bracket, close_bracket = "{}" if isinstance(value, dict) else "[]"
    lines = []
    for key, child in children:
        start = "" if isinstance(value, list) else f"{_string(key)}: "
        child_path = _child_path(path, key if isinstance(value, dict) else "*")
        lines.append(
            " " * (indent + 2)
            + start
            + print_value(child, path=child_path, indent=indent + 2, column=indent + 2 + len(start))
        )
    return open_bracket + "\n" + ",\n".join(lines) + "\n" + " " * indent + close_bracket


def _children(value: object) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return [("*", child) for child in value]
    return []


def _child_path(path: Path | None, key: str) -> Path | None:
    if path is None:
        return None
    return next((p for p in ((*path, key), (*path, "*")) if p in _PLACES), None)


def _one_line(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{_string(key)}: {_one_line(child)}" for key, child in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_one_line, value))}]"
    return json.dumps(value, allow_nan=False)


def _string(text: str) -> str:
    quoted = encode_basestring(text)
    if quoted.isprintable():
        return quoted
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)
