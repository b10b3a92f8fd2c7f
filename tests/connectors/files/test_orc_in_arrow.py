"""Files of ORC give the same rows, whether Spark or workers read them; other types are left to Spark."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from pyspark.sql import SparkSession

from hintplan import compile_sql
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.table import read_in_arrow, read_stream, why_not_in_arrow
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.connectors.files.test_readers_agree import VALUES, both, streamed, table
from tests.spark.programs import changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

SCALARS = {name: facts for name, facts in VALUES.items() if name not in ("dt", "ts", "lt")}
ROW_TYPE = "ROW<" + ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in SCALARS.items()) + ">"
COLUMNS = {
    **{name: kind for name, (kind, _, _) in SCALARS.items()},
    "r": ROW_TYPE,
    "ar": f"ARRAY<{ROW_TYPE}>",
    "m": f"MAP<STRING, {ROW_TYPE}>",
    "deep": "ROW<x ROW<y ARRAY<ROW<z MAP<INT, DOUBLE>>>>, w STRING>",
}


def put(path: Path, rows: pa.Table, time: float = 1_700_000_000, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    orc.write_table(rows, path, **options)
    os.utime(path, (time, time))


def orc_table(path: Path, columns: dict[str, str], *by: str, metadata: bool = False, **options: str) -> Table:
    return table(path, columns, *by, metadata=metadata, format="orc", **options)


def stored() -> pa.Table:
    """Rows with values, NULL and nothing at each level, in narrower types than those of the table."""
    row = pa.struct([(name, kind) for name, (_, kind, _) in SCALARS.items()])
    z = pa.list_(pa.struct([("z", pa.map_(pa.int32(), pa.float64()))]))
    deep = pa.struct([("w", pa.string()), ("x", pa.struct([("y", z)]))])
    nested = [("r", row), ("ar", pa.list_(row)), ("m", pa.map_(pa.string(), row)), ("deep", deep)]
    first, second = ({name: values[n] for name, (_, _, values) in SCALARS.items()} for n in (0, 1))
    empty: dict[str, Any] = dict.fromkeys(SCALARS)
    inside = {"x": {"y": [{"z": [(1, 1.5), (2, None)]}, {"z": None}, None]}, "w": "ü"}
    full = {**first, "r": second, "ar": [first, None, empty], "m": [("a", first), ("", None)], "deep": inside}
    nothing = {**empty, "r": empty, "ar": [], "m": [], "deep": {"x": {"y": []}, "w": None}}
    rows = [full, nothing, {}, {**second, "r": None, "deep": {"x": None, "w": ""}}, full]
    return pa.Table.from_pylist(rows, pa.schema([*((n, kind) for n, (_, kind, _) in SCALARS.items()), *nested]))


def test_values_of_every_type_and_codec(spark: SparkSession, tmp_path: Path) -> None:
    for number, codec in enumerate(("uncompressed", "snappy", "zlib", "lz4", "zstd")):
        put(tmp_path / "t" / f"a b{number}.orc", stored(), compression=codec)
    (tmp_path / "t" / "empty.orc").write_bytes(b"")
    put(tmp_path / "t" / "no rows.orc", stored().slice(0, 0))
    source = orc_table(tmp_path / "t", COLUMNS, metadata=True)
    assert len(both(spark, source, ("name", "size", *reversed(COLUMNS)))) == 5 * len(stored())
    assert len(both(spark, source, ("name",))) == 5 * len(stored())
    rows = spark.read.orc(str(tmp_path / "t"))
    rows.write.orc(str(tmp_path / "of-spark"))
    assert len(both(spark, orc_table(tmp_path / "of-spark", COLUMNS), tuple(COLUMNS))) == 5 * len(stored())


def test_stripes_stay_in_order(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "t" / "a.orc", pa.table({"n": range(200_000)}), stripe_size=65_536, batch_size=1000)
    assert orc.ORCFile(tmp_path / "t" / "a.orc").nstripes > 3
    rows = read_in_arrow(spark, "t", orc_table(tmp_path / "t", {"n": "BIGINT"}), ("n",)).in_spark("t")
    found: list[int] = []
    query = rows.writeStream.foreachBatch(lambda batch, _: found.extend(row.n for row in batch.collect()))
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert found == list(range(200_000))


def test_columns_and_fields_go_by_name_and_may_be_lacking(spark: SparkSession, tmp_path: Path) -> None:
    inside = pa.struct([("more", pa.string()), ("b", pa.int16()), ("a", pa.float32()), ("c", pa.decimal128(5, 1))])
    rows = [{"r": {"b": 7, "a": 0.5, "c": 1}, "l": [{"b": -7}, None], "m": [(1, {"a": 1.5})], "i": 7}, {"i": -1}]
    kinds = pa.schema([("r", inside), ("l", pa.list_(inside)), ("m", pa.map_(pa.int16(), inside)), ("i", pa.int8())])
    put(tmp_path / "t" / "a.orc", pa.Table.from_pylist(rows, kinds))
    wanted = "ROW<a DOUBLE, MORE STRING, b BIGINT, c DECIMAL(10, 3), d ROW<x ARRAY<INT>>>"
    columns = {"l": f"ARRAY<{wanted}>", "r": wanted, "m": f"MAP<INT, {wanted}>", "none": f"ARRAY<{wanted}>"}
    columns |= {"lacking": "INT", "i": "DECIMAL(12, 2)"}
    source = orc_table(tmp_path / "t", columns)
    found = both(spark, source, tuple(columns))
    assert {row[5] for row in found} == {7, -1}
    assert both(spark, source, ("lacking",)) == [(None,), (None,)]
    other = "ROW<z INT>"
    columns = {"r": other, "l": f"ARRAY<{other}>", "m": f"MAP<INT, {other}>"}
    both(spark, orc_table(tmp_path / "t", columns), tuple(columns))


CONVERTED = [
    (pa.int64(), "INT", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1]),
    (pa.int64(), "TINYINT", [127, 128, -128, -129]),
    (pa.int32(), "SMALLINT", [32767, 32768, -(2**31)]),
    (pa.int8(), "BIGINT", [-128]),
    (pa.int32(), "DOUBLE", [2**31 - 1]),
    (pa.int16(), "FLOAT", [-7]),
    (pa.int64(), "DECIMAL(20, 0)", [2**63 - 1]),
    (pa.int32(), "DECIMAL(12, 2)", [2**31 - 1, -(2**31)]),
    (pa.float32(), "DOUBLE", [0.1, float("inf")]),
    (pa.decimal128(5, 1), "DECIMAL(38, 18)", [Decimal("-9999.9")]),
]


def test_narrower_and_wider_types_are_read_as_spark_converts_them(spark: SparkSession, tmp_path: Path) -> None:
    arrays = [pa.array([*values, *[None] * (6 - len(values))], kind) for kind, _, values in CONVERTED]
    names = [f"c{number}" for number in range(len(CONVERTED))]
    put(tmp_path / "t" / "a.orc", pa.table(arrays, names))
    columns = dict(zip(names, [kind for _, kind, _ in CONVERTED], strict=True))
    found = both(spark, orc_table(tmp_path / "t", columns), tuple(columns))
    assert sorted((row[0] for row in found if row[0] is not None), key=int) == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("INT", pa.array(["7"]), "column c of a.orc is of type string, which cannot be read as int32"),
        ("INT", pa.array([1.5]), "column c of a.orc is of type double, which cannot be read as int32"),
        ("STRING", pa.array([7]), "column c of a.orc is of type int64, which cannot be read as string"),
        ("STRING", pa.array([b"a"]), "column c of a.orc is of type binary, which cannot be read as string"),
        ("FLOAT", pa.array([7.5]), "column c of a.orc is of type double, which cannot be read as float"),
        ("ARRAY<INT>", pa.array([[7]]), "column c of a.orc is of type list<item: int64>, which cannot be read as "),
    ],
    ids=str,
)
def test_a_file_of_other_types_is_left_to_spark_and_refused_later(
    spark: SparkSession, tmp_path: Path, kind: str, values: pa.Array, reason: str
) -> None:
    source = orc_table(tmp_path / "t", {"c": kind})
    put(tmp_path / "t" / "a.orc", pa.table({"d": [1]}))
    by_workers = read_in_arrow(spark, "t", source, ("c",)).in_spark("reader")
    put(tmp_path / "t" / "a.orc", pa.table({"c": values}))
    found = why_not_in_arrow(spark, "t", source, ("c",))
    assert found is not None
    assert found.startswith(reason)
    assert len(streamed(spark, read_stream(spark, "t", source, ("c",)), "by_spark")) == 1
    with pytest.raises(Exception, match=r"table t: column c of /.*/a\.orc is of type"):
        streamed(spark, by_workers, "failing")


def test_what_workers_cannot_open_or_name_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "t" / "a.orc", pa.table({"_col0": [1], "_col1": ["x"]}))
    source = orc_table(tmp_path / "t", {"a": "BIGINT", "b": "STRING"})
    reason = "column _col0 of a.orc has no name of its own, and goes by its position"
    assert why_not_in_arrow(spark, "t", source, ("b",)) == reason
    assert streamed(spark, read_stream(spark, "t", source, ("b",)), "by_spark") == [("x",)]
    (tmp_path / "t" / "a.orc").write_bytes(b"ORC but no more")
    assert why_not_in_arrow(spark, "t", source, ("b",)) == "Arrow cannot open a.orc"
    with pytest.raises(Exception, match=r"table t: /.*/a\.orc cannot be read as ORC: "):
        streamed(spark, read_in_arrow(spark, "t", source, ("b",)).in_spark("reader"), "failing")


@pytest.mark.parametrize("changelog", ["true", "upsert"])
def test_changes_in_partitions_come_with_their_kinds_and_their_order(
    spark: SparkSession, tmp_path: Path, changelog: str
) -> None:
    ops = ["+I", "+U", "-D", "+I", "-U"] if changelog == "true" else ["+I", None, "-D", "+U"]
    for number, name in enumerate(("b.orc", "a.orc", "c d.orc")):
        rows = pa.table({"op": pa.array(ops, pa.string()), "id": pa.array(range(len(ops)), pa.int64())})
        put(tmp_path / "t" / f"n={number % 2}" / name, rows, 1_700_000_000 - number)
    source = orc_table(tmp_path / "t", {"id": "BIGINT", "n": "INT"}, "n", **{"source.changelog": changelog})
    assert len(both(spark, source, ("n", "id"), row_order=True)) == 3 * len(ops)


QUERY = """
CREATE TABLE orders (k STRING, r ROW<a BIGINT>, v DECIMAL(10, 2)) WITH (
  'connector' = 'filesystem', 'format' = 'orc', 'path' = '{directory}/orders');
CREATE TABLE result (k STRING, n BIGINT, total DECIMAL(38, 2)) WITH (
  'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/result', 'sink.changelog' = 'true');
INSERT INTO result SELECT k, SUM(r.a), SUM(v) FROM orders WHERE r.a > 0 GROUP BY k;
"""


@pytest.mark.integration
def test_a_checkpoint_goes_on_with_the_other_reader(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run, is_spark in enumerate((True, False, True, False)):
        numbers = range(100 * run, 100 * run + 100)
        rows = [{"k": f"k{n % 2}", "r": {"a": n}, "v": Decimal(n) / 4} for n in numbers]
        kinds = pa.schema([("k", pa.string()), ("r", pa.struct([("a", pa.int32())])), ("v", pa.decimal128(10, 2))])
        put(tmp_path / "orders" / f"{run}.orc", pa.Table.from_pylist(rows, kinds), 1_700_000_000 + run)
        with monkeypatch.context() as patch:
            if is_spark:
                patch.setattr(connectors, "why_not_in_arrow", lambda *_: "a test")
            plan = compile_sql(QUERY.format(directory=tmp_path), {"parallelism.default": "2"})
            execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
            assert isinstance(execution, Execution)
            assert execution.await_termination(180)
        assert sum(batch.rows_in for batch in execution.new_batches()) == 100
        notes = [note for note in execution.notes if "read by Spark" in note]
        assert notes == (["scan_orders is read by Spark: a test"] if is_spark else [])
    counts: dict[tuple[object, ...], int] = {}
    for change in changes(tmp_path):
        row = (change["k"], change["n"], Decimal(str(change["total"])))
        counts[row] = counts.get(row, 0) + (1 if change["op"] in ("+I", "+U") else -1)
    assert {row: count for row, count in counts.items() if count} == {
        (f"k{odd}", sum(range(odd, 400, 2)), Decimal(sum(range(odd, 400, 2))) / 4): 1 for odd in (0, 1)
    }
