"""Paths into JSON documents in the notation of SQL: a mode, then members and positions from the root.

Flink passes a path to JsonPath, which also has wildcards, filters, slices and functions. A path here refers to at most
one value of a document. Without a mode a path is strict, as in Flink.

>>> parse_json_path("lax $.a.b[0]['c d']")
JsonPath(strict=False, steps=('a', 'b', 0, 'c d'))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_MODE = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL | re.ASCII)
_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\](){}*?'"\\,]+)"""
    r"""|\[ *'(?P<single>[^'\\]+)' *\]|\[ *"(?P<double>[^"\\]+)" *\]"""
    r"""|\[ *(?P<position>-?\d{1,9}) *\]"""
)
ADVICE = "write members and positions, such as '$.a.b', '$[''a b'']' and '$.a[0]'"


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path; if ``strict``, a path that leads nowhere is an error, and not an empty result.

    Steps are members and positions; negative positions count from the end.
    """

    strict: bool
    steps: tuple[str | int, ...]


@lru_cache(maxsize=256)
def parse_json_path(text: str) -> JsonPath:
    """Parse ``text`` as a path; raise ValueError with a sentence for an invalid or unsupported path."""
    mode = _MODE.fullmatch(text)
    path = mode[2].strip(" ") if mode else text
    if not path.startswith("$"):
        raise ValueError(f"the path '{text}' does not begin with '$', the root")
    steps: list[str | int] = []
    offset = 1
    while offset < len(path):
        step = _STEP.match(path, offset)
        if step is None:
            raise ValueError(f"'{path[offset:]}' in the path '{text}' is not supported")
        steps.append(int(step["position"]) if step["position"] else step["name"] or step["single"] or step["double"])
        offset = step.end()
    return JsonPath(strict=mode is None or mode[1].lower() == "strict", steps=tuple(steps))
