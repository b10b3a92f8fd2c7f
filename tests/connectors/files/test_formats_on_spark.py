"""Every format of files with every type: what others write is read, and what is written others read."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.file_sink import FORMAT_CLASSES
from hintplan.runtime.connectors.table import batch_writer, read_batch, read_stream, stream_writer
from hintplan.runtime.operator import KIND
from tests.flink.files import FORMATS as FLINK_FORMATS
from tests.flink.files import TYPES as FLINK_TYPES

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

TYPES: dict[str, tuple[str, pa.DataType, Any]] = {
    "b": ("BOOLEAN", pa.bool_(), True),
    "ti": ("TINYINT", pa.int8(), -7),
    "si": ("SMALLINT", pa.int16(), 300),
    "i": ("INT", pa.int32(), 70_000),
    "bi": ("BIGINT", pa.int64(), 5_000_000_000),
    "f": ("FLOAT", pa.float32(), 1.5),
    "d": ("DOUBLE", pa.float64(), 2.25),
    "dc": ("DECIMAL(10, 2)", pa.decimal128(10, 2), Decimal("-1.25")),
    "big": ("DECIMAL(38, 18)", pa.decimal128(38, 18), Decimal("12345678901234567890.123456789012345678")),
    "dt": ("DATE", pa.date32(), date(2020, 2, 29)),
    "ts": ("TIMESTAMP(3)", pa.timestamp("ms"), datetime(2020, 7, 1, 2, 30, 0, 123000)),
    "s": ("STRING", pa.string(), "é\n"),
    "bs": ("BYTES", pa.binary(), b"\x00\xff"),
    "ar": ("ARRAY<INT>", pa.list_(pa.int32()), [1, None]),
    "mp": ("MAP<STRING, INT>", pa.map_(pa.string(), pa.int32()), {"k": 1, "n": None}),
    "rw": (
        "ROW<x INT, t TIMESTAMP(3)>",
        pa.struct([("x", pa.int32()), ("t", pa.timestamp("ms"))]),
        {"x": 1, "t": datetime(1999, 12, 31, 23, 59, 59, 999000)},
    ),
}
"""A value of each type, and the type of a column that others write for it."""

ROWS = [{name: value for name, (_, _, value) in TYPES.items()}, dict.fromkeys(TYPES)]
FORMATS = ("parquet", "orc", "avro")
RECORDED = json.loads((Path(__file__).parents[2] / "flink" / "files.json").read_text(encoding="utf-8"))


def table(path: Path, chosen: str, columns: dict[str, str] | None = None, /, **more: Any) -> Table:
    found = columns or {name: kind for name, (kind, _, _) in TYPES.items()}
    options = {"connector": "filesystem", "path": str(path), "format": chosen, **more.pop("options", {})}
    return Table(columns=tuple(TableColumn(name=n, type=t) for n, t in found.items()), options=options, **more)


def plain(value: Any) -> Any:
    """A value as all readers have it: maps as lists of pairs, rows as dicts, times without zones."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(item, tuple) for item in value)
        return {key: plain(item) for key, item in value} if pairs else [plain(item) for item in value]
    if hasattr(value, "asDict"):
        return {key: plain(item) for key, item in value.asDict().items()}
    return bytes(value) if isinstance(value, bytearray) else value


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({n: plain(v) for n, v in row.items()} for row in rows), key=lambda row: str(row[next(iter(row))]))


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return sorted_rows([{name: row[name] for name in frame.columns} for row in frame.collect()])


def arrow_rows() -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] if not isinstance(row[name], dict) or name != "mp" else list(row[name].items())
                         for row in ROWS], kind) for name, (_, kind, _) in TYPES.items()}
    )  # fmt: skip


AVRO_TYPES: dict[str, Any] = {
    "b": "boolean", "ti": "int", "si": "int", "i": "int", "bi": "long", "f": "float", "d": "double",
    "dc": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "big": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
    "dt": {"type": "int", "logicalType": "date"}, "ts": {"type": "long", "logicalType": "timestamp-millis"},
    "s": "string", "bs": "bytes", "ar": {"type": "array", "items": ["null", "int"]},
    "mp": {"type": "map", "values": ["null", "int"]},
    "rw": {"type": "record", "name": "record_rw", "fields": [
        {"name": "x", "type": ["null", "int"], "default": None},
        {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None}]},
}  # fmt: skip
"""As Flink 2.3 writes them: the schema of a file of tests/flink/record_files.py."""


def in_utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return {key: in_utc(item) for key, item in value.items()} if isinstance(value, dict) else value


def others_write(path: Path, chosen: str) -> None:
    path.mkdir()
    if chosen == "parquet":
        pyarrow.parquet.write_table(arrow_rows(), path / "others.parquet")
    elif chosen == "orc":
        pyarrow.orc.write_table(arrow_rows(), path / "others.orc")
    else:
        fields = [{"name": n, "type": ["null", kind], "default": None} for n, kind in AVRO_TYPES.items()]
        with (path / "others.avro").open("wb") as out:
            fastavro.writer(
                out, {"type": "record", "name": "r", "fields": fields},
                [{n: in_utc(v) for n, v in row.items()} for row in ROWS], codec="deflate",
            )  # fmt: skip


def others_read(path: Path, chosen: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in path.rglob("part-*"):
        if chosen == "parquet":
            found += pyarrow.parquet.read_table(file).to_pylist()
        elif chosen == "orc":
            found += pyarrow.orc.read_table(file).to_pylist()
        else:
            with file.open("rb") as source:
                found += list(fastavro.reader(source))  # type: ignore[arg-type]
    return sorted_rows(found)


def streamed(frame: Any, target: Table, checkpoint: Path, *, changelog: bool = False) -> None:
    out = stream_writer(frame, "t", target, changelog=changelog, checkpoint=str(checkpoint))
    out.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


@pytest.fixture(params=["UTC", "America/New_York"])
def session(spark, request: pytest.FixtureRequest):
    """A session of either time zone, on which no TIMESTAMP depends."""
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", request.param)
    own.conf.set("spark.sql.caseSensitive", "true")
    return own


@pytest.mark.parametrize("chosen", FORMATS)
def test_what_others_write_is_read(session, tmp_path: Path, chosen: str) -> None:
    others_write(tmp_path / "in", chosen)
    source = table(tmp_path / "in", chosen)
    frame = read_batch(session, "t", source, tuple(TYPES))
    assert rows_of(frame) == sorted_rows(ROWS)


@pytest.mark.parametrize("chosen", FLINK_FORMATS)
def test_what_flink_has_written_is_read(session, tmp_path: Path, chosen: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part-1").write_bytes(base64.b64decode(RECORDED["files"][chosen]))
    source = table(tmp_path / "in", chosen, {name: kind for name, (kind, _) in FLINK_TYPES.items()})
    (found,) = rows_of(read_batch(session, "t", source, tuple(FLINK_TYPES)))
    same = {name: plain(ROWS[0][name]) for name in found if name not in ("s", "ar", "mp", "rw")}
    same["ts"] = datetime(2020, 3, 8, 2, 30, 0, 123000)
    if chosen == "orc" and session._jvm.java.util.TimeZone.getDefault().getRawOffset():
        del same["ts"], found["ts"]  # a time that other zones skip
    assert found == {**same, "s": "é", "ar": [1, 2], "mp": {"k": 1}, "rw": {"x": 1, "y": "y"}}


@pytest.mark.parametrize("chosen", FORMATS)
def test_others_read_what_a_stream_and_a_batch_job_write(session, tmp_path: Path, chosen: str) -> None:
    others_write(tmp_path / "in", chosen)
    options = {"avro.codec": "deflate"} if chosen == "avro" else {}
    source = table(tmp_path / "in", chosen)
    streamed(
        read_stream(session, "t", source, tuple(TYPES)), table(tmp_path / "s", chosen, options=options), tmp_path / "c"
    )
    batch_writer(read_batch(session, "t", source, tuple(TYPES)), "t", table(tmp_path / "b", chosen, options=options))()
    for written in ("s", "b"):
        assert others_read(tmp_path / written, chosen) == sorted_rows(ROWS)
        assert rows_of(read_batch(session, "t", table(tmp_path / written, chosen), tuple(TYPES))) == sorted_rows(ROWS)
    if chosen == "avro":
        with next((tmp_path / "s").glob("part-*")).open("rb") as file:
            found = fastavro.reader(file).writer_schema
        assert {f["name"]: f["type"][1] for f in found["fields"]} == {
            **AVRO_TYPES,
            "rw": found["fields"][-1]["type"][1],
        }
        assert found["name"] == "org.apache.flink.avro.generated.record"


@pytest.mark.sampled
@pytest.mark.parametrize("chosen", ["json", "csv", *FORMATS])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_directory_of_changes_is_read_as_changes(spark, tmp_path: Path, chosen: str, *, partitioned: bool) -> None:
    columns = {"id": "BIGINT", "v": "INT", "at": "TIMESTAMP(3)"}
    more: dict[str, Any] = {"partitioned_by": ("v",)} if partitioned else {}
    frame = spark.sql(
        "SELECT id, CAST(id % 3 AS INT) AS v, TIMESTAMP_NTZ '2020-01-01 12:00:00.5' AS at,"
        f" CAST(id % 4 AS TINYINT) AS {KIND} FROM range(40)"
    )
    expected = sorted(map(tuple, frame.collect()))
    frame.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "rows"))
    sink = table(tmp_path / "o", chosen, columns, options={"sink.changelog": "true"}, **more)
    streamed(stream, sink, tmp_path / "c", changelog=True)
    source = table(tmp_path / "o", chosen, columns, options={"source.changelog": "true"}, **more)
    found = read_stream(spark, "t", source, tuple(columns))
    query = found.writeStream.format("parquet").option("path", str(tmp_path / "r"))
    query.option("checkpointLocation", str(tmp_path / "rc")).trigger(availableNow=True).start().awaitTermination()
    assert sorted(map(tuple, spark.read.schema(found.schema).parquet(str(tmp_path / "r")).collect())) == expected


@pytest.mark.parametrize(
    ("chosen", "option", "codecs"),
    [
        ("parquet", "parquet.compression", ("snappy", "gzip", "zstd", "lz4", "uncompressed")),
        ("orc", "orc.compress", ("zstd", "zlib", "snappy", "lz4", "none")),
        ("avro", "avro.codec", ("snappy", "deflate", "zstandard", "bzip2", "xz", "null")),
    ],
)
def test_files_are_compressed_as_the_table_says(spark, tmp_path: Path, chosen: str, option: str, codecs: Any) -> None:
    columns = {"a": "STRING"}
    frame = spark.sql("SELECT repeat('a', 10000) AS a").coalesce(1)
    for codec in codecs:
        target = table(tmp_path / codec, chosen, columns, options={option: codec.upper()})
        batch_writer(frame, "t", target)()
        (file,) = (tmp_path / codec).glob("part-*")
        data = file.read_bytes()
        if chosen == "parquet":
            found = pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(0).compression
            assert found.lower().replace("lz4_raw", "lz4") == codec
        elif chosen == "orc":
            assert pyarrow.orc.ORCFile(file).compression.lower().replace("uncompressed", "none") == codec
        else:
            # The header of a file of Avro names its codec.
            assert b"avro.codec" in data
            assert codec.encode() in data[:400]
        assert rows_of(read_batch(spark, "t", target, ("a",))) == [{"a": "a" * 10000}]


@pytest.mark.parametrize("suffix", ["gz", "bz2", "deflate", "zst"])
def test_text_that_is_compressed_is_read(spark, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "in").mkdir()
    lines = b'{"id": 1}\n{"id": 2}\n'
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "deflate": zlib.compress}
    if suffix == "zst":
        if spark.version.startswith("4.0."):
            pytest.skip("Spark 4.0 takes Hadoop's codec, which needs Hadoop's native library")
        data = pa.compress(lines, "zstd", asbytes=True)
    else:
        data = pack.get(suffix, bytes)(lines)
    (tmp_path / "in" / f"a.json.{suffix}").write_bytes(data)
    frame = read_batch(spark, "t", table(tmp_path / "in", "json", {"id": "BIGINT"}), ("id",))
    assert rows_of(frame) == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(("kind", "value"), [("STRING", "a,b é"), ("BYTES", b"\xff\x00x"), ("VARCHAR(9)", " a ")])
def test_a_line_of_raw_is_a_row(spark, tmp_path: Path, kind: str, value: Any) -> None:
    frame = spark.createDataFrame([(value,), (value,)], f"v {'binary' if kind == 'BYTES' else 'string'}")
    target = table(tmp_path / "o", "raw", {"v": kind})
    batch_writer(frame, "t", target)()
    lines = b"".join(file.read_bytes() for file in (tmp_path / "o").glob("part-*")).splitlines()
    assert lines == [value if isinstance(value, bytes) else value.encode()] * 2
    assert rows_of(read_batch(spark, "t", target, ("v",))) == [{"v": value}] * 2


def test_a_line_of_raw_is_not_null(spark, tmp_path: Path) -> None:
    target = table(tmp_path / "o", "raw", {"v": "STRING"})
    with pytest.raises(PySparkException, match="column v is NULL, which a line of raw cannot be"):
        batch_writer(spark.sql("SELECT CAST(NULL AS STRING) AS v"), "t", target)()


def test_times_of_avro_in_the_newer_mapping(session, tmp_path: Path) -> None:
    columns = {"t": "TIMESTAMP(6)", "z": "TIMESTAMP_LTZ(6)", "m": "TIMESTAMP(3)"}
    options = {"avro.timestamp_mapping.legacy": "false", "avro.codec": "null"}
    frame = session.sql(
        "SELECT TIMESTAMP_NTZ '2020-03-08 02:30:00.123456' AS t, TIMESTAMP '2020-03-08 02:30:00.123456Z' AS z,"
        " TIMESTAMP_NTZ '2020-03-08 02:30:00.123' AS m"
    )
    target = table(tmp_path / "o", "avro", columns, options=options)
    batch_writer(frame, "t", target)()
    (file,) = (tmp_path / "o").glob("part-*")
    with file.open("rb") as source:
        reader = fastavro.reader(source)
        kinds = [field["type"][1]["logicalType"] for field in reader.writer_schema["fields"]]
        assert kinds == ["local-timestamp-micros", "timestamp-micros", "local-timestamp-millis"]
        (found,) = reader
    moment = datetime(2020, 3, 8, 2, 30, 0, 123456)
    assert found == {"t": moment, "z": moment.replace(tzinfo=UTC), "m": moment.replace(microsecond=123000)}
    again = read_batch(session, "t", target, tuple(columns))
    texts = [row[0] for row in again.selectExpr("CAST(t AS STRING) || unix_micros(z)").collect()]
    assert texts == ["2020-03-08 02:30:00.123456" + str(int(moment.replace(tzinfo=UTC).timestamp() * 1e6))]


def test_writing_avro_needs_its_package(tmp_path: Path, spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMAT_CLASSES, "avro", "org.apache.spark.sql.avro.OfNobody")
    with pytest.raises(RunError, match=r"needs org\.apache\.spark:spark-avro_2\.13:"):
        batch_writer(spark.range(1), "t", table(tmp_path / "o", "avro", {"id": "BIGINT"}))


@pytest.mark.sampled
@pytest.mark.parametrize("unit", ["millis", "micros"])
@pytest.mark.parametrize("kind", ["timestamp", "local-timestamp"])
def test_each_file_of_avro_says_what_its_times_are(spark, tmp_path: Path, unit: str, kind: str) -> None:
    (tmp_path / "in").mkdir()
    fields = [{"name": "t", "type": {"type": "long", "logicalType": f"{kind}-{unit}"}}]
    moment = datetime(2020, 3, 8, 2, 30, 0, 123000)
    with (tmp_path / "in" / "1.avro").open("wb") as out:
        given = moment.replace(tzinfo=UTC) if kind == "timestamp" else moment
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, [{"t": given}], codec="deflate")
    found = read_batch(spark, "t", table(tmp_path / "in", "avro", {"t": "TIMESTAMP(3)"}), ("t",))
    assert rows_of(found) == [{"t": moment}]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"Obj", "it does not begin as a file of Avro"), (b'{"id": 1}\n', "it does not begin as a file of Avro")],
)
def test_a_file_that_is_no_avro_is_named(spark, tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.avro").write_bytes(data)
    with pytest.raises(PySparkException, match=f"table t: file:.*1.avro cannot be read as Avro: {said}"):
        read_batch(spark, "t", table(tmp_path / "in", "avro", {"id": "BIGINT"}), ("id",)).collect()


def test_rows_of_avro_are_counted_without_their_columns(spark, tmp_path: Path) -> None:
    others_write(tmp_path / "in", "avro")
    assert read_batch(spark, "t", table(tmp_path / "in", "avro"), ()).count() == 2


def test_metadata_of_rows_in_orc(spark, tmp_path: Path) -> None:
    others_write(tmp_path / "in", "orc")
    columns = (TableColumn(name="s", type="STRING"), TableColumn(name="f", type="STRING", metadata="file.name"))
    source = Table(columns=columns, options=table(tmp_path / "in", "orc").options)
    assert json.dumps(rows_of(read_batch(spark, "t", source, ("f",)))) == json.dumps([{"f": "others.orc"}] * 2)
