"""The engine of stateful operators, driven by an operator of the tests' own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField, StructType

import tests.runtime.engine.counting as counting_module
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.engine.buckets import bucket_ids, murmur3
from hintplan.runtime.engine.pack import PACKED_DDL, TICK, Packing, hashed
from hintplan.runtime.engine.rows import ArrowRows, PackedFor
from hintplan.runtime.engine.shared import shared_input, shared_rows
from hintplan.runtime.engine.stateful import apply_operator
from hintplan.runtime.operator import InputSpec, StatefulOperator
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.storage.place import Place, Scale
from hintplan.runtime.types import to_arrow, to_spark
from tests.runtime.engine.counting import counting

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

# Workers know hintplan, but not the folder of the tests.
cloudpickle.register_pickle_by_value(counting_module)

PARTITIONS = 2
DEADLINE_SECONDS = 90
ROWS = pa.schema([("id", pa.int64()), ("k", pa.int64())])


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    return own


def add_file(spark: SparkSession, directory: Path, first: int, last: int) -> None:
    """One more file with the ids from ``first`` to ``last``; ``k`` is the id modulo 7."""
    rows = spark.range(first, last + 1, numPartitions=1).selectExpr("id", "id % 7 as k")
    rows.write.mode("append").parquet(str(directory / "in"))


def read_files(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.readStream.schema("id bigint, k bigint").option("maxFilesPerTrigger", 1).parquet(str(directory / "in"))


def place_in(directory: Path, name: str) -> Place:
    """Where the operator ``name`` keeps its state, for a run that continues after the last committed batch."""
    commits = directory / "checkpoint" / "commits"
    committed = [int(path.name) for path in commits.iterdir() if path.name.isdecimal()] if commits.is_dir() else []
    first = max(committed, default=-1) + 1
    root = str(directory / "checkpoint" / "state" / name)
    return Place(root=root, operator=name, run=first + 1, scales=(Scale(PARTITIONS),), begun=first > 0)


def applied(
    name: str, operator: StatefulOperator, inputs: Sequence[DataFrame | ArrowRows], directory: Path
) -> ArrowRows:
    return apply_operator(operator, inputs, place_in(directory, name))


def start(frame: DataFrame, directory: Path, **trigger: object) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("path", str(directory / "out"))
    return writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(**trigger).start()


def run_once(frame: DataFrame, directory: Path) -> StreamingQuery:
    query = start(frame, directory, availableNow=True)
    assert query.awaitTermination(DEADLINE_SECONDS)
    return query


def test_bucket_hashes_are_those_of_spark(spark: SparkSession) -> None:
    values = [*range(200), 2**20, 2**31 - 1]
    frame = spark.createDataFrame([(value,) for value in values], "v int")
    assert [row[0] for row in frame.select(F.hash("v")).collect()] == [murmur3(value) for value in values]


@pytest.mark.parametrize("partitions", [1, 2, 7, 200])
def test_each_bucket_has_the_partition_of_its_index(partitions: int) -> None:
    assert [murmur3(bucket) % partitions for bucket in bucket_ids(partitions)] == list(range(partitions))


def test_grouping_by_bucket_puts_one_bucket_in_each_partition(session: SparkSession) -> None:
    buckets = bucket_ids(PARTITIONS)
    frame = session.createDataFrame([(bucket,) for bucket in buckets], "bucket int")
    placed = frame.repartition(PARTITIONS, "bucket").select(F.spark_partition_id(), "bucket").collect()
    assert sorted(tuple(row) for row in placed) == list(enumerate(buckets))


TYPED_VALUES: dict[str, object] = {
    "BOOLEAN": True,
    "TINYINT": -128,
    "SMALLINT": 32767,
    "INT": -(2**31),
    "BIGINT": 2**63 - 1,
    "FLOAT": 0.5,
    "DOUBLE": -1e308,
    "DECIMAL(38, 10)": Decimal("-1234567890123456789012345678.0123456789"),
    "DATE": dt.date(1582, 10, 15),
    "STRING": "grüße 😀\x00'\"",
    "BYTES": b"\x00\xff",
    "TIMESTAMP(6)": dt.datetime(2024, 3, 31, 2, 30, 0, 123456),
    "TIMESTAMP_LTZ(6)": dt.datetime(2024, 3, 31, 1, 30, 0, 654321, tzinfo=dt.UTC),
    "ARRAY<INT>": [1, None, 3],
    "MAP<STRING, DOUBLE>": {"a": 1.5, "b": None},
    "ROW<a INT, b ARRAY<TIMESTAMP_LTZ(3)>>": {"a": None, "b": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]},
}


MORE_VALUES: dict[str, object] = {
    "BOOLEAN": False,
    "TINYINT": 127,
    "SMALLINT": -1,
    "INT": 0,
    "BIGINT": -(2**63),
    "FLOAT": -0.0,
    "DOUBLE": float("nan"),
    "DECIMAL": Decimal("128.0000000000"),
    "DATE": dt.date(1, 1, 1),
    "STRING": "",
    "BYTES": bytes(range(100)),
    "TIMESTAMP": dt.datetime(1900, 1, 1),
    "TIMESTAMP_LTZ": dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_values_of_every_type_come_through_as_they_were(session: SparkSession, tmp_path: Path, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    names = {f"c{index}": text for index, text in enumerate(TYPED_VALUES)}
    schema = StructType([StructField(name, to_spark(text)) for name, text in names.items()])
    arrow = pa.schema([(name, to_arrow(text)) for name, text in names.items()])
    values = {name: [TYPED_VALUES[text], None] for name, text in names.items()}
    original = pa.table(values, schema=arrow)
    (tmp_path / "in").mkdir()
    pq.write_table(original, tmp_path / "in" / "rows.parquet")
    operator = counting(arrow, ("c4",))
    frame = applied(
        "echo", operator, [session.readStream.schema(schema).parquet(str(tmp_path / "in"))], tmp_path
    ).in_spark("sink")
    assert frame.select(*names).schema == schema
    run_once(frame, tmp_path)
    returned = session.read.schema(frame.schema).parquet(str(tmp_path / "out")).orderBy(F.col("c0").desc())
    assert returned.select(*names).toArrow().cast(arrow).to_pylist() == original.to_pylist()
    assert {parse_type(text).root for text in TYPED_VALUES} >= {"ROW", "MAP", "ARRAY", "DECIMAL"}


def test_rows_keep_their_order_within_a_partition(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 9_999)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    run_once(
        applied("count", counting(ROWS, ("k",)), [read_files(session, tmp_path)], tmp_path).in_spark("sink"), tmp_path
    )
    files = sorted((tmp_path / "out").glob("part-*.parquet"))  # Spark writes a file for each partition
    partitions = [pq.read_table(file)["id"].to_pylist() for file in files]
    assert len(partitions) == PARTITIONS
    assert sorted(partitions[0] + partitions[1]) == list(range(10_000))
    assert all(ids == sorted(ids) for ids in partitions)


def test_rows_of_one_key_meet_in_one_partition_from_both_inputs(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path / "l", 0, 99)
    add_file(session, tmp_path / "r", 100, 199)
    sides = [read_files(session, tmp_path / side) for side in ("l", "r")]
    frame = applied("count", counting(ROWS, ("k",), sides=2), sides, tmp_path).in_spark("sink")
    run_once(frame.withColumn("p", F.spark_partition_id()), tmp_path)
    rows = session.read.parquet(str(tmp_path / "out")).collect()
    assert {(row.side, row.id) for row in rows} == {(int(i >= 100), i) for i in range(200)}
    assert all(len({row.p for row in rows if row.k == k}) == 1 for k in range(7))


def test_no_key_routes_all_rows_to_one_partition(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 99)
    frame = applied("count", counting(ROWS, ()), [read_files(session, tmp_path)], tmp_path).in_spark("sink")
    run_once(frame, tmp_path)
    assert {row.total for row in session.read.parquet(str(tmp_path / "out")).collect()} == {100}


def test_state_is_carried_from_batch_to_batch_and_over_a_restart(session: SparkSession, tmp_path: Path) -> None:
    operator = counting(ROWS, ())
    add_file(session, tmp_path, 0, 9)
    add_file(session, tmp_path, 10, 29)
    run_once(applied("count", operator, [read_files(session, tmp_path)], tmp_path).in_spark("sink"), tmp_path)
    add_file(session, tmp_path, 30, 39)
    query = run_once(applied("count", operator, [read_files(session, tmp_path)], tmp_path).in_spark("sink"), tmp_path)
    totals = {row.id: row.total for row in session.read.parquet(str(tmp_path / "out")).collect()}
    assert {totals[i] for i in range(10)} <= {10, 30}
    assert [totals[i] for i in (30, 39)] == [40, 40]
    assert query.lastProgress.observedMetrics["count"].state_rows == 40


def test_metrics_add_up_over_partitions_and_batches(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 99)
    add_file(session, tmp_path, 100, 149)
    query = run_once(
        applied("count", counting(ROWS, ("k",)), [read_files(session, tmp_path)], tmp_path).in_spark("sink"), tmp_path
    )
    found = [batch.observedMetrics["count"] for batch in query.recentProgress]
    assert sorted(metrics.rows_in for metrics in found) == [50, 100]
    assert [metrics.rows_out for metrics in found] == [metrics.rows_in for metrics in found]
    assert [metrics.reports for metrics in found] == [PARTITIONS, PARTITIONS]
    assert found[1].state_rows == 150
    assert found[0].state_rows + found[1].state_rows_delta == found[1].state_rows
    assert found[0].state_bytes + found[1].state_bytes_delta == found[1].state_bytes > 0


def test_operators_chain_within_one_batch(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 99)
    first = applied("first", counting(ROWS, ("k",)), [read_files(session, tmp_path)], tmp_path).in_spark("sink")
    second = applied("second", counting(ROWS, ()), [first.select("id", "k")], tmp_path).in_spark("sink")
    query = run_once(second, tmp_path)
    assert [row.total for row in session.read.parquet(str(tmp_path / "out")).collect()] == [100] * 100
    assert query.lastProgress.observedMetrics["second"].reports == PARTITIONS


@pytest.mark.parametrize("packed", [False, True])
def test_what_several_operators_read_is_computed_once_a_batch(
    session: SparkSession, tmp_path: Path, packed: bool
) -> None:
    add_file(session, tmp_path, 0, 99)
    add_file(session, tmp_path, 100, 149)
    log = tmp_path / "calls"
    first = applied("first", counting(ROWS, ("k",), log=str(log)), [read_files(session, tmp_path)], tmp_path)
    third_left = PackedFor(operator="third", side=0)
    read = (
        shared_input(first, first.schema, PARTITIONS, "first", reader=third_left, route=("k",))
        if packed
        else shared_rows(first, first.schema, PARTITIONS, "first")
    )
    second = applied("second", counting(ROWS, ("id",)), [read], tmp_path)
    both = counting(ROWS, ("k",), sides=2)
    third = applied("third", both, [read, second], tmp_path).in_spark("sink").select("id", "side")
    evens = read.in_spark("evens").where("id % 2 = 0").selectExpr("id", "2 as side")
    functions = third._jdf.queryExecution().analyzed().toString().count("MapInArrow for third")
    assert functions == (1 if packed else 2), "rows that are packed for it go to it"
    query = run_once(third.unionAll(evens), tmp_path)
    assert log.stat().st_size == PARTITIONS * 2, "once in each partition and batch"
    found = [batch.observedMetrics for batch in query.recentProgress]
    assert [metrics["first"].reports for metrics in found] == [PARTITIONS, PARTITIONS]
    assert [metrics["second"].reports for metrics in found] == [PARTITIONS, PARTITIONS]
    assert sorted(metrics["first"].rows_out for metrics in found) == [50, 100]
    rows = [(row.id, row.side) for row in session.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(rows) == sorted([(i, side) for i in range(150) for side in ([0, 1] if i % 2 else [0, 1, 2])])


def test_rows_that_are_shared_keep_their_order(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = pa.table({"id": range(100_000), "k": [0] * 100_000}, schema=ROWS)
    pq.write_table(rows, tmp_path / "in" / "rows.parquet")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    read = shared_rows(read_files(session, tmp_path), ROWS, PARTITIONS, "scan")
    run_once(read.in_spark("sink"), tmp_path)
    (file,) = (tmp_path / "out").glob("part-*.parquet")
    assert pq.read_table(file)["id"].to_pylist() == list(range(100_000))


def test_ticks_call_partitions_without_rows(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 0)
    query = run_once(
        applied("count", counting(ROWS, ("k",)), [read_files(session, tmp_path)], tmp_path).in_spark("sink"), tmp_path
    )
    assert query.lastProgress.observedMetrics["count"].reports == PARTITIONS
    assert query.lastProgress.observedMetrics["count"].rows_in == 1


def test_an_operator_that_fails_fails_the_query_with_its_own_words(session: SparkSession, tmp_path: Path) -> None:
    add_file(session, tmp_path, 0, 0)
    broken = counting_module.CountingOperator(
        inputs=(InputSpec(columns=ROWS, hashes=((),), changelog=False),), output=pa.schema([("missing", pa.int64())])
    )
    frame = applied("broken", broken, [read_files(session, tmp_path)], tmp_path).in_spark("sink")
    query = start(frame, tmp_path, availableNow=True)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(DEADLINE_SECONDS)
    assert root_cause(caught.value).startswith("ValueError: Target schema's field names are not matching")


def test_packing_hashes_keys_as_spark_does(session: SparkSession, tmp_path: Path) -> None:
    names = {f"c{index}": text for index, text in enumerate(TYPED_VALUES) if "<" not in text}
    schema = pa.schema([(name, to_arrow(text)) for name, text in names.items()])
    values = {name: [TYPED_VALUES[text], None, MORE_VALUES[parse_type(text).root]] for name, text in names.items()}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(values, schema=schema), tmp_path / "in" / "rows.parquet")
    rows = session.read.schema(StructType([StructField(n, to_spark(t)) for n, t in names.items()])).parquet(
        str(tmp_path / "in")
    )
    columns = (*((name,) for name in names), tuple(names), ())
    packing = Packing(side=0, schema=schema, route=columns[0], buckets=bucket_ids(1))
    packed = rows.coalesce(1).mapInArrow(packing, PACKED_DDL).collect()
    (blob,) = [row.blob for row in packed if row.side == 0]
    table = hashed(from_blob(blob), columns, 1)
    expected = rows.select(*(F.xxhash64(*map(F.col, each)) for each in columns[:-1])).collect()
    for index in range(len(columns) - 1):
        assert table[f"__hash{index}"].to_pylist() == [row[index] for row in expected], columns[index]
    assert table[f"__hash{len(columns) - 1}"].to_pylist() == [42, 42, 42]
    assert [row.bucket for row in packed if row.side == TICK] == list(bucket_ids(1))
