"""The delta sink: each version of a table against rows that are reckoned apart, by a reader that is not the writer."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from plans.errors import RunError
from runtime.connectors.delta.log import files_of
from runtime.connectors.delta.read import FileReading
from runtime.connectors.lakes.target import target_of
from runtime.connectors.lakes.tasks import written_files
from runtime.connectors.table import batch_writer, batches_had, micro_batch_writer
from tests.connectors.lakes.readers import actions, delta_rows, transactions, versions
from tests.connectors.lakes.sinks import Change, arrow, delta_table, micro_batch

pytestmark = pytest.mark.spark

TYPES: tuple[tuple[str, str, Any, Any], ...] = (
    ("b", "BOOLEAN", True, False),
    ("i1", "TINYINT", -128, 127),
    ("i2", "SMALLINT", -32768, 32767),
    ("i4", "INT", -(2**31), 2**31 - 1),
    ("i8", "BIGINT", -(2**63), 2**63 - 1),
    ("f4", "FLOAT", 1.5, -3.25),
    ("f8", "DOUBLE", 0.1, -1e300),
    ("n", "DECIMAL(38, 10)", Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001")),
    ("n2", "DECIMAL(10, 2)", Decimal("99999999.99"), Decimal("-0.01")),
    ("s", "STRING", "ü'\"\\%s\n\t%", ""),
    ("c", "CHAR(2)", "ab", "é "),
    ("v", "VARCHAR(99)", "a" * 99, "é"),
    ("d", "DATE", dt.date(2024, 2, 29), dt.date(1583, 1, 1)),
    ("t3", "TIMESTAMP(3)", dt.datetime(2024, 2, 29, 23, 59, 59, 123000), dt.datetime(1900, 1, 1)),
    ("t6", "TIMESTAMP(6)", dt.datetime(2024, 2, 29, 23, 59, 59, 123456), dt.datetime(9999, 12, 31, 23, 59, 59)),
    ("z", "TIMESTAMP_LTZ(6)", dt.datetime(2024, 2, 29, 12, 0, 0, 1, dt.UTC), dt.datetime(1971, 1, 1, tzinfo=dt.UTC)),
    ("y", "BYTES", b"\x00\xff'\\%", b""),
    ("a", "ARRAY<INT>", [1, None], []),
    ("m", "MAP<STRING, INT>", {"k": 1}, {}),
    ("r", "ROW<x STRING, y ARRAY<INT>>", {"x": "ü", "y": [2]}, {"x": None, "y": None}),
)
"""A column, its type, and two values."""
DIVIDING = ("b", "i1", "i2", "i4", "i8", "c", "v", "d")


def sink(spark: SparkSession, table: Any, *, changelog: bool = False, part: str = "/r", on_driver: bool = True) -> Any:
    write = micro_batch_writer("r", table, changelog=changelog, checkpoint="c", part=part)
    return lambda rows, batch: write(micro_batch(spark, rows, on_driver=on_driver), batch)


def written(spark: SparkSession, table: Any, rows: list[tuple[Any, ...]]) -> None:
    found = arrow(table, [("+I", row) for row in rows], changelog=False)
    frame = spark.createDataFrame(found, schema=from_arrow_schema(found.schema, prefer_timestamp_ntz=True))
    batch_writer(frame.repartition(2), "r", table)()


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))


def _all_nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def read_back(table: Any) -> list[tuple[Any, ...]]:
    """The rows that the tasks of a batch job read."""
    target = target_of("r", table, "table-path").here()
    files = tuple(files_of(target, None))
    reading = FileReading(table="r", storage=target.storage, files=files, schema=_all_nullable(target.schema))
    found = reading([pa.record_batch([pa.array(range(len(files)))], names=["id"])])
    rows = [row for batch in found for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="strict")]
    return in_order(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("by", ["", ";".join(DIVIDING)])
def test_values_of_every_type_are_in_the_table_as_they_are(
    spark: SparkSession, tmp_path: Path, on_driver: bool, key: tuple[str, ...], by: str
) -> None:
    columns = [(name, type_) for name, type_, *_ in TYPES]
    more = {"partitioned_by": by} if by else {}
    table = delta_table(tmp_path / "t", ("id", "INT NOT NULL"), *columns, key=key, **more)
    some, others = ([row[at] for row in TYPES] for at in (2, 3))
    rows = [(1, *some), (2, *others), (3, *[None] * len(TYPES))]
    write = sink(spark, table, on_driver=on_driver)
    assert write(arrow(table, [("+I", row) for row in rows], changelog=False), 0) == 3
    assert delta_rows(tmp_path / "t") == in_order(rows)
    again = (2, *[None] * len(TYPES))
    write(arrow(table, [("+I", again)], changelog=False), 1)
    left = [rows[0], again, rows[2]] if key else [*rows, again]
    assert delta_rows(tmp_path / "t") == in_order(left)
    assert delta_rows(tmp_path / "t", 1) == in_order(rows)
    assert len(pa.table(DeltaTable(tmp_path / "t").scan().read_all())) == len(left)
    assert read_back(table) == in_order(left)


KEYS = [(name, type_, values) for name, type_, *values in TYPES if not type_.startswith(("ARRAY", "MAP", "ROW"))]


@pytest.mark.parametrize(("name", "type_", "values"), KEYS, ids=[type_ for _, type_, _ in KEYS])
def test_rows_are_found_by_keys_of_every_type(
    spark: SparkSession, tmp_path: Path, name: str, type_: str, values: list[Any]
) -> None:
    table = delta_table(tmp_path / "t", (name, type_), ("v", "INT") if name != "v" else ("w", "INT"), key=(name,))
    write = sink(spark, table, changelog=True)
    first, second = values
    write(arrow(table, [("+I", (first, 1)), ("+I", (second, 2))]), 0)
    write(arrow(table, [("+U", (first, 3))]), 1)
    assert delta_rows(tmp_path / "t") == in_order([(first, 3), (second, 2)])
    write(arrow(table, [("-D", (second, 2)), ("+U", (first, 4))]), 2)
    assert delta_rows(tmp_path / "t") == [(first, 4)]


def changes_of(chance: random.Random, rows: dict[Any, Any], *, size: int, update_before: bool) -> list[Change]:
    """A changelog that makes sense after ``rows``, which it changes."""
    found: list[Change] = []
    for _ in range(size):
        key = (chance.randrange(12), chance.choice("ab"))
        old = rows.get(key)
        new = (*key, chance.randrange(99), chance.choice(["x", "y", None]))
        if old is None:
            found.append(("+I", new))
            rows[key] = new
        elif chance.random() < 0.4:
            found.append(("-D", old))
            del rows[key]
        else:
            found += [("-U", old)] if update_before else []
            found.append(("+U", new))
            rows[key] = new
    return found


@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("update_before", [True, False])
@pytest.mark.parametrize("by", ["", "p"])
def test_every_version_is_what_all_batches_up_to_it_say(
    spark: SparkSession, tmp_path: Path, on_driver: bool, update_before: bool, by: str
) -> None:
    chance = random.Random(7)
    columns = (("id", "INT"), ("k", "STRING"), ("n", "BIGINT"), ("p", "STRING"))
    table = delta_table(tmp_path / "t", *columns, key=("id", "k"), **({"partitioned_by": by} if by else {}))
    write = sink(spark, table, changelog=True, on_driver=on_driver)
    rows: dict[Any, Any] = {}
    expected = {0: []}
    for batch in range(12 if on_driver else 4):
        changes = changes_of(chance, rows, size=chance.choice([0, 1, 20]), update_before=update_before)
        assert write(arrow(table, changes), batch) == len(changes)
        expected[len(versions(tmp_path / "t")) - 1] = in_order(rows.values())
    assert {version: delta_rows(tmp_path / "t", version) for version in expected} == expected
    assert max(expected) >= 3
    read = pa.table(DeltaTable(tmp_path / "t").scan().read_all()).to_pylist()
    assert in_order(tuple(row.values()) for row in read) == in_order(rows.values())


@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("on_driver", [True, False])
def test_a_batch_that_runs_again_is_skipped(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...], on_driver: bool
) -> None:
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"), key=key)
    write = sink(spark, table, on_driver=on_driver)
    first, second = (arrow(table, [("+I", (i, "a"))], changelog=False) for i in (1, 2))
    assert write(first, 0) == 1
    write(first, 0)
    write(second, 1)
    before = versions(tmp_path / "t")
    write(arrow(table, [("+I", (9, "what a replay would not write"))], changelog=False), 1)
    assert delta_rows(tmp_path / "t") == [(1, "a"), (2, "a")]
    assert versions(tmp_path / "t") == before
    assert list(transactions(tmp_path / "t").values()) == [1]
    assert batches_had(table, lambda: "/r", lambda path: ()) == 1
    with pytest.raises(RunError, match=r"has batch 1 of this query, which is at batch 0") as caught:
        write(first, 0)
    assert "its checkpoint is older than the table" in str(caught.value)


def test_files_that_a_crash_has_left_are_in_no_version(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"))
    write = sink(spark, table)
    first, second = (arrow(table, [("+I", (i, "a"))], changelog=False) for i in (1, 2))
    write(first, 0)
    left = written_files(second, target_of("r", table, "table-path").here(), ())  # and there it ends
    assert [(tmp_path / "t" / file.path).is_file() for file in left] == [True]
    write(second, 1)
    assert delta_rows(tmp_path / "t") == [(1, "a"), (2, "a")]


def test_sinks_of_one_query_count_their_batches_apart_also_in_one_table(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"))
    for part in ("/one", "/two"):
        for batch in (0, 0, 1):
            rows = arrow(table, [("+I", (batch, part))], changelog=False)
            sink(spark, table, part=part)(rows, batch)
    assert delta_rows(tmp_path / "t") == [(0, "/one"), (0, "/two"), (1, "/one"), (1, "/two")]


def test_what_others_write_meanwhile_stays(spark: SparkSession, tmp_path: Path) -> None:
    """Changes by another library, of rows and of files, between the batches; columns that are not declared are kept."""
    schema = pa.schema([("more", pa.string()), ("id", pa.int32()), ("v", pa.string())])
    write_deltalake(tmp_path / "t", pa.table({"more": ["m", "n"], "id": [1, 2], "v": ["a", "b"]}, schema=schema))
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"), key=("id",))
    write = sink(spark, table, changelog=True)
    write(arrow(table, [("+U", (1, "c")), ("+I", (3, "d"))]), 0)
    write_deltalake(tmp_path / "t", pa.table({"more": ["o"], "id": [4], "v": ["e"]}, schema=schema), mode="append")
    DeltaTable(tmp_path / "t").optimize.compact()
    write(arrow(table, [("-D", (2, "b")), ("+U", (4, "f"))]), 1)
    assert delta_rows(tmp_path / "t") == [("m", 1, "c"), ("o", 4, "f"), (None, 3, "d")]
    plain = delta_table(tmp_path / "t", ("v", "STRING"), ("id", "INT"))
    sink(spark, plain)(arrow(plain, [("+I", ("g", 5))], changelog=False), 2)
    assert delta_rows(tmp_path / "t") == [("m", 1, "c"), ("o", 4, "f"), (None, 3, "d"), (None, 5, "g")]


def test_a_batch_job_adds_to_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    appended, upserted = [(1, "a"), (1, "b"), (2, "a"), (3, "b")], [(1, "b"), (2, "a"), (3, "b")]
    for name, key, left in (("a", (), appended), ("u", ("id",), upserted)):
        table = delta_table(tmp_path / name, ("id", "INT"), ("v", "STRING"), key=key)
        written(spark, table, [(1, "a"), (2, "a")])
        written(spark, table, [(1, "b"), (3, "b")])
        assert delta_rows(tmp_path / name) == left
        assert list(transactions(tmp_path / name).values()) == [0, 0]


def test_names_and_places_may_have_what_paths_and_sql_have(spark: SparkSession, tmp_path: Path) -> None:
    names = ("select", "c.d", "e\"f'g", "ü", "deleted")
    table = delta_table(tmp_path / "ä 'b" / "c:d", *((n, "INT") for n in names), key=names[:3])
    write = sink(spark, table)
    write(arrow(table, [("+I", (1, 2, 3, 4, 5)), ("+I", (6, 7, 8, 9, 10))], changelog=False), 0)
    write(arrow(table, [("+I", (1, 2, 3, 0, 0))], changelog=False), 1)
    assert delta_rows(tmp_path / "ä 'b" / "c:d") == [(1, 2, 3, 0, 0), (6, 7, 8, 9, 10)]


@pytest.mark.parametrize(
    ("made", "columns", "more", "said"),
    [
        ({"v": pa.int32()}, [("v", "BIGINT")], {}, "column 'v' is BIGINT here, but \"integer\" in the Delta table"),
        ({"v": pa.int32()}, [("w", "INT")], {}, "has no column 'w'"),
        ({"v": pa.list_(pa.int32())}, [("v", "ARRAY<BIGINT>")], {}, "column 'v' is ARRAY<BIGINT> here, but"),
        ({"v": pa.int32(), "w": pa.field("w", pa.int32(), nullable=False)}, [("v", "INT")], {}, "'w' of the Delta"),
        ({"v": pa.int32(), "p": pa.int32()}, [("v", "INT"), ("p", "INT")], {"partitioned_by": "p"}, "by nothing"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, made: dict[str, Any], columns: Any, more: dict[str, str], said: str
) -> None:
    fields = [kind if isinstance(kind, pa.Field) else pa.field(name, kind) for name, kind in made.items()]
    DeltaTable.create(tmp_path / "t", pa.schema(fields))
    with pytest.raises(RunError) as caught:
        sink(spark, delta_table(tmp_path / "t", *columns, **more))
    assert said in str(caught.value)
    assert "tables.r" in str(caught.value)
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize("type_", ["TIMESTAMP(3)", "ROW<t TIMESTAMP(3)>", "INT"])
def test_what_readers_and_writers_must_know_is_listed(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    """Of a table with features, Spark's own reader wants NOT NULL among them."""
    table = delta_table(tmp_path / "t", ("id", "INT NOT NULL"), ("v", type_))
    sink(spark, table)(arrow(table, [("+I", (1, None))], changelog=False), 0)
    (protocol,) = (each["protocol"] for each in actions(tmp_path / "t") if "protocol" in each)
    if type_ == "INT":
        assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    else:
        assert {"invariants", "timestampNtz"} <= set(protocol["writerFeatures"])
        assert protocol["readerFeatures"] == ["timestampNtz"]


def test_a_version_that_is_there_is_not_written_to(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("v", "INT"), versionAsOf="1")
    with pytest.raises(RunError, match="is one version of a table, which nobody writes to"):
        sink(spark, table)
    with pytest.raises(RunError, match="is one version of a table, which nobody writes to"):
        written(spark, table, [(1,)])


def test_what_only_other_writers_keep_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = DeltaTable.create(tmp_path / "t", pa.schema([("v", pa.int32())]))
    made.alter.add_constraint({"small": "v < 10"})
    with pytest.raises(RunError, match=r"has delta\.constraints.small, which this sink does not keep"):
        sink(spark, delta_table(tmp_path / "t", ("v", "INT")))


def test_a_directory_of_other_files_does_not_become_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "letter.txt").write_text("Dear all")
    with pytest.raises(RunError, match="has files, but no log of a Delta table"):
        sink(spark, delta_table(tmp_path / "t", ("v", "INT")))
    with pytest.raises(RunError, match=r"letter\.txt is a file"):
        sink(spark, delta_table(tmp_path / "t" / "letter.txt", ("v", "INT")))


@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("key", [(), ("v",)])
def test_null_where_there_must_be_a_value_is_refused(
    spark: SparkSession, tmp_path: Path, on_driver: bool, key: tuple[str, ...]
) -> None:
    table = delta_table(tmp_path / "t", ("v", "INT NOT NULL"), ("w", "INT"), key=key)
    write = sink(spark, table, on_driver=on_driver)
    said = "column 'v' is NOT NULL, and a row has NULL in it"
    with pytest.raises(Exception, match=said):
        write(arrow(table, [("+I", (None, 1))], changelog=False), 0)
    write(arrow(table, [("+I", (1, 1))], changelog=False), 0)
    with pytest.raises(Exception, match=said):
        write(arrow(table, [("+I", (None, 1))], changelog=False), 1)
    assert delta_rows(tmp_path / "t") == [(1, 1)]


def test_an_empty_text_is_no_partition(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("v", "INT"), ("p", "STRING"), partitioned_by="p")
    with pytest.raises(RunError, match="an empty text in column 'p' of the partitions, which readers take for NULL"):
        sink(spark, table)(arrow(table, [("+I", (1, ""))], changelog=False), 0)
