"""Sinks in data lakes: each version of a table against rows that are reckoned apart, by a reader that is no writer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import last_sink_batch
from tests.connectors.lakes.lakes import LAKES, Lake, lake_table
from tests.connectors.lakes.sinks import arrow, changes_of, in_order, read_back, sink, written
from tests.connectors.lakes.values import DIVIDING, TYPES

pytestmark = pytest.mark.spark


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return LAKES[request.param](tmp_path / "ä 'b" / "c:d")


@pytest.mark.sampled
@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("by", ["", ";".join(DIVIDING)])
def test_values_of_every_type_are_in_the_table_as_they_are(
    spark: SparkSession, lake: Lake, on_driver: bool, key: tuple[str, ...], by: str
) -> None:
    columns = [(name, type_) for name, type_, *_ in TYPES]
    more = {"partitioned_by": by} if by else {}
    table = lake_table(lake, "t", ("id", "INT NOT NULL"), *columns, key=key, **more)
    some, others = ([row[at] for row in TYPES] for at in (2, 3))
    rows = [(1, *some), (2, *others), (3, *[None] * len(TYPES))]
    write = sink(spark, table, on_driver=on_driver)
    assert write(arrow(table, [("+I", row) for row in rows], changelog=False), 0) == 3
    assert lake.rows("t") == in_order(rows)
    again = (2, *[None] * len(TYPES))
    write(arrow(table, [("+I", again)], changelog=False), 1)
    left = [rows[0], again, rows[2]] if key else [*rows, again]
    assert lake.rows("t") == in_order(left)
    assert lake.rows("t", 1) == in_order(rows)
    assert lake.by_library("t") == len(left)
    assert read_back(spark, table) == in_order(left)


KEYS = [(name, type_, values) for name, type_, *values in TYPES if not type_.startswith(("ARRAY", "MAP", "ROW"))]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "type_", "values"), KEYS, ids=[type_ for _, type_, _ in KEYS])
def test_rows_are_found_by_keys_of_every_type(
    spark: SparkSession, lake: Lake, name: str, type_: str, values: list[Any]
) -> None:
    table = lake_table(lake, "t", (name, type_), ("v", "INT") if name != "v" else ("w", "INT"), key=(name,))
    write = sink(spark, table, changelog=True)
    first, second = values
    write(arrow(table, [("+I", (first, 1)), ("+I", (second, 2))]), 0)
    write(arrow(table, [("+U", (first, 3))]), 1)
    assert lake.rows("t") == in_order([(first, 3), (second, 2)])
    write(arrow(table, [("-D", (second, 2)), ("+U", (first, 4))]), 2)
    assert lake.rows("t") == [(first, 4)]


@pytest.mark.sampled
@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("update_before", [True, False])
@pytest.mark.parametrize("by", ["", "p"])
def test_every_version_is_what_all_batches_up_to_it_say(
    spark: SparkSession, lake: Lake, on_driver: bool, update_before: bool, by: str
) -> None:
    chance = random.Random(7)
    columns = (("id", "INT"), ("k", "STRING"), ("n", "BIGINT"), ("p", "STRING"))
    table = lake_table(lake, "t", *columns, key=("id", "k"), **({"partitioned_by": by} if by else {}))
    write = sink(spark, table, changelog=True, on_driver=on_driver)
    rows: dict[Any, Any] = {}
    expected = {0: []}
    for batch in range(12 if on_driver else 4):
        changes = changes_of(chance, rows, size=chance.choice([0, 1, 20]), update_before=update_before)
        assert write(arrow(table, changes), batch) == len(changes)
        expected[lake.commits("t")] = in_order(rows.values())
    assert {version: lake.rows("t", version) for version in expected} == expected
    assert max(expected) >= 3
    assert lake.by_library("t") == len(rows)


@pytest.mark.sampled
@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("on_driver", [True, False])
def test_a_batch_that_runs_again_is_skipped(
    spark: SparkSession, lake: Lake, key: tuple[str, ...], on_driver: bool
) -> None:
    table = lake_table(lake, "t", ("id", "INT"), ("v", "STRING"), key=key)
    write = sink(spark, table, on_driver=on_driver)
    first, second = (arrow(table, [("+I", (i, "a"))], changelog=False) for i in (1, 2))
    assert write(first, 0) == 1
    write(first, 0)
    write(second, 1)
    before = lake.commits("t")
    write(arrow(table, [("+I", (9, "what a replay would not write"))], changelog=False), 1)
    assert lake.rows("t") == [(1, "a"), (2, "a")]
    assert lake.commits("t") == before
    assert list(lake.remembered("t").values()) == [1]
    assert last_sink_batch(table, lambda: "/r", lambda path: ()) == 1
    with pytest.raises(RunError, match=r"has batch 1 of this query, which is at batch 0") as caught:
        write(first, 0)
    assert "its checkpoint is older than the table" in str(caught.value)


def test_sinks_of_one_query_count_their_batches_apart_also_in_one_table(spark: SparkSession, lake: Lake) -> None:
    table = lake_table(lake, "t", ("id", "INT"), ("v", "STRING"))
    for part in ("/one", "/two"):
        for batch in (0, 0, 1):
            rows = arrow(table, [("+I", (batch, part))], changelog=False)
            sink(spark, table, part=part)(rows, batch)
    assert lake.rows("t") == [(0, "/one"), (0, "/two"), (1, "/one"), (1, "/two")]


def test_a_batch_job_adds_to_what_is_there(spark: SparkSession, lake: Lake) -> None:
    appended, upserted = [(1, "a"), (1, "b"), (2, "a"), (3, "b")], [(1, "b"), (2, "a"), (3, "b")]
    for name, key, left in (("a", (), appended), ("u", ("id",), upserted)):
        table = lake_table(lake, name, ("id", "INT"), ("v", "STRING"), key=key)
        written(spark, table, [(1, "a"), (2, "a")])
        written(spark, table, [(1, "b"), (3, "b")])
        assert lake.rows(name) == left
        assert list(lake.remembered(name).values()) == [0, 0]


def test_names_and_places_may_have_what_paths_and_sql_have(spark: SparkSession, lake: Lake) -> None:
    names = ("select", "c.d", "e\"f'g", "ü", "deleted")
    table = lake_table(lake, "t", *((n, "INT") for n in names), key=names[:3])
    write = sink(spark, table)
    write(arrow(table, [("+I", (1, 2, 3, 4, 5)), ("+I", (6, 7, 8, 9, 10))], changelog=False), 0)
    write(arrow(table, [("+I", (1, 2, 3, 0, 0))], changelog=False), 1)
    assert lake.rows("t") == [(1, 2, 3, 0, 0), (6, 7, 8, 9, 10)]


@pytest.mark.sampled
@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("key", [(), ("v",)])
def test_null_where_there_must_be_a_value_is_refused(
    spark: SparkSession, lake: Lake, on_driver: bool, key: tuple[str, ...]
) -> None:
    table = lake_table(lake, "t", ("v", "INT NOT NULL"), ("w", "INT"), key=key)
    write = sink(spark, table, on_driver=on_driver)
    said = "column 'v' is NOT NULL, and a row has NULL in it"
    with pytest.raises(Exception, match=said):
        write(arrow(table, [("+I", (None, 1))], changelog=False), 0)
    write(arrow(table, [("+I", (1, 1))], changelog=False), 0)
    with pytest.raises(Exception, match=said):
        write(arrow(table, [("+I", (None, 1))], changelog=False), 1)
    assert lake.rows("t") == [(1, 1)]
