"""Files of JSON that workers read for operators with state: the same rows and errors as when Spark reads them."""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from hintplan import compile_sql
from hintplan.plans.declarations.tables import Column, Table, TableColumn
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.filesystem import read, text_files
from hintplan.runtime.connectors.filesystem.odd_json import objects_of
from hintplan.runtime.connectors.filesystem.odd_records import CORRUPT
from hintplan.runtime.connectors.filesystem.spark_options import read_options
from hintplan.runtime.connectors.filesystem.stored import stored_schema
from hintplan.runtime.connectors.table import read_in_arrow, read_stream, why_not_in_arrow
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.types import to_arrow
from tests.spark.programs import changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

COLUMNS = {
    "i": "INT",
    "n": "BIGINT",
    "s": "STRING",
    "d": "DOUBLE",
    "m": "DECIMAL(10, 2)",
    "b": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "z": "TIMESTAMP_LTZ(6)",
}
PLAIN = (
    '{"i": 1, "n": 2, "s": "x", "d": 1.5, "m": 2.25, "b": true, "day": "2024-05-01", "at": "2024-05-01 01:02:03.5", '
    '"z": "2024-05-01 01:02:03Z"}'
)
ODD = (
    *('{"i": 7}', '{"s": "7", "i": null}', '{"s": 7, "i": 1.0}', '{"s": {"a": [1, "x"]}}', '{"d": "NaN", "s": true}'),
    *('{"d": NaN}', '{"i": 1, "i": 2}', '{"s": "a\\u00e9\\n"}', '{"s": "grüße"}', "", "   ", "\t"),
    *('[{"i": 1}, {"i": 2, "s": "b"}]', "[]", ' [{"i": 5}] {"i": 6}', '{"i": 1} {"i": 2}', '{"n": 1e3}', '{"n": 12.0}'),
    *('{"at": "2024-05-01T01:02:03Z"}', '{"day": "2024-5-1"}', '{"z": "2024-05-01"}', '{"m": "2.25"}', '{"m": 1e2}'),
    *(
        '{"m": 2.255}',
        '{"d": 1}',
        '{"d": "1"}',
        "{}",
        '{"other": {"x": [1, 2, {"y": null}]}}',
        '{"s": "\\ud83d\\ude00"}',
    ),
)
RIGHT = (0, 1, *range(3, 16), *range(19, 25), *range(26, 29))
"""The places of the records in ODD that fit the table."""
WRONG = (
    *(
        '{"i": "x"}',
        '{"i": 3000000000}',
        '{"i": oh no',
        "5",
        "null",
        '"text"',
        "nonsense",
        "[1]",
        '{"b": 1}',
        "{'i': 1}",
    ),
    *('{"m": 123456789012.5}', '{"day": "x"}', '{"at": 5, "i": true}', '{"s": "a', '{"i": 01}', '{"s": "\x01"}', "{"),
    *('[{"i": "x"}]', '[{"i": 1}, 5]', '{"n": 1' + "0" * 1001 + "}", '{"s": ' + "[" * 1001 + "]" * 1001 + "}"),
)
_BYTES = (
    b"\xef\xbb\xbf" + b'{"i": 1}',
    b'{"i": 1}\n\xef\xbb\xbf{"i": 2}',
    '{"i": 1}'.encode("utf-16-le"),
    '{"i": 1, "s": "ü"}'.encode("utf-16"),
    '{"i": 1}'.encode("utf-32-be"),
    b'{"i": 1, "s": "\xff"}',
    b'{"i": 1, "s": "\xe9t\xe9"}',
    b'{"i": 1, "s": "\xc0\x80"}',
    b'{"i": 1, "s": "\xf0\x9f\x98\x80"}',
    b'{"i": 1} \xff',
    b'{"i": 1, "s": "a\0b"}',
    b'{"i": 1}\0',
)


def odd_bytes(spark: SparkSession) -> list[bytes]:
    """Odd records in bytes; Spark 4.0 reads surrogates that are encoded one by one, which others take for errors."""
    surrogates = [b'{"i": 1, "s": "\xed\xa0\xbd\xed\xb8\x80"}', b'{"i": 1, "s": "\xed\xa0\xbd"}']
    return [*_BYTES, *([] if spark.version.startswith("4.0.") else surrogates)]


def table(path: Path, columns: dict[str, str], *by: str, **options: str) -> Table:
    metadata = {"p": "file.name", "size": "file.size"}
    return Table(
        columns=tuple(TableColumn(name=n, type=t, metadata=metadata.get(n)) for n, t in columns.items()),
        options={"connector": "filesystem", "format": "json", "path": str(path), **options},
        partitioned_by=by,
    )


Answer = list[tuple[object, ...]] | str
"""The sorted rows, or the kind of the error."""


def answer(spark: SparkSession, source: Table, directory: Path, *, workers: bool, row_order: bool = False) -> Answer:
    """Return the rows of a table, as text, read in one way; if it fails, the words for users."""
    names = tuple(column.name for column in source.columns)
    if workers:
        assert why_not_in_arrow(spark, "t", source, names) is None
        rows = read_in_arrow(spark, "t", source, names, row_order=row_order).in_spark("t")
    else:
        rows = read_stream(spark, "t", source, names, row_order=row_order)
    return answer_of(spark, rows, source, directory)


def answer_of(spark: SparkSession, rows: DataFrame, source: Table, directory: Path) -> Answer:
    collected: list[tuple[object, ...]] = []
    query = rows.writeStream.foreachBatch(lambda batch, _: collected.extend(map(tuple, batch.collect())))
    try:
        query.option("checkpointLocation", str(directory)).trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        explained = connectors.failed_tables(spark, {"t": source})
        return str(failure_of_spark("it failed", error, explained))
    return sorted((tuple(map(str, row)) for row in collected), key=str)


def both(spark: SparkSession, source: Table, directory: Path, *, row_order: bool = False) -> Answer:
    """Return the answer, after a check that it is the same whoever reads the files."""
    spark_says = answer(spark, source, directory / "by-spark", workers=False, row_order=row_order)
    worker_says = answer(spark, source, directory / "by-workers", workers=True, row_order=row_order)
    assert worker_says == spark_says
    return spark_says


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_every_odd_record_is_read_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The reference is Spark's reader of files: the rows of each file, and whether a record does not fit."""
    records = [*(text.encode() for text in (*ODD, *WRONG)), *odd_bytes(spark)]
    for number, record in enumerate(records):
        write(tmp_path / "in" / f"{number}.json", record)
    source = table(tmp_path / "in", COLUMNS)
    schema = stored_schema(source)
    options = read_options(source, breaks_lines=False)
    with_corrupt = StructType([*schema.fields]).add(CORRUPT, StringType())
    reader = spark.read.schema(with_corrupt).options(**options).option("columnNameOfCorruptRecord", CORRUPT)
    rows = reader.json(str(tmp_path / "in"))
    number_of = F.regexp_extract(rows.metadataColumn("_metadata")["file_name"], "[0-9]+", 0).cast("int")
    expected: dict[int, list[tuple[object, ...]] | str] = {number: [] for number in range(len(records))}
    for number, *values, corrupt in rows.select(number_of, "*").collect():
        so_far = expected[number]
        expected[number] = "wrong" if corrupt is not None or isinstance(so_far, str) else [*so_far, tuple(values)]
    stored = pa.schema([(name, to_arrow(kind)) for name, kind in COLUMNS.items()])
    task = text_files._ReadingFiles(name="t", table=source, stored=stored, in_pieces=False)
    texts, by_arrow = [], 0
    found: dict[int, list[tuple[object, ...]] | str] = {number: [] for number in range(len(records))}
    for number in range(len(records)):
        path = str(tmp_path / "in" / f"{number}.json")
        listed = pa.RecordBatch.from_pylist([{"__file": path, "__url": path, "__start": 0}])
        for batch in task([listed]):
            for row in batch.to_pylist():
                if row["__rows"] is not None:
                    by_arrow += 1
                    values = from_blob(row["__rows"]).to_pylist()
                    found[number] += [tuple(value.values()) for value in values]  # type: ignore[operator]
                elif row["__text"] is not None:
                    is_wrong_array = expected[number] == "wrong" and row["__text"].lstrip().startswith(b"[")
                    texts += [] if is_wrong_array else [(number, bytearray(row["__text"]))]
                    found[number] = "wrong" if is_wrong_array else found[number]
    given = spark.createDataFrame(texts, "number int, text binary")
    one, many = objects_of(F.col("text").cast("string"), schema, options)
    for number, whole, objects in given.select("number", one, many).collect():
        if whole is not None and whole[CORRUPT] is not None:
            found[number] = "wrong"
        elif whole is not None or objects is not None:
            kept = [whole[:-1]] if whole is not None else objects
            found[number] += [tuple(each) for each in kept]  # type: ignore[operator]
    different = [
        (record, in_utc(found[number]), in_utc(expected[number]))
        for number, record in enumerate(records)
        if in_utc(found[number]) != in_utc(expected[number])
    ]
    assert different == []
    assert by_arrow >= 3
    assert sum(answer == "wrong" for answer in expected.values()) >= len(WRONG) - 2


def in_utc(rows: object) -> object:
    """Return rows with instants as wall clocks in UTC, and NaN as text."""
    if isinstance(rows, str):
        return rows
    assert isinstance(rows, list)
    return [
        tuple(
            str(value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and index == 8 else value)
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def test_files_are_read_the_same_whoever_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    columns = {**COLUMNS, "p": "STRING", "size": "BIGINT"}
    right = [ODD[number] for number in RIGHT]
    write(tmp_path / "in" / "a b.json", "\n".join([PLAIN, *right, PLAIN]))
    write(tmp_path / "in" / "100%25 grüße#1?.json", "\r\n".join([PLAIN, *right, ""]))
    write(tmp_path / "in" / "c.json", "\r".join([PLAIN] * 40))
    write(tmp_path / "in" / "empty.json", "")
    write(tmp_path / "in" / "d.json.gz", gzip.compress(f"{PLAIN}\n{right[0]}\n".encode()) * 2)
    write(tmp_path / "in" / "d.json.bz2", bz2.compress(f"{PLAIN}\n{right[0]}".encode()))
    write(tmp_path / "in" / "d.json.deflate", zlib.compress(f"{PLAIN}\n{right[0]}".encode()))
    found = both(spark, table(tmp_path / "in", columns), tmp_path)
    assert isinstance(found, list)
    assert len([row for row in found if str(row[9]).startswith("d.json")]) == 8
    assert len([row for row in found if row[9] == "c.json"]) == 40


@pytest.mark.parametrize("changelog", ["true", "upsert"])
def test_changes_in_partitions_come_with_their_kinds_and_their_order(
    spark: SparkSession, tmp_path: Path, changelog: str
) -> None:
    lines = ['{"id": 1, "op": "+I", "s": 7}', '[{"op": "-D", "id": 2}, {"id": 3, "op": "+U"}]', '{"id": 4, "op": "+I"}']
    lines += ['{"id": 5}'] if changelog == "upsert" else ['{"op": "-U"}']
    for number, name in enumerate(("n=1/b.json", "n=2/a b.json", "n=__DEFAULT_PARTITION__/c.json")):
        write(tmp_path / "in" / name, "\n".join(lines * 3))
        os.utime(tmp_path / "in" / name, (1_700_000_000 - number,) * 2)
    write(tmp_path / "in" / "stray.json", lines[0])
    columns = {"n": "INT", "id": "BIGINT", "s": "STRING", "size": "BIGINT"}
    source = table(tmp_path / "in", columns, "n", **{"source.changelog": changelog})
    for row_order in (False, True):
        found = both(spark, source, tmp_path / str(row_order), row_order=row_order)
        assert len(found) == 45
    write(tmp_path / "in" / "n=3" / "wrong.json", '{"id": 1, "op": "x"}')
    found = answer(spark, source, tmp_path / "wrong", workers=True)
    assert "the op x; it must be" in found


def test_plain_and_odd_records_of_a_file_stay_in_order(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(7)
    lines, count = [], 0
    for _ in range(20_000):
        odd = random.random() < 0.0005
        lines.append(f'[{{"n": {count}}}, {{"n": {count + 1}}}]' if odd else f'{{"n": {count}}}')
        count += 1 + odd
    write(tmp_path / "in" / "a.json", "\n".join(lines))
    rows = read_in_arrow(spark, "t", table(tmp_path / "in", {"n": "BIGINT"}), ("n",)).in_spark("t")
    found: list[int] = []
    query = rows.writeStream.foreachBatch(lambda batch, _: found.extend(row.n for row in batch.collect()))
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert found == list(range(count))


@pytest.mark.nightly
def test_a_long_line_and_many_small_files(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "long" / "a.json", f'{PLAIN}\n{{"s": "{"x" * 50_000_000}"}}\n{PLAIN}')
    found = both(spark, table(tmp_path / "long", {"s": "STRING"}), tmp_path / "of-long")
    assert sorted(len(str(row[0])) for row in found) == [1, 1, 50_000_000]
    for number in range(10_000):
        write(tmp_path / "many" / f"{number}.json", f'{{"i": {number}}}\n' if number % 100 else "")
    assert len(both(spark, table(tmp_path / "many", {"i": "INT"}), tmp_path / "of-many")) == 9_900


@pytest.mark.parametrize(
    ("record", "condition", "fails"),
    [
        ('{"i": 1, "d": "bad"}', "i > 5", False),
        ('{"d": "bad", "i": 1, "s": "y"}', "i > 5 AND d > 4", False),
        ('{"d": "bad", "i": null}', "i > 5", False),
        ('{"d": "bad", "i": 1}', "i > 5 OR d > 4", True),
        ('{"d": "bad", "i": "bad"}', "i > 5", True),
        ('{"d": "bad", "i": 6}', "i > 5", True),
    ],
)
def test_a_wrong_record_that_a_condition_drops_does_not_fail(
    spark: SparkSession, tmp_path: Path, record: str, condition: str, fails: bool
) -> None:
    """Spark's reader evaluates the condition on the other values of the record."""
    write(tmp_path / "in" / "a.json", f'{{"i": 7, "d": 5}}\n{record}\n{{"i": 8, "d": 6}}\n')
    source = table(tmp_path / "in", {"i": "INT", "s": "STRING", "d": "DOUBLE"})
    columns = tuple(Column(name=column.name, type=column.type) for column in source.columns)
    items = tuple(SelectItem(name=column.name) for column in columns)
    calc = calc_in_arrow(Calc(id="calc", inputs=("t",), filter=condition, select=items), columns, ())
    assert calc is not None
    in_arrow = read_in_arrow(spark, "t", source, ("i", "s", "d"))
    by_workers = in_arrow.then(calc, in_arrow.schema).in_spark("t")
    by_spark = read_stream(spark, "t", source, ("i", "s", "d")).where(condition)
    found = [answer_of(spark, rows, source, tmp_path / str(n)) for n, rows in enumerate((by_spark, by_workers))]
    assert found[0] == found[1]
    assert isinstance(found[0], str) == fails


@pytest.mark.parametrize("record", [WRONG[0], WRONG[-2]])
def test_a_wrong_record_fails_with_the_words_of_spark(spark: SparkSession, tmp_path: Path, record: str) -> None:
    write(tmp_path / "in" / "a.json", "\n".join([PLAIN, record, PLAIN]))
    found = both(spark, table(tmp_path / "in", COLUMNS), tmp_path)
    assert isinstance(found, str)
    assert "a.json has a line that" in found


def test_an_aggregate_reads_pieces_of_large_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The workers import the module anew, so only the choice on the driver and the piece of a file are changed here.
    lines = [f'{{"k": {n % 3}, "v": {n if n % 100 else f"{n}.0e0"}}}' for n in range(3000)]
    write(tmp_path / "in" / "a.json", "\n".join(lines))
    monkeypatch.setattr(read, "LARGE", 0)
    script = f"""
    CREATE TABLE t (k INT, v DOUBLE) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/in');
    CREATE TABLE r (k INT, n BIGINT, v DOUBLE) WITH (
      'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/result', 'sink.changelog' = 'true');
    INSERT INTO r SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k;
    """
    execution = execute(
        compile_sql(script, {"parallelism.default": "2"}), spark, checkpoint=str(tmp_path / "checkpoint"), once=True
    )
    assert isinstance(execution, Execution)
    assert execution.await_termination(120)
    assert sum(batch.rows_in for batch in execution.new_batches()) == 3000
    found = {(change["k"], change["n"], change["v"]) for change in changes(tmp_path)}
    assert found == {(k, 1000, float(sum(range(k, 3000, 3)))) for k in range(3)}
