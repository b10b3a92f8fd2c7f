"""Tells whether a file is meant to be a plan, whatever is wrong with it.

A review must not pass a plan over because it is laid out or encoded in another way than expected.

>>> is_plan_like(b'{"format": "1.0", "mode": "streaming", "config": {}}'), is_plan_like(b'{"name": "a package"}')
(True, False)
"""

from __future__ import annotations

import json

_KEYS = ("format", "mode", "config")
"""Keys that each plan has; other JSON, and a schema of plans, has not all of them at its top."""


def is_plan_like(data: bytes) -> bool:
    """True if this is an object of JSON with what each plan has, or no JSON and the words for it stand somewhere."""
    text = data.decode(json.detect_encoding(data), errors="replace").removeprefix("\ufeff")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return all(f'"{key}"' in text for key in _KEYS)
    return isinstance(found, dict) and found.keys() >= set(_KEYS)
