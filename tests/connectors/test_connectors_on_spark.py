"""Connectors in real streaming queries that take what is there and stop."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import read_stream, refuse_unbounded, stream_writer
from hintplan.runtime.operator import KIND
from hintplan.runtime.spark.session import prepare_session

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

ORDERS = ("id BIGINT", "country STRING", "total DOUBLE", "ts TIMESTAMP(3)")


def table(options: dict[str, str], *columns: str, key: tuple[str, ...] = ()) -> Table:
    declared = tuple(TableColumn(name=c.split(" ", 1)[0], type=c.split(" ", 1)[1]) for c in columns)
    return Table(columns=declared, options=options, primary_key=key)


def files(path: Path, format_: str = "json", **more: str) -> dict[str, str]:
    options = {name.replace("__", ".").replace("_", "-"): value for name, value in more.items()}
    return {"connector": "filesystem", "path": str(path), "format": format_, **options}


def run(df, target: Table, checkpoint: Path, *, changelog: bool = False):
    """Writes all that is there; returns the query after it has ended."""
    out = stream_writer(df, "t", target, changelog=changelog, checkpoint=str(checkpoint))
    query = out.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def collected(spark, df, tmp_path: Path) -> list[tuple]:
    """The rows of a stream, by way of a file that Spark itself reads back."""
    out = df.writeStream.format("parquet").option("path", str(tmp_path / "collected"))
    out.option("checkpointLocation", str(tmp_path / "collected-cp")).trigger(
        availableNow=True
    ).start().awaitTermination()
    return [tuple(row) for row in spark.read.schema(df.schema).parquet(str(tmp_path / "collected")).collect()]


def stored(path: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def write_lines(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


def test_a_changelog_is_read_with_its_row_kinds(spark, tmp_path) -> None:
    lines = [json.dumps({"id": n, "op": op}) for n, op in enumerate(("+I", "-U", "+U", "-D"))]
    write_lines(tmp_path / "in" / "1.json", *lines)
    source = table(files(tmp_path / "in", source__changelog="true"), "id BIGINT", "country STRING")
    frame = read_stream(spark, "t", source, ("id",))
    assert frame.columns == ["id", KIND]
    assert sorted(collected(spark, frame, tmp_path)) == [(0, 0), (1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(("op", "said"), [('"+X"', r"the op \+X;"), ("null", "the op NULL;")])
def test_a_row_of_a_changelog_without_a_kind_fails_the_run(spark, tmp_path, op: str, said: str) -> None:
    write_lines(tmp_path / "in" / "1.json", f'{{"id": 1, "op": {op}}}')
    source = table(files(tmp_path / "in", source__changelog="true"), "id BIGINT")
    with pytest.raises(StreamingQueryException, match=said):
        collected(spark, read_stream(spark, "t", source, ("id",)), tmp_path)


def test_json_files_are_read_as_the_columns_that_are_asked_for(spark, tmp_path):
    write_lines(
        tmp_path / "in" / "1.json",
        '{"id": 1, "country": "DE", "total": 5, "ts": "2020-01-01 12:00:00.500", "more": [1]}',
        '{"id": 2, "ts": "2020-01-01T12:00:00"}',
    )
    df = read_stream(spark, "orders", table(files(tmp_path / "in"), *ORDERS), ("ts", "total"))
    assert df.dtypes == [("ts", "timestamp_ntz"), ("total", "double")]
    rows = [(str(ts), total) for ts, total in collected(spark, df, tmp_path)]
    assert sorted(rows, key=str) == [("2020-01-01 12:00:00", None), ("2020-01-01 12:00:00.500000", 5.0)]


def test_csv_columns_are_read_by_position_whichever_are_asked_for(spark, tmp_path):
    write_lines(tmp_path / "in" / "1.csv", '1|"a|""b"""|2.5|', "2|-||2020-01-01 00:00:01")
    options = files(tmp_path / "in", "csv", csv__field_delimiter="|", csv__null_literal="-")
    df = read_stream(spark, "orders", table(options, *ORDERS), ("country", "id"))
    assert sorted(collected(spark, df, tmp_path), key=str) == [('a|"b"', 1), (None, 2)]


def test_a_row_that_does_not_fit_fails_the_run(spark, tmp_path):
    write_lines(tmp_path / "in" / "1.json", '{"id": "one"}')
    df = read_stream(spark, "orders", table(files(tmp_path / "in"), *ORDERS), ("id",))
    with pytest.raises(StreamingQueryException, match=r"FAILED_READ_FILE|MALFORMED_RECORD_IN_PARSING"):
        collected(spark, df, tmp_path)


@pytest.mark.parametrize(
    ("format_", "lines"),
    [
        ("json", ('{"id": 1, "country": "DE", "total": "x"}', "{no json", '{"id": 2, "country": null}')),
        ("csv", ("1,DE,x,", "2,,,")),
    ],
)
def test_ignoring_parse_errors_keeps_what_can_be_read(spark, tmp_path, format_, lines):
    write_lines(tmp_path / "in" / f"1.{format_}", *lines)
    options = files(tmp_path / "in", format_) | {f"{format_}.ignore-parse-errors": "true"}
    df = read_stream(spark, "orders", table(options, *ORDERS), ("id", "country", "total"))
    assert sorted(collected(spark, df, tmp_path)) == [(1, "DE", None), (2, None, None)]


def test_a_path_that_does_not_exist_is_refused_before_the_query_starts(spark, tmp_path):
    with pytest.raises(RunError, match=r"tables\.orders\.options\.path: table orders cannot be read: there is nothing"):
        read_stream(spark, "orders", table(files(tmp_path / "none"), *ORDERS), ("id",))


def test_files_make_one_micro_batch_each_in_order_of_modification(spark, tmp_path):
    for age, name in enumerate(["c", "a", "b"]):
        path = tmp_path / "in" / f"{name}.json"
        write_lines(path, json.dumps({"country": name}))
        # Ten days apart: the file source must not think the oldest too old to read.
        os.utime(path, (1_600_000_000 + age * 864_000,) * 2)
    options = files(tmp_path / "in") | {"source.max-files-per-trigger": "1"}
    df = read_stream(spark, "orders", table(options, *ORDERS), ("country",))
    target = table(
        {"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "log"}, "country STRING"
    )
    run(df, target, tmp_path / "cp")
    assert stored(tmp_path / "out.db", "SELECT country FROM log ORDER BY rowid") == [("c",), ("a",), ("b",)]
    assert stored(tmp_path / "out.db", "SELECT batch_id FROM hintplan_commits") == [(2,)]


def test_a_file_that_arrives_late_with_an_old_time_stamp_is_read(spark, tmp_path):
    options = files(tmp_path / "in") | {"source.max-files-per-trigger": "1"}
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "l"}, "country STRING")
    for name, time in (("new1", 1_700_000_000), ("new2", 1_700_000_001), ("old", 1_500_000_000)):
        write_lines(tmp_path / "in" / f"{name}.json", json.dumps({"country": name}))
        os.utime(tmp_path / "in" / f"{name}.json", (time, time))
        run(read_stream(spark, "orders", table(options, *ORDERS), ("country",)), target, tmp_path / "cp")
    assert stored(tmp_path / "out.db", "SELECT country FROM l ORDER BY rowid") == [("new1",), ("new2",), ("old",)]


def changes(spark, tmp_path: Path):
    """A stream of a changelog: +I(1, DE), -U(1, DE), +U(1, FR), -D(2, null)."""
    rows = [(1, "DE", 0), (1, "DE", 1), (1, "FR", 2), (2, None, 3)]
    spark.createDataFrame(rows, f"id BIGINT, country STRING, {KIND} TINYINT").coalesce(1).write.parquet(
        str(tmp_path / "changes")
    )
    return spark.readStream.schema(f"id BIGINT, country STRING, {KIND} TINYINT").parquet(str(tmp_path / "changes"))


def test_a_changelog_of_files_has_the_kind_in_a_last_column(spark, tmp_path):
    options = files(tmp_path / "out", "csv") | {"sink.changelog": "true", "csv.null-literal": "NULL"}
    run(changes(spark, tmp_path), table(options, "id BIGINT", "country STRING"), tmp_path / "cp", changelog=True)
    written = [line for path in sorted((tmp_path / "out").glob("*.csv")) for line in path.read_text().splitlines()]
    assert written == ["1,DE,+I", "1,DE,-U", "1,FR,+U", "2,NULL,-D"]


def test_files_refuse_a_changelog_unless_told_how_to_keep_it(spark, tmp_path):
    target = table(files(tmp_path / "out"), "id BIGINT", "country STRING")
    with pytest.raises(RunError, match=r"set 'sink\.changelog' = 'true'"):
        stream_writer(changes(spark, tmp_path), "t", target, changelog=True)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_what_is_written_to_files_is_read_back_as_it_was(spark, tmp_path, format_):
    columns = ("id BIGINT", "s STRING", "d DECIMAL(20, 6)", "ts TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)", "day DATE")
    spark.sql(
        """SELECT * FROM VALUES
        (1L, 'a,"b"\\\\', 12345678901234.000001BD, TIMESTAMP_NTZ '2020-01-01 00:00:00.000001',
         TIMESTAMP '2020-07-01 12:00:00.000002Z', DATE '2020-02-29'),
        (2L, '', NULL, NULL, NULL, NULL), (3L, NULL, -0.5BD, TIMESTAMP_NTZ '1969-12-31 23:59:59', NULL, NULL)
        AS t(id, s, d, ts, z, day)"""
    ).selectExpr("id", "s", "CAST(d AS DECIMAL(20, 6)) d", "ts", "z", "day").write.parquet(str(tmp_path / "in"))
    source = table(files(tmp_path / "in", "parquet"), *columns)
    names = tuple(column.split(" ")[0] for column in columns)
    run(read_stream(spark, "t", source, names), table(files(tmp_path / "out", format_), *columns), tmp_path / "cp")
    back = read_stream(spark, "t", table(files(tmp_path / "out", format_), *columns), names)
    assert sorted(collected(spark, back, tmp_path)) == sorted(
        tuple(r) for r in spark.read.parquet(str(tmp_path / "in")).collect()
    )


def test_timestamps_in_json_files_are_spelled_as_flink_spells_them(spark, tmp_path):
    spark.sql(
        "SELECT TIMESTAMP_NTZ '2020-01-01 00:00:00' ts, TIMESTAMP '2020-07-01 12:00:00.5Z' z, NULL AS s"
    ).selectExpr("ts", "z", "CAST(s AS STRING) s").write.parquet(str(tmp_path / "in"))
    columns = ("ts TIMESTAMP(6)", "z TIMESTAMP_LTZ(6)", "s STRING")
    df = read_stream(spark, "t", table(files(tmp_path / "in", "parquet"), *columns), ("ts", "z", "s"))
    run(df, table(files(tmp_path / "out"), *columns), tmp_path / "cp")
    (written,) = (path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert json.loads(written) == {
        "ts": "2020-01-01 00:00:00.000000",
        "z": "2020-07-01 12:00:00.500000Z",
        "s": None,
    }


def test_print_writes_each_change_as_flink_does(spark, tmp_path, capsys):
    target = table({"connector": "print", "print-identifier": "out"}, "id BIGINT", "country STRING")
    run(changes(spark, tmp_path), target, tmp_path / "cp", changelog=True)
    assert capsys.readouterr().out.splitlines() == [
        "out> +I[1, DE]",
        "out> -U[1, DE]",
        "out> +U[1, FR]",
        "out> -D[2, null]",
    ]


def test_print_without_an_identifier_writes_the_bare_row(spark, tmp_path, capsys):
    write_lines(tmp_path / "in" / "1.json", '{"id": 1, "total": 1e10, "ts": "2020-01-01 00:00:00"}')
    df = read_stream(spark, "orders", table(files(tmp_path / "in"), *ORDERS), ("id", "total", "ts"))
    run(df, table({"connector": "print"}, "id BIGINT", "total DOUBLE", "ts TIMESTAMP(3)"), tmp_path / "cp")
    assert capsys.readouterr().out == "+I[1, 1.0E10, 2020-01-01T00:00]\n"


def test_blackhole_computes_every_row_and_keeps_none(spark, tmp_path):
    query = run(
        changes(spark, tmp_path), table({"connector": "blackhole"}, "id BIGINT"), tmp_path / "cp", changelog=True
    )
    assert sum(progress.numInputRows for progress in query.recentProgress) == 4


DATAGEN = {
    "connector": "datagen",
    "rows-per-second": "400",
    "number-of-rows": "1000",
    "fields.id.kind": "sequence",
    "fields.id.start": "1",
    "fields.id.end": "5000",
    "fields.v.min": "0",
    "fields.v.max": "9",
}


def test_a_bounded_datagen_ends_with_all_its_rows(spark, tmp_path):
    own = prepare_session(spark, time_zone="UTC", once=True)
    df = read_stream(own, "gen", table(DATAGEN, "id BIGINT", "v INT", "s STRING"), ("v", "id"))
    target = table(
        {"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "g"}, "v INT", "id BIGINT"
    )
    query = run(df, target, tmp_path / "cp")
    assert stored(
        tmp_path / "out.db", "SELECT count(*), min(id), max(id), count(DISTINCT id), min(v), max(v) FROM g"
    ) == [(1000, 1, 1000, 1000, 0, 9)]
    in_one = own.version < "4.2"
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == ([1000] if in_one else [400, 400, 200])


def test_a_second_run_of_a_bounded_datagen_yields_nothing_more(spark, tmp_path):
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "g"}, "id BIGINT")
    for session in (prepare_session(spark, time_zone="UTC", once=True) for _ in range(2)):
        run(read_stream(session, "gen", table(DATAGEN, "id BIGINT", "v INT"), ("id",)), target, tmp_path / "cp")
    assert stored(tmp_path / "out.db", "SELECT count(*) FROM g") == [(1000,)]


def test_a_running_datagen_yields_rows_as_time_passes(spark, tmp_path):
    """Continuous, so the clock is real; the query ends itself when the bounded table is through."""
    options = {**DATAGEN, "rows-per-second": "100000"}
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "g"}, "id BIGINT")
    df = read_stream(spark, "gen", table(options, "id BIGINT", "v INT"), ("id",))
    out = stream_writer(df, "t", target, changelog=False).option("checkpointLocation", str(tmp_path / "cp"))
    query = out.trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
        while not (progress := query.lastProgress) or "1000" not in json.dumps(progress.sources[0].endOffset):
            query.processAllAvailable()
    finally:
        query.stop()
    assert stored(tmp_path / "out.db", "SELECT count(DISTINCT id), count(*) FROM g") == [(1000, 1000)]


def test_a_datagen_without_end_is_refused_where_a_run_must_stop():
    refuse_unbounded("gen", table(DATAGEN, "id BIGINT"))
    with pytest.raises(RunError, match="set 'number-of-rows', or run without once=True"):
        refuse_unbounded("gen", table({"connector": "datagen"}, "id BIGINT"))


def test_sqlite_keeps_one_row_a_key_across_runs(spark, tmp_path):
    target = table(
        {"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "r"},
        "id BIGINT", "country STRING", key=("id",),
    )  # fmt: skip
    run(changes(spark, tmp_path), target, tmp_path / "cp", changelog=True)
    assert stored(tmp_path / "out.db", "SELECT * FROM r") == [(1, "FR")]
    run(spark.readStream.schema(f"id BIGINT, country STRING, {KIND} TINYINT").parquet(str(tmp_path / "changes")),
        target, tmp_path / "cp-2", changelog=True)  # fmt: skip
    assert stored(tmp_path / "out.db", "SELECT * FROM r") == [(1, "FR")]


def test_a_batch_that_spark_replays_is_appended_once(spark, tmp_path):
    """Taking the commit of the last batch out of the checkpoint makes Spark run it again, as after a crash."""
    write_lines(tmp_path / "in" / "1.json", '{"country": "DE"}', '{"country": "DE"}')
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "l"}, "country STRING")
    source = table(files(tmp_path / "in"), *ORDERS)
    run(read_stream(spark, "orders", source, ("country",)), target, tmp_path / "cp")
    for name in ("0", ".0.crc"):
        (tmp_path / "cp" / "commits" / name).unlink()
    query = run(read_stream(spark, "orders", source, ("country",)), target, tmp_path / "cp")
    assert [p.batchId for p in query.recentProgress if p.numInputRows] == [0]
    assert stored(tmp_path / "out.db", "SELECT * FROM l") == [("DE",), ("DE",)]
    assert stored(tmp_path / "out.db", "SELECT * FROM hintplan_commits") == [("l", str(query.id), 0)]


def test_a_database_with_another_table_is_refused_before_the_query_starts(spark, tmp_path):
    connection = sqlite3.connect(tmp_path / "out.db")
    connection.execute("CREATE TABLE l (other TEXT)")
    connection.close()
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "l"}, "country STRING")
    write_lines(tmp_path / "in" / "1.json", '{"country": "DE"}')
    df = read_stream(spark, "orders", table(files(tmp_path / "in"), *ORDERS), ("country",))
    with pytest.raises(RunError, match=r"expected \(country TEXT\) without PRIMARY KEY; found \(other TEXT\)"):
        stream_writer(df, "t", target, changelog=False)


def test_an_appending_sink_refuses_a_changelog(spark, tmp_path):
    target = table({"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path}/out.db", "table-name": "l"}, "id BIGINT")
    with pytest.raises(RunError, match="declare PRIMARY KEY"):
        stream_writer(changes(spark, tmp_path), "t", target, changelog=True)
