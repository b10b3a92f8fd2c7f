"""What the state store holds of one operator in one partition, besides its segments: the value of ``manifest``.

It says whose state it is, when the partition is to be called next, and where its segments are; what the operator itself
keeps there are bytes to the engine. Format 1 did not say whose state it is: it is read, and written anew at the next
call. Knows no Spark.

>>> decode(encode("join_o_c", Saved(timer=5, state_rows=1)), "join_o_c").timer
5
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from plans.errors import RunError
from runtime.engine.segments import Stored

STATE_VERSION = 2
_NAMELESS = 1

MANIFEST_DDL = "version int, timer bigint, state_rows bigint, state_bytes bigint, segments string, manifest binary"


class Saved(NamedTuple):
    """``operator`` is the plan's operator id, ``lineage`` says what its state means (:mod:`plans.compare.carryover`).

    Either is None if the value does not say.
    """

    timer: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    segments: dict[str, Stored] = {}  # noqa: RUF012 -- never mutated
    manifest: bytes | None = None
    operator: str | None = None
    lineage: str | None = None


def encode(operator: str, saved: Saved) -> tuple[Any, ...]:
    """The value of ``MANIFEST_DDL`` for the state of ``operator``."""
    where = json.dumps({"operator": operator, "lineage": saved.lineage, "segments": saved.segments})
    return (STATE_VERSION, saved.timer, saved.state_rows, saved.state_bytes, where, saved.manifest)


def decode(value: Sequence[Any], operator: str) -> Saved:
    """A value of ``MANIFEST_DDL``; RunError if its format is not known. ``operator`` is for the message."""
    version, timer, state_rows, state_bytes, where, manifest = value
    if version not in (_NAMELESS, STATE_VERSION):
        raise RunError(
            f"the state of operator {operator} has format {version}, this version of hintplan reads formats up to "
            f"{STATE_VERSION}",
            hint="run the plan with the version of hintplan that wrote the checkpoint, or use a new checkpoint",
        )
    found = json.loads(where)
    if version == _NAMELESS:
        found = {"operator": None, "segments": found}
    owner, lineage, segments = found["operator"], found.get("lineage"), found["segments"]
    stored = {name: (token, count) for name, (token, count) in segments.items()}
    return Saved(timer, state_rows, state_bytes, stored, None if manifest is None else bytes(manifest), owner, lineage)
