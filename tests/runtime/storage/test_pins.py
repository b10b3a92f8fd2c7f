"""The file of a pin: what is written is read, the first one stays, what was cut off or changed is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import (
    BatchPins,
    Pin,
    PinPlace,
    RememberedPins,
    decode_pin,
    encode_pin,
    heeded_pins,
    question_of,
    token_of,
)

ROWS = pa.table({"code": ["EUR", None, "x"], "tags": [["a"], None, []]})
TOKEN = token_of("", 0, 0, b"rows")
NAME = f"7.1.{TOKEN}.pin"


def pin(*, rows: pa.Table = ROWS) -> Pin:
    questions = tuple(question_of((key,)) for key in ("EUR", "USD", 3))
    marks = np.array([True, False, True])
    return Pin(
        label="12",
        at="0.1",
        division="2 of 4",
        questions=questions,
        count=np.array([2, 0, rows.num_rows - 2]),
        marks=marks,
        rows=rows,
    )


def batch(
    directory: Path, number: int = 7, *, run: int = 1, replayed: int = -1, heeded: tuple[str, ...] = ()
) -> BatchPins:
    place = PinPlace(root=str(directory), folder="0123", operator="lookup_r", run=run, replayed=replayed, heeded=heeded)
    return BatchPins(files_at(str(directory)), place, number, RememberedPins())


def same(a: Pin, b: Pin) -> bool:
    columns = (a.label, a.at, a.division, a.questions, a.count.tolist(), a.marks.tolist()) == (
        b.label, b.at, b.division, b.questions, b.count.tolist(), b.marks.tolist()
    )  # fmt: skip
    return columns and a.rows.equals(b.rows)


def test_what_is_written_is_read() -> None:
    found, heeded = decode_pin(encode_pin(pin(), "lookup_r", NAME, ["a", "b"]), NAME)
    assert same(found, pin())
    assert heeded == ("a", "b")


def test_the_first_pin_stays_and_is_what_the_second_one_gets(tmp_path: Path) -> None:
    first, second = pin(), pin(rows=ROWS.slice(0, 2))
    assert batch(tmp_path).find(TOKEN) is None
    assert batch(tmp_path).publish(TOKEN, first) is first
    assert same(batch(tmp_path).publish(TOKEN, second), first)
    found = batch(tmp_path).find(TOKEN)
    assert found is not None
    assert same(found, first)


def listed(directory: Path, number: int) -> tuple[str, ...]:
    folder = directory / "0123"
    return heeded_pins((path.name for path in folder.iterdir()), number, lambda name: (folder / name).read_bytes())


def test_a_run_heeds_the_pins_of_the_batch_that_it_runs_again(tmp_path: Path) -> None:
    batch(tmp_path).publish(TOKEN, pin())
    batch(tmp_path, 6).publish(TOKEN, pin())
    heeded = listed(tmp_path, 7)
    assert heeded == (NAME,)
    second = batch(tmp_path, run=2, replayed=7, heeded=heeded)
    assert second.find(TOKEN) is None
    assert {token: same(found, pin()) for token, found in second.heeded().items()} == {TOKEN: True}
    assert batch(tmp_path, 8, run=2, replayed=7, heeded=heeded).heeded() == {}


def test_what_a_dead_run_has_pinned_since_another_began_does_not_count(tmp_path: Path) -> None:
    batch(tmp_path).publish(TOKEN, pin())
    batch(tmp_path, run=2, replayed=7, heeded=listed(tmp_path, 7)).publish("ab", pin())
    batch(tmp_path).publish("cd", pin())
    assert listed(tmp_path, 7) == ("7.2.ab.pin", NAME)


def test_pins_of_batches_that_are_over_go_and_drafts_of_dead_tasks_with_them(tmp_path: Path) -> None:
    for number in range(40):
        batch(tmp_path, number).publish(TOKEN, pin())
        (tmp_path / "0123" / f".{number}.1.{TOKEN}.pin.00ff.tmp").touch()
    names = [path.name for path in (tmp_path / "0123").iterdir()]
    assert {int(name.lstrip(".").partition(".")[0]) for name in names} == set(range(29, 40))


@pytest.mark.parametrize("at", [0, 20, 60, -200, -70])
def test_a_pin_that_is_not_what_was_written_is_refused_by_its_name(tmp_path: Path, at: int) -> None:
    path = tmp_path / "0123" / NAME
    batch(tmp_path).publish(TOKEN, pin())
    data = bytearray(path.read_bytes())
    for damaged in (data[:at], bytes(data[:at]) + b"\xff" + bytes(data[at:][1:]), b""):
        path.write_bytes(damaged)
        with pytest.raises(RunError, match=f"operator lookup_r cannot read its response: {path} "):
            batch(tmp_path).find(TOKEN)


def test_a_pin_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    batch(tmp_path, 6).publish(TOKEN, pin())
    (tmp_path / "0123" / f"6.1.{TOKEN}.pin").rename(tmp_path / "0123" / NAME)
    with pytest.raises(RunError, match=rf"is another pin, 6\.1\.{TOKEN}\.pin of lookup_r"):
        batch(tmp_path).find(TOKEN)


def test_a_pin_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0123" / NAME
    batch(tmp_path).publish(TOKEN, pin())
    path.write_bytes(path.read_bytes().replace(b"hintplan-pin 1", b"hintplan-pin 2", 1))
    with pytest.raises(RunError, match="has pin format 2, this version of hintplan reads format 1"):
        batch(tmp_path).find(TOKEN)
