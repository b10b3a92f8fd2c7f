"""The canonical layout of a plan file, whatever it says: the same document, laid out as the compiler would.

Only the layout changes, and the spelling of durations. What a plan cannot hold is refused before anything is written:
unknown and duplicate keys, wrong types. Digests stay as they are, so a fact that was changed by hand stays visible.

>>> formatted(b"[]")
Traceback (most recent call last):
hintplan.plans.errors.PlanError: line 1:1: expected a plan, which is an object, found an array
"""

from __future__ import annotations

from hintplan.plans.files.codec import read_document
from hintplan.plans.format.document import from_document, to_document
from hintplan.plans.format.printer import print_document

_KINDS = ("settings", "tables", "functions", "operators")
_ALWAYS = ("tables", "operators")


def formatted(data: bytes, *, file: str | None = None) -> bytes:
    """The canonical text of the plan in ``data``; PlanError with the place if it is no plan."""
    document = read_document(data, file=file)
    plan = from_document(document)
    result = to_document(plan)
    if "digests" in document:
        written = document["digests"]
        # No digests of settings is the same as none being recorded.
        kinds = [kind for kind in _KINDS if written.get(kind) or kind in _ALWAYS]
        result["digests"] = {kind: {name: written[kind][name] for name in sorted(written[kind])} for kind in kinds}
    return print_document(result)
