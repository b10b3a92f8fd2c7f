"""DataFrames as tables, and functions as sinks: what they get, what is refused, and what a restart does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import hintplan
from hintplan.plans.connectors.frame_types import table_columns
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.program_objects import objects_for
from hintplan.runtime.spark.versions import facts
from hintplan.runtime.types import to_spark
from tests.plans.in_process import hintplan as command

BATCH = "SET 'execution.runtime-mode' = 'batch';"
SUMS = "CREATE TABLE sums (id BIGINT, total BIGINT{key}) WITH ('connector' = 'dataframe');"
KEY = ", PRIMARY KEY (id) NOT ENFORCED"
EVENTS = "CREATE TABLE events (id BIGINT, v BIGINT) WITH ('connector' = 'dataframe');"
INSERT = "INSERT INTO sums SELECT id, SUM(v) FROM events GROUP BY id;"

Rows = list[tuple[Any, ...]]


class Received:
    """A sink function that keeps what it gets: the batch, the columns, and the rows in order."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, tuple[str, ...], Rows]] = []

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.batches.append((batch, tuple(rows.columns), [tuple(row) for row in rows.collect()]))


def events(spark: SparkSession, folder: Path, *batches: Rows) -> DataFrame:
    """A stream with a micro-batch for each of ``batches``, which are files to be found in ``folder`` later."""
    folder.mkdir(exist_ok=True)
    for rows in batches:
        lines = (json.dumps({"id": id_, "v": v, "unread": "x"}) for id_, v in rows)
        number = len(list(folder.iterdir()))
        (folder / f"{number}.json").write_text("\n".join(lines))
        os.utime(folder / f"{number}.json", (number, number))  # which Spark reads them in the order of
    schema = "id BIGINT, v BIGINT, unread STRING"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


@pytest.mark.spark
def test_streams_come_in_and_changes_go_out_also_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    sums = SUMS.format(key=KEY) + SUMS.format(key="").replace("sums", "log")
    frame = events(spark, tmp_path / "in", [(1, 2), (2, 1), (1, 4)])
    plan = hintplan.compile_sql(sums + INSERT + INSERT.replace("sums", "log"), tables={"events": frame})
    kept, log = Received(), Received()
    for later in ((), ([(1, 10), (3, 1)],)):
        frame = events(spark, tmp_path / "in", *later)
        sinks = {"sums": kept, "log": log}
        run = hintplan.execute(
            plan, tables={"events": frame}, sinks=sinks, checkpoint=str(tmp_path / "state"), once=True
        )
        assert run.await_termination()
        assert [run.progress[f"sink_{name}"].rows_out for name in sinks] == ([2, 3] if later else [2, 2])
    columns = ("id", "total", "__kind")
    assert [(batch, names, sorted(rows)) for batch, names, rows in kept.batches] == [
        (0, columns, [(1, 6, "+U"), (2, 1, "+U")]),
        (1, columns, [(1, 16, "+U"), (3, 1, "+U")]),
    ]
    assert [(batch, sorted(rows)) for batch, _, rows in log.batches] == [
        (0, [(1, 6, "+I"), (2, 1, "+I")]),
        (1, [(1, 6, "-U"), (1, 16, "+U"), (3, 1, "+I")]),
    ]
    (before, after) = (row[2] for row in log.batches[1][2] if row[0] == 1)
    assert (before, after) == ("-U", "+U")


@pytest.mark.spark
def test_a_batch_that_failed_is_handed_over_again_with_its_number_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = events(spark, tmp_path / "in", [(1, 2)], [(1, 5), (2, 7)])
    plan = hintplan.compile_sql(SUMS.format(key=KEY) + INSERT, tables={"events": frame})
    received = Received()

    def fails_at_1(rows: DataFrame, batch: int) -> None:
        received(rows, batch)
        if batch == 1 and len(received.batches) == 2:
            raise ValueError("no room in the shop")

    given = {"tables": {"events": frame}, "sinks": {"sums": fails_at_1}, "checkpoint": str(tmp_path / "state")}
    with pytest.raises(hintplan.RunError, match=r"the function of table sums failed: ValueError: no room in the shop"):
        hintplan.execute(plan, **given, once=True).await_termination()
    hintplan.execute(plan, **given, once=True).await_termination()
    first, failed, again = received.batches
    assert first == (0, ("id", "total", "__kind"), [(1, 2, "+U")])
    assert failed[0] == again[0] == 1
    assert sorted(failed[2]) == sorted(again[2]) == [(1, 7, "+U"), (2, 7, "+U")]


@pytest.mark.spark
def test_state_is_kept_whatever_a_function_does_with_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes of a micro-batch what it is asked for; a function that asks for nothing must not lose state."""
    frame = events(spark, tmp_path / "in", [(1, 2)], [(1, 5)], [(1, 1)])
    plan = hintplan.compile_sql(SUMS.format(key="") + INSERT, tables={"events": frame})
    received = Received()

    def looks_once(rows: DataFrame, batch: int) -> None:
        if batch == 2:
            received(rows, batch)
            received(rows, batch)

    hintplan.execute(plan, tables={"events": frame}, sinks={"sums": looks_once}, once=True).await_termination()
    rows = [(1, 7, "-U"), (1, 8, "+U")]
    assert received.batches == [(2, ("id", "total", "__kind"), rows)] * 2


@pytest.mark.spark
def test_rows_that_are_only_added_have_no_kind_and_keys_that_go_are_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = events(spark, tmp_path / "in", [(1, 2), (2, 4)], [(2, -4), (3, 1)])
    plan = hintplan.compile_sql(
        SUMS.format(key=KEY) + SUMS.format(key="").replace("sums", "added")
        + "INSERT INTO sums SELECT id, SUM(v) FROM events GROUP BY id HAVING SUM(v) > 0;"
        + "INSERT INTO added SELECT id, v FROM events WHERE v > 1;",
        tables={"events": frame},
    )  # fmt: skip
    kept, added = Received(), Received()
    hintplan.execute(
        plan, tables={"events": frame}, sinks={"sums": kept, "added": added}, once=True
    ).await_termination()
    assert [[(row[0], row[2]) for row in sorted(rows)] for _, _, rows in kept.batches] == [
        [(1, "+U"), (2, "+U")],
        [(2, "-D"), (3, "+U")],
    ]
    assert added.batches == [(0, ("id", "total"), [(1, 2), (2, 4)]), (1, ("id", "total"), [])]


@pytest.mark.spark
def test_a_batch_job_reads_and_writes_as_spark_does(spark: SparkSession) -> None:
    frame = spark.range(100).select((F.col("id") % 7).alias("id"), F.col("id").alias("v"))
    plan = hintplan.compile_sql(BATCH + EVENTS + SUMS.format(key="") + INSERT)
    received = Received()
    run = hintplan.execute(plan, tables={"events": frame}, sinks={"sums": received})
    assert run.await_termination()
    ((batch, columns, rows),) = received.batches
    assert (batch, columns) == (0, ("id", "total"))
    assert sorted(rows) == sorted(map(tuple, frame.groupBy("id").agg(F.sum("v")).collect()))
    assert run.progress["sink_sums"].rows_out == 7


@pytest.mark.spark
def test_a_cached_result_is_that_of_its_dataframe(spark: SparkSession) -> None:
    script = f"{BATCH} {EVENTS} {SUMS.format(key='')} CACHE TABLE x AS SELECT id, v FROM events WHERE v > 0; "
    plan = hintplan.compile_sql(script + INSERT.replace("events", "x"))
    one, other = (spark.createDataFrame([(1, value)], "id BIGINT, v BIGINT") for value in (5, 6))
    received = Received()
    with hintplan.Session(spark) as session:
        hits = []
        for frame in (one, other, one):
            run = session.execute(plan, tables={"events": frame}, sinks={"sums": received})
            run.await_termination()
            (cached,) = run.progress["sink_sums"].cached.values()
            hits.append(cached.hit)
    assert [rows for _, _, rows in received.batches] == [[(1, 5)], [(1, 6)], [(1, 5)]]
    assert hits == [False, False, True]


@pytest.mark.spark
def test_two_tables_of_the_same_columns_are_two(spark: SparkSession) -> None:
    script = f"{BATCH} {EVENTS} {EVENTS.replace('events', 'others')} {SUMS.format(key='')}"
    view = "CACHE TABLE {0}_kept AS SELECT id, v FROM {0} WHERE v > 0;"
    both = "INSERT INTO sums SELECT a.id, a.v + b.v FROM events_kept AS a JOIN others_kept AS b ON a.id = b.id;"
    plan = hintplan.compile_sql(script + view.format("events") + view.format("others") + both)
    frames = {
        name: spark.createDataFrame([(1, v)], "id BIGINT, v BIGINT") for name, v in (("events", 1), ("others", 20))
    }
    received = Received()
    hintplan.execute(plan, tables=frames, sinks={"sums": received}).await_termination()
    assert received.batches[0][2] == [(1, 21)]


TYPES = T.StructType([
    T.StructField("flag", T.BooleanType()), T.StructField("a", T.ByteType()), T.StructField("b", T.ShortType()),
    T.StructField("c", T.IntegerType()), T.StructField("d", T.LongType(), nullable=False),
    T.StructField("e", T.FloatType()), T.StructField("f", T.DoubleType()), T.StructField("g", T.DecimalType(12, 3)),
    T.StructField("day", T.DateType()), T.StructField("text", T.StringType()), T.StructField("raw", T.BinaryType()),
    T.StructField("local", T.TimestampNTZType()), T.StructField("instant", T.TimestampType()),
    T.StructField("list", T.ArrayType(T.IntegerType())),
    T.StructField("odd name", T.MapType(T.StringType(), T.DateType())),
    T.StructField("row", T.StructType([
        T.StructField("x", T.LongType()), T.StructField("y z", T.ArrayType(T.StringType())),
    ])),
])  # fmt: skip


def test_every_type_of_a_schema_becomes_the_type_that_is_read_as_it() -> None:
    columns = table_columns(TYPES.jsonValue())
    assert [column.name for column in columns] == TYPES.names
    for column, field in zip(columns, TYPES.fields, strict=True):
        assert parse_type(column.type).nullable
        assert to_spark(column.type).simpleString() == field.dataType.simpleString()


@pytest.mark.spark
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (d) NOT ENFORCED"])
def test_values_of_every_type_go_through(spark: SparkSession, key: str) -> None:
    import datetime as dt
    from decimal import Decimal

    at = dt.datetime(2024, 2, 29, 12, 0, 0, 123456)
    full = (True, 1, 2, 3, 4, 0.5, 0.25, Decimal("1.125"), at.date(), "é", bytearray(b"\x00"), at, at, [1, None],
            {"k": at.date()}, (7, ["p", None]))  # fmt: skip
    empty = tuple(5 if name == "d" else None for name in TYPES.names)
    frame = spark.createDataFrame([full, empty], TYPES)
    columns = ", ".join(f"`{c.name}` {c.type}" for c in table_columns(TYPES.jsonValue()))
    names = ", ".join(f"`{name}`" for name in TYPES.names)
    plan = hintplan.compile_sql(
        f"{BATCH} CREATE TABLE r ({columns}{key}) WITH ('connector' = 'dataframe');INSERT INTO r SELECT {names} FROM t",
        tables={"t": frame},
    )
    received: list[Any] = []
    hintplan.execute(
        plan, tables={"t": frame}, sinks={"r": lambda rows, _: received.append(rows.orderBy("d").collect())}
    ).await_termination()
    wanted = [tuple(row) for row in frame.orderBy("d").collect()]
    assert [tuple(row)[: len(TYPES.names)] for row in received[0]] == wanted


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (T.StructType([T.StructField("a", T.NullType())]), "column 'a': a plan has no type for Spark's void"),
        (T.StructType([T.StructField("a", T.DayTimeIntervalType())]), "no type for Spark's interval day to second"),
        (T.StructType([T.StructField("a", T.LongType()), T.StructField("A", T.LongType())]), "'a' and 'A'"),
        (T.StructType([]), "it has no columns"),
        ([1, 2], "expected a DataFrame, found list"),
    ],
)
def test_a_schema_that_no_table_has_is_refused_when_sql_is_compiled(kind: Any, message: str) -> None:
    with pytest.raises(hintplan.SqlError, match="the DataFrame of table 'events' cannot be a table: ") as raised:
        hintplan.compile_sql(SUMS.format(key="") + INSERT, tables={"events": kind})
    assert message in str(raised.value)


def test_what_the_script_declares_counts_and_a_dataframe_that_nothing_reads_is_refused() -> None:
    schema = T.StructType([T.StructField("id", T.IntegerType()), T.StructField("v", T.LongType())])
    script = SUMS.format(key="") + INSERT
    assert hintplan.compile_sql(script, tables={"events": schema}).tables["events"].columns[0].type == "INT"
    declared = hintplan.compile_sql(EVENTS + script, tables={"events": schema})
    assert declared == hintplan.compile_sql(EVENTS + script)
    with pytest.raises(hintplan.SqlError, match=r"no INSERT reads a table 'evnts'.*\n.*did you mean 'events'"):
        hintplan.compile_sql(script, tables={"events": schema, "evnts": schema})


def test_commands_refuse_what_only_a_program_can_hand_over(tmp_path: Path) -> None:
    hintplan.dump(hintplan.compile_sql(EVENTS + SUMS.format(key="") + INSERT), tmp_path / "p.json")
    for words in (["run", "p.json", "--once"], ["bundle", "p.json"]):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 1
        assert "tables.events: table events is a DataFrame of a Python program, and this run has none" in done.stderr
        assert 'hintplan.execute(plan, tables={"events": df})' in done.stderr
        assert "a function of a Python program takes the rows of table sums" in done.stderr
    assert command("validate", "p.json", folder=tmp_path).returncode == 0
    assert "dataframe" in command("explain", "p.json", folder=tmp_path).stdout


STREAMED = EVENTS + SUMS.format(key="") + INSERT
PRINTED = EVENTS.replace("'dataframe'", "'filesystem', 'path' = 'p', 'format' = 'json'")
Frame = Callable[[SparkSession], Any]


def stream(spark: SparkSession, columns: str = "id BIGINT, v BIGINT") -> DataFrame:
    return spark.readStream.schema(columns).json("/nowhere/to/be/read") if columns else spark.range(1)


@pytest.mark.spark
def test_what_does_not_fit_is_refused_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    good = spark.readStream.schema("id BIGINT, v BIGINT").json(str(tmp_path / "in"))
    typed = spark.readStream.schema("id STRING, V BIGINT").json(str(tmp_path / "in"))
    sink = {"sums": lambda rows, batch: None}
    cases: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        (STREAMED, {}, sink, "no DataFrame was given for table events\n  hint: run the plan from Python"),
        (STREAMED, {"others": good}, sink, "no DataFrame was given for table events\n  hint: tables has: others"),
        (STREAMED, {"events": good}, {}, "no function was given for table sums"),
        (STREAMED, {"Events": good}, sink, "tables has 'Events', the plan reads 'events'"),
        (STREAMED, {"events": good}, {"smus": print}, "sinks has 'smus', the plan writes 'sums'"),
        (PRINTED + SUMS.format(key="") + INSERT, {"events": good}, sink, "has the connector 'filesystem'"),
        (STREAMED, {"events": spark.range(1)}, sink, "was given a batch DataFrame, and a streaming plan"),
        (BATCH + STREAMED, {"events": good}, sink, "was given a streaming DataFrame, and a batch plan"),
        (STREAMED, {"events": [(1, 2)]}, sink, "table events was given a list, expected a DataFrame of Spark"),
        (STREAMED, {"events": good}, {"sums": 5}, "the sink of table sums is a int, expected a function"),
        (STREAMED, {"events": good}, {"sums": lambda rows: None}, "cannot be called with a DataFrame and a number"),
        (STREAMED, {"events": typed}, sink, "column 'id' of table events is BIGINT, which is Spark's bigint, and the "
                                            "DataFrame has string"),
        (STREAMED, {"events": typed}, sink, "table events has no column 'v'\n  hint: did you mean 'V'"),
        (STREAMED, {"events": good.select("id", "v", good.v.alias("v"))}, sink, "has two columns 'v'"),
        (STREAMED, {"events": good.union(good)}, sink, "reads 2 streams, and a table is one"),
        (STREAMED, {"events": good.dropDuplicates(["id"])}, sink, "keeps state of Spark's own, by Deduplicate"),
    ]  # fmt: skip
    for script, tables, sinks, message in cases:
        plan = hintplan.compile_sql(script, name="sums")
        with pytest.raises(hintplan.RunError) as raised:
            hintplan.execute(plan, spark, tables=tables, sinks=sinks, checkpoint=str(tmp_path / "state"))
        assert message in str(raised.value)
        assert all(found.path for found in raised.value.diagnostics)
    assert not (tmp_path / "state").exists()


def running_session() -> Any:
    here = SimpleNamespace(isStopped=lambda: False)
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: here)))


def test_more_than_the_plan_reads_is_told_and_left_alone() -> None:
    session = running_session()
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("v", T.LongType())])
    frame: Any = SimpleNamespace(isStreaming=False, sparkSession=session, schema=schema)
    sink: Any = {"sums": print, "log": print}
    plan = hintplan.compile_sql(BATCH + STREAMED, name="sums")
    given = objects_for(plan, {"events": frame, "customers": frame, "orders": frame}, sink, session)
    assert (list(given.tables), list(given.sinks)) == (["events"], ["sums"])
    assert given.notes == (
        "plan sums reads nothing of what tables has for customers, orders",
        "plan sums writes nothing of what sinks has for log",
    )


def test_of_a_misspelt_name_one_thing_is_said() -> None:
    plan = hintplan.compile_sql(BATCH + STREAMED)
    session = running_session()
    frame: Any = SimpleNamespace(isStreaming=False, sparkSession=session, schema=T.StructType())
    with pytest.raises(hintplan.RunError) as raised:
        objects_for(plan, {"Events": frame}, {"sums": lambda rows, batch: None}, session)
    assert [str(found) for found in raised.value.diagnostics] == [
        "tables.events: tables has 'Events', the plan reads 'events'\n  hint: call it 'events' in tables"
    ]


def test_a_session_that_was_stopped_is_told_of_it_and_of_its_dataframes() -> None:
    plan = hintplan.compile_sql(BATCH + STREAMED)
    stopped: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(
        hintplan.RunError, match=r"the Spark session has been stopped\n  hint: build a new one, and create"
    ):
        hintplan.execute(plan, stopped)
    frame: Any = SimpleNamespace(isStreaming=False, sparkSession=stopped, schema=T.StructType())
    for session in (None, running_session()):
        with pytest.raises(hintplan.RunError, match="the Spark session of the DataFrame of table events has been stop"):
            objects_for(plan, {"events": frame}, {"sums": lambda rows, batch: None}, session)


def test_of_a_server_only_dataframes_of_the_same_session_are_taken() -> None:
    plan = hintplan.compile_sql(STREAMED)
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("v", T.LongType())])
    here, there = (running_session() for _ in range(2))
    frame: Any = SimpleNamespace(isStreaming=True, sparkSession=there, schema=schema)
    with pytest.raises(hintplan.RunError, match="is of another Spark session than the run"):
        objects_for(plan, {"events": frame}, {"sums": lambda rows, batch: None}, here)  # type: ignore[arg-type]


@pytest.mark.spark
def test_a_session_without_restricted_mode_needs_consent(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not facts(spark.version).restricted_mode:
        pytest.skip("this Spark has no restricted mode")
    monkeypatch.setattr("hintplan.runtime.spark.session._FIXED", {"spark.sql.unheardOf": "true"})
    plan = hintplan.compile_sql("CREATE TABLE r (a INT) WITH ('connector' = 'blackhole'); INSERT INTO r VALUES (1)")
    batch = hintplan.compile_sql(
        f"{BATCH} CREATE TABLE r (a INT) WITH ('connector' = 'blackhole'); INSERT INTO r VALUES (1)"
    )
    for one in (plan, batch):
        with pytest.raises(hintplan.RunError, match=r"started without spark\.sql\.unheardOf=true") as raised:
            hintplan.execute(one, spark)
        assert "Policy(unrestricted_spark=True)" in str(raised.value)
        consenting = hintplan.Policy(unrestricted_spark=True)
        run = hintplan.execute(one, spark, policy=consenting, **({} if one is batch else {"once": True}))
        run.await_termination()
        assert any("no restricted mode" in note for note in run.notes)


@pytest.mark.spark
def test_one_stream_may_be_two_tables_and_be_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    frame = events(spark, tmp_path / "in", [(1, 2)], [(1, 5), (2, 7)])
    plan = hintplan.compile_sql(
        "CREATE TABLE pairs (id BIGINT, a BIGINT, b BIGINT, c BIGINT) WITH ('connector' = 'dataframe');"
        "INSERT INTO pairs SELECT x.id, x.v, y.v, z.v FROM one AS x JOIN other AS y ON x.id = y.id AND x.v <= y.v "
        "JOIN one AS z ON x.id = z.id AND y.v <= z.v",
        tables={"one": frame, "other": frame},
    )
    received = Received()
    given = {"tables": {"one": frame, "other": frame}, "sinks": {"pairs": received}}
    for _ in range(2):
        hintplan.execute(plan, **given, checkpoint=str(tmp_path / "state"), once=True).await_termination()
    found = sorted(row[:4] for _, _, rows in received.batches for row in rows)
    values = {1: [2, 5], 2: [7]}
    assert found == sorted(
        (key, a, b, c) for key, own in values.items() for a in own for b in own for c in own if a <= b <= c
    )
