"""Writes an edited plan over the text it came from: canonical text stays canonical, any other keeps its layout.

A file that someone has laid out in his own way must not come back reformatted from the edit of one value.

>>> data = b'{"name":"a", "config":{"x":"1"}}'
>>> text = JsonText(data)
>>> apply(text, patches(text.value, {"name": "b", "config": {"x": "1", "y": "2"}}))
b'{"name":"b", "config":{"x":"1","y":"2"}}'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.files.codec import dumps
from hintplan.plans.format.digest import document_digests
from hintplan.plans.format.document import to_document
from hintplan.plans.format.printer import layout_of, print_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.jsontext import JsonText, Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A value to write over the one at ``path``, or, with ``key``, a member to add to the object there."""

    path: Path
    value: Any
    key: str | None = None


def rewrite(data: bytes, old: Plan, new: Plan) -> bytes:
    """The file ``data``, which holds ``old``, changed to hold ``new``; the rest stays as it is, byte by byte."""
    if dumps(old) == data:
        return dumps(new)
    source = JsonText(data)
    written, wanted = to_document(old), to_document(new)
    if "digests" in source.value:
        # The edit was allowed in spite of changed facts: they are accepted with it.
        written["digests"], wanted["digests"] = source.value["digests"], document_digests(new)
    return apply(source, patches(written, wanted))


def patches(old: Any, new: Any, path: Path = ()) -> list[Patch]:
    """The innermost values to write anew, and the members to add; where members went, the whole object."""
    if old == new:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old and old.keys() <= new.keys():
        found = [patch for key in old for patch in patches(old[key], new[key], (*path, key))]
        return found + [Patch(path=path, key=key, value=new[key]) for key in new if key not in old]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [patch for index, (a, b) in pairs for patch in patches(a, b, (*path, index))]
    return [Patch(path=path, value=new)]


def apply(source: JsonText, changes: Iterable[Patch]) -> bytes:
    """The text of ``source`` with ``changes``, of which none lies inside another, made in it."""
    text = source.text
    # From the end, so that the offsets before stay right; what is added at one place keeps its order.
    edits = sorted((_edit(source, patch) for patch in changes), key=lambda edit: edit[:2])
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    return text.encode()


def _edit(source: JsonText, patch: Patch) -> tuple[int, int, str]:
    """Start, end and text of what ``patch`` puts into the source."""
    text = source.text
    if patch.key is None:
        _, start, end = source.spans({patch.path})[patch.path]
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:]
        indent = len(line) - len(line.lstrip(" "))
        value = print_value(patch.value, path=layout_of(patch.path), indent=indent, column=start - line_start)
        return start, end, value
    container = source.value
    for part in patch.path:
        container = container[part]
    *_, last = container
    last_path = (*patch.path, last)
    key_start, start, end = source.spans({last_path})[last_path]
    # The blanks around the last member go around the new one too; a first member has none in front, in a single line.
    after_colon = text[len(text[:start].rstrip()) : start]
    before_key = text[len(text[:key_start].rstrip()) : key_start] or after_colon
    return end, end, f",{before_key}{print_value(patch.key)}:{after_colon}{print_value(patch.value)}"
