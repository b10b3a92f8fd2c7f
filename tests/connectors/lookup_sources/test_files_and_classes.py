"""Full caches of files, which must read what a stream of them reads, and classes of the user's."""

from __future__ import annotations

import datetime as dt
import re
import sys
import textwrap
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
import pytest

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import lookup_source
from tests.connectors.lookup_sources.asking import asked, context, opened, scanned

PLANE = {"tail": "STRING", "year": "INT", "price": "DECIMAL(10, 2)", "at": "TIMESTAMP(3)"}


def options(path, chosen: str, **more: str) -> dict[str, str]:
    return {"connector": "filesystem", "path": str(path), "format": chosen} | more


def test_csv_goes_by_position_whatever_is_wanted(tmp_path):
    (tmp_path / "a.csv").write_text('N1,1999,12.5,2024-01-01 10:00:00\n"N,2",,1,2024-01-01T10:00:00.250\n')
    (tmp_path / "b.csv").write_text("N3,-1,,\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.csv").write_text("N4,1,1,\n")
    moment = dt.datetime(2024, 1, 1, 10)
    assert scanned(context(options(tmp_path, "csv"), PLANE)) == [
        ("N1", 1999, Decimal("12.5"), moment),
        ("N,2", None, Decimal(1), moment.replace(microsecond=250000)),
        ("N3", -1, None, None),
    ]
    assert scanned(context(options(tmp_path, "csv"), PLANE, columns=["price", "tail"]))[0] == (Decimal("12.5"), "N1")


def test_an_empty_csv_field_is_null_and_an_empty_quoted_one_is_the_empty_text(tmp_path):
    (tmp_path / "a.csv").write_text('1,\n2,""\n3,"a""b"\n4,n/a\n')
    declared = {"k": "INT", "v": "STRING"}
    assert scanned(context(options(tmp_path, "csv"), declared)) == [(1, None), (2, ""), (3, 'a"b'), (4, "n/a")]
    with_literal = options(tmp_path, "csv", **{"csv.null-literal": "n/a"})
    assert scanned(context(with_literal, declared))[3] == (4, None)


@pytest.mark.parametrize("kind", ["file in it", "directory", "file"])
def test_a_link_to_what_the_run_may_not_reach_is_not_read(tmp_path, tmp_path_factory, kind):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "2.csv").write_text("7,secret\n")
    here, declared = tmp_path / "t", {"k": "INT", "v": "STRING"}
    here.mkdir()
    (here / "1.csv").write_text("1,x\n")
    (here / "3.csv").symlink_to(here / "1.csv")
    path = {"file in it": here, "directory": tmp_path / "d", "file": here / "2.csv"}[kind]
    allowed = replace(context(options(path, "csv"), declared), allowed_paths=(str(here),))
    if kind == "file in it":
        assert scanned(allowed) == [(1, "x"), (1, "x")]
    link, target = (path, outside) if kind == "directory" else (here / "2.csv", outside / "2.csv")
    link.symlink_to(target)
    assert (7, "secret") in scanned(context(options(path, "csv"), declared))
    with pytest.raises(RunError, match=r"may not reach .*2\.csv"):
        scanned(allowed)


def test_csv_options_mean_what_they_mean_for_a_stream(tmp_path):
    (tmp_path / "a.csv").write_text("# header\n1\t'x\\'\ty'\n#2\t'no'\n3\t'z'\n")
    more = {
        "csv.field-delimiter": "\\t", "csv.quote-character": "'", "csv.escape-character": "\\",
        "csv.allow-comments": "true",
    }  # fmt: skip
    assert scanned(context(options(tmp_path, "csv", **more), {"k": "INT", "v": "STRING"})) == [(1, "x'\ty"), (3, "z")]
    (tmp_path / "a.csv").write_text('1,"x\n')
    unquoted = options(tmp_path, "csv", **{"csv.disable-quote-character": "true"})
    assert scanned(context(unquoted, {"k": "INT", "v": "STRING"})) == [(1, '"x')]


def test_a_csv_field_that_cannot_be_read_fails_or_is_null(tmp_path):
    (tmp_path / "a.csv").write_text("1,x\n2,3000000000\n3,7\n")
    declared = {"k": "INT", "v": "INT"}
    with pytest.raises(RunError, match=r"tables\.t: file a\.csv: column 'v': 'x' is not INT"):
        scanned(context(options(tmp_path, "csv"), declared))
    lenient = options(tmp_path, "csv", **{"csv.ignore-parse-errors": "true"})
    assert scanned(context(lenient, declared)) == [(1, None), (2, None), (3, 7)]


def test_json_is_an_object_a_line(tmp_path):
    (tmp_path / "a.json").write_text(
        '{"tail": "N1", "year": 1999, "price": 12.5, "at": "2024-01-01 10:00:00", "more": 1}\n\n'
        '{"year": null, "tail": 7}\n{"price": "0.10"}'
    )
    assert scanned(context(options(tmp_path, "json"), PLANE)) == [
        ("N1", 1999, Decimal("12.5"), dt.datetime(2024, 1, 1, 10)),
        ("7", None, None, None),
        (None, None, Decimal("0.10"), None),
    ]


def test_json_holds_arrays_maps_and_rows(tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, null], "m": {"x": 1.5}, "r": {"i": 1, "s": "t"}}\n')
    declared = {"a": "ARRAY<INT>", "m": "MAP<STRING, DOUBLE>", "r": "ROW<i INT, s STRING>"}
    assert scanned(context(options(tmp_path, "json"), declared)) == [([1, None], [("x", 1.5)], {"i": 1, "s": "t"})]


def test_a_json_line_that_cannot_be_read_fails_with_its_number_or_is_skipped(tmp_path):
    (tmp_path / "a.json").write_text('{"k": 1, "v": 1}\n{"k": 2, "v": "x"}\n{"k": 3\n')
    declared = {"k": "INT", "v": "INT"}
    with pytest.raises(RunError, match=r"file a\.json: line 2: column 'v': 'x' is not INT"):
        scanned(context(options(tmp_path, "json"), declared))
    lenient = options(tmp_path, "json", **{"json.ignore-parse-errors": "true"})
    assert scanned(context(lenient, declared)) == [(1, 1), (2, None)]


def test_parquet_is_read_by_name(tmp_path):
    table = pa.table({"year": pa.array([1999, None], pa.int32()), "x": [1, 2], "tail": ["N1", "N2"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    where = context(options(tmp_path / "a.parquet", "parquet"), PLANE, columns=["tail", "year"])
    assert scanned(where) == [("N1", 1999), ("N2", None)]
    with pytest.raises(RunError, match=r"file a\.parquet: it has no column 'price'"):
        scanned(context(options(tmp_path, "parquet"), PLANE))


def test_a_parquet_time_of_another_kind_is_refused(tmp_path):
    table = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert scanned(context(options(tmp_path, "parquet"), {"at": "TIMESTAMP_LTZ(3)"})) == [
        (dt.datetime(1970, 1, 1, tzinfo=dt.UTC),)
    ]
    with pytest.raises(RunError, match=r"declared TIMESTAMP\(3\)"):
        scanned(context(options(tmp_path, "parquet"), {"at": "TIMESTAMP(3)"}))


@pytest.mark.parametrize("chosen", ["csv", "json"])
def test_an_empty_file_and_an_empty_directory_have_no_rows(tmp_path, chosen):
    assert scanned(context(options(tmp_path, chosen), PLANE)) == []
    (tmp_path / f"a.{chosen}").write_text("")
    assert scanned(context(options(tmp_path, chosen), PLANE)) == []


def test_a_path_with_nothing_is_named(tmp_path):
    with pytest.raises(RunError, match=f"there is nothing at '{tmp_path}/planes'"):
        scanned(context(options(tmp_path / "planes", "json"), PLANE))


def test_the_output_of_a_stream_is_refused(tmp_path):
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(RunError, match="was written by a Spark stream"):
        scanned(context(options(tmp_path, "json"), PLANE))


@pytest.mark.spark
@pytest.mark.parametrize("chosen", ["csv", "json", "parquet"])
def test_a_scan_reads_what_spark_reads(spark, tmp_path, chosen):
    """The same files, read by the stream's reader and by the scan, of every type that the format can hold."""
    from hintplan.runtime.connectors.table import read_stream

    declared = {
        "b": "BOOLEAN", "i": "TINYINT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "n": "DECIMAL(12, 3)",
        "s": "STRING", "day": "DATE", "ts": "TIMESTAMP(3)", "tz": "TIMESTAMP_LTZ(3)",
    }  # fmt: skip
    values = (
        "true AS b, CAST(-7 AS TINYINT) i, 9007199254740993 l, CAST(0.1 AS FLOAT) f, 1e-7 d,"
        " CAST(-1.250 AS DECIMAL(12,3)) n, 'a \"q\", \\\\ ü' s, DATE'1999-12-31' day,"
        " TIMESTAMP_NTZ'2024-02-29 23:59:59.123' ts, TIMESTAMP'2024-02-29 23:59:59.5Z' tz"
    )
    nulls = ", ".join(f"NULL AS {name}" for name in declared)
    path = str(tmp_path / "data")
    rows = spark.sql(f"SELECT {values} UNION ALL SELECT {nulls}").coalesce(1).write
    rows = rows.option("timestampNTZFormat", "yyyy-MM-dd HH:mm:ss.SSS").option("escape", '"')
    rows.option("timestampFormat", "yyyy-MM-dd HH:mm:ss.SSSXXX").option("timeZone", "UTC").format(chosen).save(path)
    columns = tuple(TableColumn(name=n, type=t) for n, t in declared.items())
    stream = read_stream(spark, "t", Table(columns=columns, options=options(path, chosen)), tuple(declared))
    query = stream.writeStream.format("memory").queryName(f"scan_{chosen}").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    expected = spark.table(f"scan_{chosen}").toArrow()
    found = scanned(context(options(path, chosen), declared))
    wanted = list(zip(*(column.to_pylist() for column in expected.columns), strict=True))
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of a user's with sources of each kind."""
    (tmp_path / "users_rates.py").write_text(
        textwrap.dedent(
            """
            from hintplan.runtime.lookup.api import AsyncLookupFunction, LookupFunction, ScanFunction
            import pyarrow as pa

            class Sync(LookupFunction):
                def open(self, context):
                    self.factor = int(context.options["properties.factor"])
                def lookup(self, key):
                    return [(key[0], key[0] * self.factor)]

            class Async(AsyncLookupFunction):
                async def lookup(self, key):
                    return [(key[0], -key[0])]

            class Scan(ScanFunction):
                def scan(self, context):
                    yield pa.table({"k": [1, 2], "v": [3, 4]})

            class Unfinished(LookupFunction):
                pass
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "users_rates"
    sys.modules.pop("users_rates", None)


def place(module: str, *, allowed=("users_rates",), **named: str):
    names = {option.replace("_", "-"): f"{module}.{name}" for option, name in named.items()}
    options = {"connector": "python", "properties.factor": "3"} | names
    return context(options, {"k": "BIGINT", "v": "BIGINT"}, keys=["k"], allowed_modules=allowed)


def test_a_class_of_the_users_answers_in_each_mode(module):
    where = place(module, **{"class": "Sync", "async_class": "Async", "scan_class": "Scan"})
    with asked("sync", where) as ask:
        assert ask((2,), (5,)) == [[(2, 6)], [(5, 15)]]
    with asked("async", where) as ask:
        assert ask((2,)) == [[(2, -2)]]
    assert scanned(where) == [(1, 3), (2, 4)]


@pytest.mark.parametrize("allowed", [(), ("users",), ("users_rates.Sync",), ("other",)])
def test_a_module_that_nobody_allowed_is_not_imported(module, allowed):
    with pytest.raises(RunError, match="module users_rates is not allowed"):
        opened("sync", place(module, allowed=allowed, **{"class": "Sync"}))
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("name", "message"),
    [("Async", "is no LookupFunction"), ("Nobody", "is not there"), ("Unfinished", "does not define lookup")],
)
def test_a_class_that_is_no_source_is_named(module, name, message):
    with pytest.raises(RunError, match=message):
        opened("sync", place(module, **{"class": name}))


@pytest.mark.parametrize(
    ("mode", "body", "message"),
    [
        ("sync", "def lookup(self): ...", "lookup of users_rates.Odd cannot be called with 1 argument"),
        ("sync", "async def lookup(self, key): ...", "lookup of users_rates.Odd is an async def, but nobody awaits it"),
        ("sync", "async def lookup_many(self, keys): ...", "lookup_many of users_rates.Odd is an async def"),
        (
            "sync",
            "def __init__(self, url): ...",
            "which its constructor does not allow: missing a required argument: 'url'",
        ),
        ("sync", "def open(self): ...", "open of users_rates.Odd cannot be called with 1 argument"),
        ("async", "def lookup(self, key): ...", "lookup of users_rates.Odd is no async def, but it is awaited"),
        ("async", "async def lookup(self, key): yield key", "lookup of users_rates.Odd yields"),
        ("async", "async def lookup(self, key, more): ...", "with 1 argument: missing a required argument: 'more'"),
        ("async", "def lookup_many(self, keys): ...", "lookup_many of users_rates.Odd is no async def"),
        ("async", "def close(self): ...", "close of users_rates.Odd is no async def"),
        ("full", "def scan(self): ...", "scan of users_rates.Odd cannot be called with 1 argument"),
    ],
)
def test_a_class_that_cannot_be_called_as_a_source_is_refused_before_the_run(module, tmp_path, mode, body, message):
    base, usual = {
        "sync": ("LookupFunction", "def lookup(self, key): ..."),
        "async": ("AsyncLookupFunction", "async def lookup(self, key): ..."),
        "full": ("ScanFunction", ""),
    }[mode]
    own = body if " lookup(" in body or not usual else f"{usual}\n    {body}"
    with (tmp_path / "users_rates.py").open("a") as more:
        more.write(f"\nclass Odd({base}):\n    {own}\n")
    option = {"sync": "class", "async": "async_class", "full": "scan_class"}[mode]
    where = place(module, **{option: "Odd"})
    with pytest.raises(RunError, match=re.escape(message)):
        lookup_source(where.options).check(mode, where)


def test_a_mode_that_a_connector_lacks_is_refused():
    where = context(options("x", "json"), PLANE, keys=["tail"])
    with pytest.raises(RunError, match="table t cannot be looked up in mode async: its connector is 'filesystem'"):
        opened("async", where)
