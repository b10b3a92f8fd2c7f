"""Rewriting of a plan's text after an edit: canonical text stays canonical, and other text keeps its layout.

The edit of one value must not reformat a file that someone has laid out by hand.

>>> data = b'{"name":"a", "config":{"x":"1"}}'
>>> text = JsonText(data)
>>> apply(text, patches(text.value, {"name": "b", "config": {"x": "1", "y": "2"}}))
b'{"name":"b", "config":{"x":"1","y":"2"}}'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hintplan.plans.files.codec import dumps
from hintplan.plans.format.digest import document_digests
from hintplan.plans.format.document import to_document
from hintplan.plans.format.printer import layout_of, print_value
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.jsontext import JsonText, Path


@frozen
class Patch:
    """A value to write over the value at ``path``, or, with ``key``, a member to add to the object there."""

    path: Path
    value: Any
    key: str | None = None


def rewrite(data: bytes, old: Plan, new: Plan) -> bytes:
    """Change the file ``data``, which contains ``old``, to contain ``new``; all other bytes stay."""
    if dumps(old) == data:
        return dumps(new)
    source = JsonText(data)
    written, wanted = to_document(old), to_document(new)
    if "digests" in source.value:
        # The edit was allowed despite changed facts, so it accepts them.
        written["digests"], wanted["digests"] = source.value["digests"], document_digests(new)
    return apply(source, patches(written, wanted))


def patches(old: object, new: object, path: Path = ()) -> list[Patch]:
    """Return the innermost values to replace and the members to add; an object that loses members is replaced."""
    if old == new:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old and old.keys() <= new.keys():
        replaced = [patch for key in old for patch in patches(old[key], new[key], (*path, key))]
        return replaced + [Patch(path=path, key=key, value=new[key]) for key in new if key not in old]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [patch for index, (a, b) in pairs for patch in patches(a, b, (*path, index))]
    return [Patch(path=path, value=new)]


def apply(source: JsonText, changes: Iterable[Patch]) -> bytes:
    """Apply ``changes`` to the text of ``source``; none of them may lie inside another."""
    text = source.text
    # From the end, so that earlier offsets stay valid; the stable sort keeps the order of additions at one offset.
    edits = sorted((_edit(source, patch) for patch in changes), key=lambda edit: edit[:2])
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    return text.encode()


def _edit(source: JsonText, patch: Patch) -> tuple[int, int, str]:
    """Return start, end and text of the replacement for ``patch``."""
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
    # The new member gets the blanks around the last one; a first member on a single line has none before it.
    after_colon = text[len(text[:start].rstrip()) : start]
    before_key = text[len(text[:key_start].rstrip()) : key_start] or after_colon
    return end, end, f",{before_key}{print_value(patch.key)}:{after_colon}{print_value(patch.value)}"
