"""TUMBLE, HOP and CUMULATE without an aggregate: each row with each of its windows, against the model."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window
from hintplan.plans.errors import RunError
from hintplan.runtime.operator import KIND
from hintplan.runtime.operators.window_function import WindowsOfRows, window_fields
from hintplan.runtime.types import to_arrow
from tests.runtime.event_time.histories import millis, moment
from tests.runtime.event_time.models import Windows
from tests.runtime.event_time.times import Zone, milliseconds

HOUR = 3_600_000
CASES = [
    (Window(type="tumble", size="1 h", offset="-10 min"), Windows("tumble", HOUR, offset=-HOUR // 6)),
    (Window(type="hop", size="3 h", slide="1 h"), Windows("hop", 3 * HOUR, HOUR)),
    (Window(type="cumulate", size="6 h", step="2 h"), Windows("cumulate", 6 * HOUR, 2 * HOUR)),
]
NAMES = ("ws", "we", "wt")


def step(window: Window) -> WindowsOfRows:
    time = to_arrow("TIMESTAMP(3)" if window.zone is None else "TIMESTAMP_LTZ(3)")
    fields = [("v", pa.int64()), ("at", time), *window_fields(NAMES, window.zone), (KIND, pa.int8())]
    return WindowsOfRows(operator="windows", time="at", window=window, names=NAMES, schema=pa.schema(fields))


def rows(window: Window, times: list[int | None]) -> pa.Table:
    schema = step(window).schema
    moments = [None if time is None else moment(time, zoned=window.zone is not None) for time in times]
    columns = [range(len(times)), moments, [0] * len(times)]
    return pa.table(
        [pa.array(values, schema.field(name).type) for name, values in zip(("v", "at", KIND), columns, strict=True)],
        ["v", "at", KIND],
    )


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(("window", "model"), CASES, ids=["tumble", "hop", "cumulate"])
def test_a_row_has_all_of_its_windows(window, model, zone) -> None:
    window = Window(**{name: getattr(window, name) for name in ("type", "size", "slide", "step", "offset")}, zone=zone)
    rng, start, of_zone = random.Random(1), milliseconds("2024-10-26T12:00"), Zone(zone)
    times = [rng.randint(start, start + 24 * HOUR) for _ in range(200)]
    output = step(window)(rows(window, times))
    assert output.schema.equals(step(window).schema)
    got = Counter((row["v"], millis(row["ws"]), millis(row["we"])) for row in output.to_pylist())
    assert got == Counter((v, *each) for v, time in enumerate(times) for each in model.of(of_zone.wall(time)))
    assert [row["v"] for row in output.to_pylist()] == sorted(row["v"] for row in output.to_pylist())


def test_the_rowtime_of_a_window_is_its_last_millisecond() -> None:
    (row,) = step(Window(type="tumble", size="1 h"))(rows(Window(type="tumble", size="1 h"), [5])).to_pylist()
    assert (millis(row["ws"]), millis(row["we"]), millis(row["wt"])) == (0, HOUR, HOUR - 1)


def test_no_rows_have_no_windows() -> None:
    window = Window(type="hop", size="3 h", slide="1 h")
    assert step(window)(rows(window, [])).num_rows == 0


def test_a_row_without_a_time_fails_the_run() -> None:
    window = Window(type="tumble", size="1 h")
    with pytest.raises(RunError, match="operator windows: 'at' is the rowtime, and a row has NULL in it"):
        step(window)(rows(window, [1, None]))
