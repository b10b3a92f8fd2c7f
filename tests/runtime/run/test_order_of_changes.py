"""The changes of a row reach every sink in their order, however the query runs: none is taken back before it is there.

A reader may read the files or partitions of one micro-batch in any order. So what a micro-batch writes is folded from
the first piece to the last, and from the last to the first. Sinks that write to a server are looked at where they are
handed their rows. SQLite says which rows are left in the end.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hintplan
from hintplan.plans.connectors.connector import Writable
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.model.plan import Plan
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.operator import KIND
from hintplan.runtime.run import writers
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import DeltaLake, IcebergLake
from tests.connectors.messages.broker import jars
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180
OPS = ("+I", "-U", "+U", "-D")
FORMATS = ("json", "csv", "parquet", "orc", *(("avro",) if jars() else ()))
JSON = {"key.format": "json", "value.format": "json"}
BROKER = {"properties.bootstrap.servers": "localhost:9"}
SERVERS: dict[str, tuple[dict[str, str], bool]] = {
    "debezium": ({"connector": "kafka", **BROKER, "topic": "t", "format": "debezium-json"}, False),
    "topic": (
        {"connector": "upsert-kafka", **BROKER, "topic": "t", "key.format": "json", "value.format": "json"},
        True,
    ),
    "postgres": ({"connector": "jdbc", "url": "jdbc:postgresql://localhost:9/d", "table-name": "t"}, True),
    "mysql": ({"connector": "jdbc", "url": "jdbc:mysql://localhost:9/d", "table-name": "t"}, True),
}
"""Tables on servers, and whether they have a primary key."""
LOCAL = {"filesystem", "print", "jdbc", "delta", "iceberg"}

Change = tuple[str, tuple[Any, ...]]


def lakes(directory: Path) -> dict[str, DeltaLake | IcebergLake]:
    return {"delta": DeltaLake(directory / "delta"), "iceberg": IcebergLake(directory / "iceberg")}


def tables(directory: Path, columns: str) -> Iterator[tuple[str, str]]:
    """The sinks by name, each with its statement."""

    def table(name: str, options: dict[str, str], *, keyed: bool = False) -> tuple[str, str]:
        key = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
        return name, f"CREATE TABLE {name} ({columns}{key}) WITH ({listed});"

    for name in FORMATS:
        files = {"connector": "filesystem", "path": f"{directory}/{name}", "format": name, "sink.changelog": "true"}
        yield table(name, {**files, **({"avro.codec": "null"} if name == "avro" else {})})
    yield table("seen", {"connector": "print", "print-identifier": directory.name})
    url = f"jdbc:sqlite:{directory}/result.db"
    yield table("db", {"connector": "jdbc", "url": url, "table-name": "db"}, keyed=True)
    for name, lake in lakes(directory).items():
        yield table(name, lake.options(name), keyed=True)
    for name, (options, keyed) in SERVERS.items():
        yield table(name, options, keyed=keyed)


def test_the_sinks_of_these_tests_are_those_of_all_connectors() -> None:
    writing = {name for name, each in CONNECTORS.items() if isinstance(each, Writable) and not each.drops_rows}
    elsewhere = {"dataframe"}  # tests/connectors/test_dataframes.py
    assert writing == LOCAL | elsewhere | {options["connector"] for options, _ in SERVERS.values()}


def pieces_of(directory: Path, name: str, columns: Sequence[str]) -> Iterator[list[list[Change]]]:
    """The changes in each file of a sink, a list of files for each micro-batch."""
    for log in sorted((directory / name / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name)):
        lines = log.read_text(encoding="utf-8").splitlines()[1:]
        files = [directory / name / Path(json.loads(line)["path"]).name for line in lines]
        yield [[(row["op"], tuple(row[c] for c in columns)) for row in rows_of(file, columns)] for file in files]


def rows_of(file: Path, columns: Sequence[str]) -> Iterable[dict[str, Any]]:
    match file.suffixes[-1]:
        case ".json":
            return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        case ".csv":
            with file.open(encoding="utf-8", newline="") as found:
                rows = [dict(zip((*columns, "op"), row, strict=True)) for row in csv.reader(found)]
            return [{name: int(value) if value.isdecimal() else value for name, value in row.items()} for row in rows]
        case ".parquet":
            return list(pyarrow.parquet.read_table(file).to_pylist())
        case ".orc":
            return list(pyarrow.orc.read_table(file).to_pylist())
    with file.open("rb") as found:
        return [dict(row) for row in fastavro.reader(found) if isinstance(row, dict)]


def folded(batches: Iterable[list[list[Change]]]) -> list[tuple[Any, ...]]:
    """What is left, of whatever piece of a micro-batch is read first; each change is looked at as it comes."""
    left: Counter[tuple[Any, ...]] = Counter()
    for pieces in batches:
        ends = []
        for order in (pieces, pieces[::-1]):
            rows = left.copy()
            for op, row in (change for piece in order for change in piece):
                rows[row] += 1 if op in ("+I", "+U") else -1
                assert rows[row] >= 0, f"{op} {row} takes back what is not there"
            ends.append(+rows)
        assert ends[0] == ends[1]
        left = ends[0]
    return sorted(left.elements())


class Handed:
    """What sinks that write to servers are handed: the changes in each partition, by sink and micro-batch."""

    def __init__(self) -> None:
        self.batches: defaultdict[str, list[list[list[Change]]]] = defaultdict(list)

    def writer(self, given: Callable[..., Any]) -> Callable[..., Any]:
        def micro_batch_writer(name: str, table: Any, **options: Any) -> Any:
            if name not in SERVERS:
                return given(name, table, **options)
            return lambda rows, batch: self.take(name, rows)

        return micro_batch_writer

    def take(self, name: str, rows: MicroBatch) -> int:
        found = rows.in_spark().withColumn("piece", F.spark_partition_id()).toArrow().to_pylist()
        pieces: defaultdict[int, list[Change]] = defaultdict(list)
        for row in found:
            piece, kind = row.pop("piece"), row.pop(KIND)
            pieces[piece].append((OPS[kind], tuple(row.values())))
        self.batches[name].append(list(pieces.values()))
        return len(found)


def printed(text: str, identifier: str) -> list[Change]:
    lines = (line.removeprefix(f"{identifier}> ") for line in text.splitlines() if line.startswith(f"{identifier}> "))
    found = ((line[:2], line[3:-1].split(", ")) for line in lines)
    return [(op, tuple(int(value) if value.isdecimal() else value for value in row)) for op, row in found]


def applied(database: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    """Let SQLite make the changes, one after the other."""
    for row in rows:
        names = [name for name in row if name != "op"]
        values = [row[name] for name in names]
        if row["op"] in ("+I", "+U"):
            database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", values)
        else:
            same = " AND ".join(f"{name} IS ?" for name in names)
            one = f"(SELECT rowid FROM {table} WHERE {same} LIMIT 1)"
            assert database.execute(f"DELETE FROM {table} WHERE rowid = {one}", values).rowcount == 1


def updated(op: str, **row: Any) -> dict[str, Any]:
    return {"op": op, **row}


def orders(batch: int) -> list[dict[str, Any]]:
    """Rows of one key of the join, so of one task; some come and go several times within the micro-batch."""
    found = [updated("+I", id=i, k=0) for i in range(30 * batch, 30 * batch + 30)]
    for i in range(0, 30 * batch + 30, 3):
        found += [
            updated("-U", id=i, k=0),
            updated("+U", id=i, k=9),
            updated("-D", id=i, k=9),
            updated("+I", id=i, k=0),
        ]
    return found


def names(batch: int) -> list[dict[str, Any]]:
    """The name of that key, which changes more than once in the second micro-batch."""
    if batch == 0:
        return [updated("+I", k=0, n="a")]
    changed = [updated("-U", k=0, n="a"), updated("+U", k=0, n="b")]
    return [*changed, updated("-D", k=0, n="b"), updated("+I", k=0, n="c")]


SOURCES = """
CREATE TABLE o (id BIGINT, k BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'format' = 'json',
  'path' = '{0}/o', 'source.changelog' = 'true', 'source.max-files-per-trigger' = '{1}');
CREATE TABLE c (k BIGINT, n STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'filesystem', 'format' = 'json',
  'path' = '{0}/c', 'source.changelog' = 'true', 'source.max-files-per-trigger' = '{1}');
"""


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[Any, ...]]]:
    """Changes of two tables in two micro-batches, and the rows of their join in the end."""
    directory = tmp_path_factory.mktemp("joined")
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE o (id, k); CREATE TABLE c (k, n);")
    for batch in range(2):
        for table, rows in (("o", orders(batch)), ("c", names(batch))):
            add_rows(directory, table, rows)
            applied(database, table, rows)
    wanted = database.execute("SELECT o.id, c.n FROM o JOIN c ON o.k = c.k ORDER BY 1, 2").fetchall()
    database.close()
    return directory, wanted


def run(plan: Plan, spark: SparkSession, directory: Path) -> Any:
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    execution.raise_failure()
    return execution


# A column is taken in Arrow, where the rows are; only Spark changes the case of a text.
CHOSEN = ("n", "LOWER(n)")


@pytest.mark.parametrize("most", [16 << 20, 0])
def test_changes_of_a_join_reach_all_sinks_of_a_query_in_their_order(
    spark: SparkSession,
    joined: tuple[Path, list[tuple[Any, ...]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    most: int,
) -> None:
    source, wanted = joined
    handed = Handed()
    monkeypatch.setattr(writers, "_BYTES_ON_DRIVER", most)
    monkeypatch.setattr(connectors, "micro_batch_writer", handed.writer(connectors.micro_batch_writer))
    sinks = dict(tables(tmp_path, "id BIGINT, n STRING"))
    view = "CREATE VIEW j AS SELECT o.id, c.n FROM o JOIN c ON o.k = c.k;"
    inserts = [
        f"INSERT INTO {name} SELECT id, {chosen} FROM j;" for name, chosen in zip(sinks, cycle(CHOSEN), strict=False)
    ]
    script = "\n".join([SOURCES.format(source, 1), *sinks.values(), view, *inserts])
    execution = run(hintplan.compile_sql(script), spark, tmp_path)
    assert list(execution.queries) == ["join_o_c"]
    for name in FORMATS:
        batches = list(pieces_of(tmp_path, name, ("id", "n")))
        assert len(batches) == 2
        assert folded(batches) == wanted, name
    assert folded([[printed(capsys.readouterr().out, tmp_path.name)]]) == wanted
    for name in SERVERS:
        assert folded(handed.batches[name]) == wanted, name
    database = sqlite3.connect(tmp_path / "result.db")
    assert database.execute("SELECT id, n FROM db ORDER BY 1, 2").fetchall() == wanted
    database.close()
    for name, lake in lakes(tmp_path).items():
        assert sorted(lake.rows(name)) == wanted, name


PARTS = (
    [updated("+I", id=i, k=1) for i in range(6)],
    [updated("-D", id=i, k=1) for i in range(3)] + [updated("+I", id=i, k=2) for i in range(6, 40)],
    [change for i in range(3, 6) for change in (updated("-U", id=i, k=1), updated("+U", id=i, k=5))]
    + [updated("-D", id=i, k=2) for i in range(6, 20)]
    + [updated("+I", id=i, k=9) for i in (0, 1, 2, *range(6, 20), *range(40, 60))]
    + [updated("-D", id=i, k=9) for i in range(40, 60)],
)
"""Spark reads large files first, and each of these takes back rows of smaller ones."""


@pytest.mark.parametrize("key", [", PRIMARY KEY (id) NOT ENFORCED", ""])
def test_changes_that_no_operator_with_state_has_put_in_order_arrive_as_they_were_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k)")
    for part in PARTS:
        add_rows(tmp_path, "o", part)
        applied(database, "o", part)
    wanted = database.execute("SELECT id, k FROM o ORDER BY 1, 2").fetchall()
    database.close()
    sinks = {name: text for name, text in tables(tmp_path, "id BIGINT, k BIGINT") if name in ("json", "seen")}
    source = SOURCES.format(tmp_path, 9).replace(", PRIMARY KEY (id) NOT ENFORCED", key)
    inserts = [f"INSERT INTO {name} SELECT id, k FROM o WHERE id >= 0;" for name in sinks]
    execution = run(hintplan.compile_sql("\n".join([source, *sinks.values(), *inserts])), spark, tmp_path)
    assert execution.progress["sink_json"].batch == 0, "all files are one micro-batch"
    batches = list(pieces_of(tmp_path, "json", ("id", "k")))
    assert folded(batches) == wanted
    assert folded([[printed(capsys.readouterr().out, tmp_path.name)]]) == wanted
    if key:
        each = defaultdict(list)
        for op, row in (change for pieces in batches for piece in pieces for change in piece):
            each[row[0]].append((op, row[1]))
        read = defaultdict(list)
        for change in (change for part in PARTS for change in part):
            read[change["id"]].append((change["op"], change["k"]))
        assert each == read
