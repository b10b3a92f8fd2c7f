"""The detection of files that are meant to be plans, even invalid ones.

A review must not ignore a plan because of an unexpected layout or encoding.

>>> is_plan_like(b'{"format": "1.0", "mode": "streaming", "config": {}}'), is_plan_like(b'{"name": "a package"}')
(True, False)
"""

from __future__ import annotations

import json

_KEYS = ("format", "mode", "config")
"""Keys of every plan; no other JSON, not even the schema of plans, has all of them at its top level."""


def is_plan_like(data: bytes) -> bool:
    """Return True for a JSON object with the keys of a plan, and for invalid JSON that contains these keys."""
    text = data.decode(json.detect_encoding(data), errors="replace").removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return all(f'"{key}"' in text for key in _KEYS)
    return isinstance(value, dict) and value.keys() >= set(_KEYS)
