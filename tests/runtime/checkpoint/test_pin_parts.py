"""Pins of the batch that is to run again are looked at before a run; those of batches that are over may be anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.compare.query_record import QueryRecord
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.pin_parts import pin_damages
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import BatchPins, Pin, PinPlace, RememberedPins, question_of

QUERY = QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=())
ANSWER = Pin(
    label="",
    at="0.0",
    division="",
    questions=(question_of(("EUR",)),),
    count=np.array([1]),
    marks=np.array([False]),
    rows=pa.table({"rate": [1.1] * 1}),
)


def checkpoint(directory: Path) -> Path:
    for batch in range(3):
        place = PinPlace(root=str(directory / "sink_r/pins"), folder="0123", operator="lookup_r")
        BatchPins(files_at(place.root), place, batch, RememberedPins()).publish("ab", ANSWER)
    return directory


def said(directory: Path, *, began: int, ended: int) -> list[str]:
    return [str(each) for each in pin_damages(local_files(directory), QUERY, began=began, ended=ended)]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 0xFF]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("damage", [cut, flip, lambda data: b"", lambda data: b"\x00garbage" * 100])
def test_a_pin_that_is_needed_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    pins = checkpoint(tmp_path) / "sink_r" / "pins" / "0123"
    assert said(tmp_path, began=2, ended=1) == []
    for path in pins.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    (found,) = said(tmp_path, began=2, ended=1)
    assert found.startswith("sink_r/pins/0123/2.1.ab.pin ")
    assert said(tmp_path, began=2, ended=2) == [], "the batch is over"


def test_pins_of_a_batch_that_never_began_tell_that_the_log_has_lost_it(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    assert said(tmp_path, began=1, ended=1) == [
        "sink_r/offsets/2 is missing, though there is sink_r/pins/0123/2.1.ab.pin"
    ]
