"""The canonical layout of a plan file: the same document in the layout of the compiler.

Only the layout and the spelling of durations change. Unknown keys, duplicate keys and wrong types are errors. Digests
stay unchanged, so a fact that was changed by hand stays visible.

>>> canonical_text(b"[]")
Traceback (most recent call last):
hintplan.plans.errors.PlanError: line 1:1: expected a plan, which is an object, found an array
"""

from __future__ import annotations

from hintplan.plans.files.codec import read_document
from hintplan.plans.format.document import from_document, to_document
from hintplan.plans.format.printer import print_document

_KINDS = ("settings", "tables", "functions", "operators")
_ALWAYS = ("tables", "operators")


def canonical_text(data: bytes, *, file: str | None = None) -> bytes:
    """Return the canonical text of the plan in ``data``; raise PlanError with the position if it is no plan."""
    document = read_document(data, file=file)
    plan = from_document(document)
    result = to_document(plan)
    if "digests" in document:
        written = document["digests"]
        # An empty map of digests is equivalent to none, so optional ones are omitted.
        kinds = [kind for kind in _KINDS if written.get(kind) or kind in _ALWAYS]
        result["digests"] = {kind: {name: written[kind][name] for name in sorted(written[kind])} for kind in kinds}
    return print_document(result)


def first_difference(data: bytes, canonical: bytes) -> tuple[int, str]:
    """Return the number of the first line in which ``data`` differs from its ``canonical`` text, and the text there.

    The text is empty if the canonical text has no words there.

    >>> first_difference(b'"ttl": "6h"', b'"ttl": "6 h"')
    (1, '"ttl": "6 h"')
    """
    given, wanted = data.decode(errors="replace").split("\n"), canonical.decode().split("\n")
    number = next((i for i, pair in enumerate(zip(given, wanted, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        return min(len(given), len(wanted)), ""
    return number + 1, wanted[number] if any(map(str.isalnum, wanted[number])) else ""
