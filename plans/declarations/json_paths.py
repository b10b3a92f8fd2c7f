"""Paths into JSON documents, as SQL writes them: a mode, and members and positions from the root on.

Flink hands a path to JsonPath, which also has wildcards, filters, slices and functions; what is read here means one
place of a document at most. Without a mode a path is strict, as in Flink.

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
    """``strict`` says that a path which leads nowhere is an error, not empty; steps are members and positions, from
    the end if they are negative."""

    strict: bool
    steps: tuple[str | int, ...]


@lru_cache(maxsize=256)
def parse_json_path(text: str) -> JsonPath:
    """The path that ``text`` says; ValueError, in a sentence, for what is none or not supported."""
    mode = _MODE.fullmatch(text)
    rest = mode[2].strip(" ") if mode else text
    if not rest.startswith("$"):
        raise ValueError(f"the path '{text}' does not begin with '$', the root")
    steps: list[str | int] = []
    at = 1
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise ValueError(f"'{rest[at:]}' in the path '{text}' is not supported")
        steps.append(int(step["position"]) if step["position"] else step["name"] or step["single"] or step["double"])
        at = step.end()
    return JsonPath(strict=mode is None or mode[1].lower() == "strict", steps=tuple(steps))
