"""A problem of a value in a plan document, and the description of JSON values in messages."""

from __future__ import annotations

import json

from hintplan.plans.frozen import frozen
from hintplan.plans.text.jsontext import Path


@frozen
class SchemaFinding:
    """A problem with the value at ``path``, or with its key if ``key``."""

    path: Path
    message: str
    hint: str | None = None
    key: bool = False


def described_json(value: object) -> str:
    """Return the description of a JSON value in a message, cut to a readable length.

    >>> described_json([1, 2]), described_json(True), described_json(7)
    ('an array', 'true', 'the number 7')
    """
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return f"'{value[:60]}...'" if len(value) > 60 else f"'{value}'"
    return f"the number {value}"
