"""Generated values, and the planning of micro-batches by an injected clock."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from hintplan.plans.connectors.datagen import FieldSpec, field_specs
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.datagen.generators import batch
from hintplan.runtime.connectors.datagen.source import DatagenReader
from hintplan.runtime.types import to_arrow

ALL = None  # a limit that Spark sets, which does not count here


def specs(options: dict[str, str], *columns: str) -> tuple[FieldSpec, ...]:
    declared = tuple(TableColumn(name=c.split(" ", 1)[0], type=c.split(" ", 1)[1]) for c in columns)
    return field_specs(Table(columns=declared, options={"connector": "datagen", **options}))


EVERY_TYPE = (
    "a BOOLEAN", "b TINYINT", "c SMALLINT", "d INT", "e BIGINT", "f FLOAT", "g DOUBLE", "h DECIMAL(38, 10)",
    "i STRING", "j VARCHAR(7)", "k BYTES", "l DATE", "m TIMESTAMP(3)", "n TIMESTAMP_LTZ(3)",
)  # fmt: skip


def test_rows_do_not_depend_on_how_they_are_cut_into_batches():
    wanted = specs({"fields.i.length": "20", "fields.k.length": "3"}, *EVERY_TYPE)
    whole = pa.Table.from_batches([batch(wanted, 0, 100, time_ms=5)])
    cuts = [0, 1, 33, 34, 100]
    pieces = [batch(wanted, low, high, time_ms=5) for low, high in pairwise(cuts)]
    assert pa.Table.from_batches(pieces).equals(whole)


def test_every_type_has_the_arrow_type_that_the_runtime_expects():
    found = batch(specs({}, *EVERY_TYPE), 0, 3, time_ms=0)
    assert [field.type for field in found.schema] == [to_arrow(column.split(" ", 1)[1]) for column in EVERY_TYPE]
    assert found.num_rows == 3
    assert all(column.null_count == 0 for column in found.columns)


def test_values_do_not_depend_on_the_other_columns():
    both = specs({}, "a INT", "b INT")
    assert batch(both, 0, 50, time_ms=0)["b"] == batch(both[1:], 0, 50, time_ms=0)["b"]
    assert batch(both, 0, 50, time_ms=0)["a"] != batch(both, 0, 50, time_ms=0)["b"]


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("v TINYINT", -3, 2),
        ("v BIGINT", -(2**63), 2**63 - 1),
        ("v BIGINT", 2**62, 2**62 + 5),
        ("v DOUBLE", -1.5, 2.5),
        ("v DECIMAL(5, 2)", Decimal("-1.25"), Decimal("1.25")),
        ("v DECIMAL(38, 0)", Decimal(10) ** 37, Decimal(10) ** 38 - 1),
    ],
)
def test_random_numbers_stay_in_their_range_and_reach_both_halves_of_it(column, low, high):
    values = batch(specs({"fields.v.min": str(low), "fields.v.max": str(high)}, column), 0, 2000, time_ms=0)["v"]
    values = values.to_pylist()
    assert low <= min(values)
    assert max(values) <= high
    assert 0.45 < sum(2 * value > low + high for value in values) / 2000 < 0.55


def test_a_range_of_one_number_yields_that_number():
    assert set(batch(specs({"fields.v.min": "7", "fields.v.max": "7"}, "v INT"), 0, 9, time_ms=0)["v"].to_pylist()) == {
        7
    }


def test_both_ends_of_a_small_range_occur():
    values = batch(specs({"fields.v.min": "1", "fields.v.max": "3"}, "v INT"), 0, 200, time_ms=0)["v"]
    assert set(values.to_pylist()) == {1, 2, 3}


def test_random_text_is_hexadecimal_and_has_its_length():
    values = batch(specs({"fields.v.length": "11"}, "v STRING"), 0, 500, time_ms=0)["v"].to_pylist()
    assert {len(value) for value in values} == {11}
    assert set("".join(values)) == set("0123456789abcdef")
    assert len(set(values)) == 500


def test_text_and_bytes_default_to_the_length_of_their_type_or_100():
    found = batch(specs({}, "a STRING", "b CHAR(3)", "c BYTES"), 0, 1, time_ms=0).to_pylist()[0]
    assert [len(found[name]) for name in "abc"] == [100, 3, 100]


def test_a_sequence_counts_in_any_type_that_can():
    options = {f"fields.{name}.{key}": value for name in "abcd"
               for key, value in (("kind", "sequence"), ("start", "-1"), ("end", "5"))}  # fmt: skip
    found = batch(specs(options, "a TINYINT", "b STRING", "c DECIMAL(5, 2)", "d DOUBLE"), 0, 3, time_ms=0)
    assert found.to_pydict() == {
        "a": [-1, 0, 1],
        "b": ["-1", "0", "1"],
        "c": [Decimal("-1.00"), Decimal("0.00"), Decimal("1.00")],
        "d": [-1.0, 0.0, 1.0],
    }


def test_time_columns_hold_the_time_of_the_batch():
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    found = batch(specs({}, "a DATE", "b TIMESTAMP(3)", "c TIMESTAMP_LTZ(3)"), 0, 1,
                  time_ms=int(noon.timestamp() * 1000))  # fmt: skip
    assert found.to_pylist() == [{"a": date(2020, 1, 1), "b": datetime(2020, 1, 1, 12), "c": noon}]


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def reader(*, rate: int, limit: int | None, clock: Clock, once: bool = False) -> DatagenReader:
    return DatagenReader(specs=specs({}, "v INT"), rate=rate, limit=limit, once=once, clock=clock)


def test_rows_come_at_the_rate_and_stop_at_the_limit():
    clock = Clock()
    source = reader(rate=100, limit=250, clock=clock)
    offset = source.initialOffset()
    planned = []
    for elapsed in (0, 500, 500, 1_500, 9_000, 99_000):
        clock.now = 1_000_000 + elapsed
        following = source.latestOffset(offset, ALL)
        planned.append((following["row"], following == offset))
        offset = following
    assert planned == [(0, True), (50, False), (50, True), (150, False), (250, False), (250, True)]


def test_a_restarted_reader_does_not_make_up_for_lost_time():
    clock = Clock()
    clock.now = 9_000_000
    source = reader(rate=100, limit=None, clock=clock)
    assert source.latestOffset({"row": 50, "time": 1_000_500}, ALL)["row"] == 50
    clock.now += 100
    assert source.latestOffset({"row": 50, "time": 1_000_500}, ALL)["row"] == 60


def test_a_run_that_stops_gets_all_rows_in_batches_of_the_rate_without_waiting():
    source = reader(rate=100, limit=250, clock=Clock())
    offset = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    planned = []
    while (following := source.latestOffset(offset, ALL)) != offset:
        offset = following
        planned.append(offset["row"])
    assert planned == [100, 200, 250]


def test_a_run_that_stops_refuses_rows_without_end():
    with pytest.raises(RunError, match="never ends"):
        reader(rate=100, limit=None, clock=Clock()).prepareForTriggerAvailableNow()


def test_a_reader_that_is_not_told_where_to_start_goes_on_from_what_was_planned():
    """As Spark 4.0 and 4.1 ask it, which plan the last batch again when a query is restarted."""
    clock = Clock()
    source = reader(rate=100, limit=250, clock=clock)
    begun = source.latestOffset()
    assert source.initialOffset() == begun, "or there would be a batch without rows"
    planned = []
    for elapsed in (500, 500, 1_500, 9_000, 99_000):
        clock.now = 1_000_000 + elapsed
        planned.append(source.latestOffset()["row"])
    assert planned == [50, 50, 150, 250, 250]
    restarted = reader(rate=100, limit=250, clock=clock)
    restarted.partitions({"row": 0, "time": 1_000_000}, {"row": 50, "time": 1_000_500})
    assert restarted.latestOffset() == {"row": 50, "time": 1_000_500}
    clock.now += 100
    assert restarted.latestOffset()["row"] == 60


def test_a_run_that_stops_gets_all_rows_at_once_if_it_is_not_told_where_to_start():
    source = reader(rate=100, limit=250, clock=Clock(), once=True)
    read = source.latestOffset()
    assert (source.initialOffset()["row"], read["row"]) == (0, 250)
    restarted = reader(rate=100, limit=250, clock=Clock(), once=True)
    restarted.partitions({"row": 0, "time": 0}, read)
    assert restarted.latestOffset() == read


def test_the_last_row_is_marked_however_the_rows_are_cut():
    for cuts in ([0, 6], [0, 2, 5, 6], [0, 5, 6]):
        source = DatagenReader(specs=specs({}, "v INT"), rate=1, limit=6, last=True)
        planned = [
            part
            for low, high in pairwise(cuts)
            for part in source.partitions({"row": low, "time": 0}, {"row": high, "time": 0})
        ]
        rows = [batch for part in planned for batch in source.read(part)]
        assert [last for batch in rows for last in batch["__last"].to_pylist()] == [False] * 5 + [True]


def test_a_table_that_can_have_no_last_row_is_refused_if_windows_wait_for_it():
    source = DatagenReader(specs=specs({}, "v INT"), rate=1, limit=6, last=True, table="made")
    assert source.latestOffset({"row": 6, "time": 0}, ALL)["row"] == 6
    with pytest.raises(RunError, match="table made has made 7 rows, and now ends with row 6") as refused:
        source.latestOffset({"row": 7, "time": 0}, ALL)
    assert "row 8 or a later one" in str(refused.value)


def test_a_lowered_limit_does_not_take_rows_back():
    assert reader(rate=100, limit=10, clock=Clock()).latestOffset({"row": 50, "time": 0}, ALL)["row"] == 50


def test_partitions_cover_the_rows_of_a_batch_once():
    source = reader(rate=1, limit=None, clock=Clock())
    parts = source.partitions({"row": 7, "time": 0}, {"row": 250_007, "time": 5})
    assert [part.value[:2] for part in parts] == [
        (7, 50_007), (50_007, 100_007), (100_007, 150_007), (150_007, 200_007), (200_007, 250_007)
    ]  # fmt: skip
    assert sum(found.num_rows for part in parts for found in source.read(part)) == 250_000
    assert source.partitions({"row": 7, "time": 0}, {"row": 7, "time": 0}) == []
