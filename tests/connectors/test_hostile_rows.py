"""Rows that somebody else writes, through every sink and back: they stay texts, and nothing elsewhere is touched."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.connector import Readable, Writable
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.runtime.run.execute import execute
from tests.connectors.hostile import CANARY, SECRET, TEXTS, seen
from tests.connectors.lakes.lakes import DeltaLake, IcebergLake, in_with

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

COLUMNS = "k INT NOT NULL, s STRING"
KEYED = f"{COLUMNS}, PRIMARY KEY (k) NOT ENFORCED"
BY_TEXT = "s STRING NOT NULL, k INT, PRIMARY KEY (s) NOT ENFORCED"
LONG = 200
"""Names of directories are shorter."""
ROWS: list[dict[str, Any]] = [{"k": k, "s": text} for k, text in enumerate(TEXTS)]


def places(at: Path) -> dict[str, tuple[str, str]]:
    """The columns and the options of a table for each way to keep rows."""
    files = f"'connector' = 'filesystem', 'path' = '{at}/{{0}}', 'format' = '{{1}}'"
    jdbc = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{at}/r.db', 'table-name' = '{{0}}'"
    return {
        **{format_: (COLUMNS, files.format(format_, format_)) for format_ in ("json", "csv", "parquet", "orc")},
        "partitioned": (f"{COLUMNS}) PARTITIONED BY (s", files.format("partitioned", "json")),
        "delta": (COLUMNS, in_with(DeltaLake(at / "delta").options("t"))),
        "iceberg": (COLUMNS, in_with(IcebergLake(at / "iceberg").options("t"))),
        "jdbc": (COLUMNS, jdbc.format("appended")),
        "jdbc_keyed": (KEYED, jdbc.format("keyed")),
        "jdbc_by_text": (BY_TEXT, jdbc.format("by_text")),
    }


def script(names: dict[str, tuple[str, str]], mode: str) -> str:
    tables = [f"CREATE TABLE {name} ({columns}) WITH ({options});" for name, (columns, options) in names.items()]
    return f"SET 'execution.runtime-mode' = '{mode}';\n" + "\n".join(tables)


def test_every_connector_that_keeps_rows_is_tried() -> None:
    kept = {"filesystem", "delta", "iceberg", "jdbc"}
    elsewhere = {"kafka", "upsert-kafka", "dataframe"}  # tests/connectors/messages, and test_dataframes.py
    without = {"blackhole", "print", "datagen"}  # none to read back
    found = {name for name, connector in CONNECTORS.items() if isinstance(connector, (Readable, Writable))}
    assert found == kept | elsewhere | without


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_stay_what_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv(CANARY, SECRET)
    inside = tmp_path / "inside"
    (inside / "in").mkdir(parents=True)
    (inside / "in" / "1.json").write_text("\n".join(map(json.dumps, ROWS)))
    there = places(inside)
    with closing(sqlite3.connect(inside / "r.db")) as connection:
        for name, key in (("appended", ""), ("keyed", ", PRIMARY KEY (k)"), ("by_text", ", PRIMARY KEY (s)")):
            connection.execute(f"CREATE TABLE {name} (k INTEGER, s TEXT{key})")
        connection.commit()
    source = {"src": (COLUMNS, f"'connector' = 'filesystem', 'path' = '{inside}/in', 'format' = 'json'")}
    selects = dict.fromkeys(there, "k, s FROM src")
    selects |= {"jdbc_by_text": "s, k FROM src", "partitioned": f"k, s FROM src WHERE CHAR_LENGTH(s) < {LONG}"}
    inserts = "".join(f"INSERT INTO {name} SELECT {select};\n" for name, select in selects.items())
    written = script(source | there, mode) + f"BEGIN STATEMENT SET;\n{inserts}END;"
    policy = Policy(paths=(str(inside),))
    checkpoint = {"checkpoint": str(inside / "checkpoint"), "once": True} if mode == "streaming" else {}
    execute(hintplan.compile_sql(written), spark, policy=policy, **checkpoint).await_termination()

    back = {f"{name}_back": (COLUMNS, f"'connector' = 'filesystem', 'path' = '{inside}/back/{name}', 'format' = 'json'")
            for name in there}  # fmt: skip
    inserts = "".join(f"INSERT INTO {name}_back SELECT k, s FROM {name};\n" for name in there)
    read = script(there | back, "batch") + f"BEGIN STATEMENT SET;\n{inserts}END;"
    execute(hintplan.compile_sql(read), spark, policy=policy).await_termination()
    for name in there:
        files = (inside / "back" / name).glob("part-*")
        found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        expected = [row for row in ROWS if name != "partitioned" or len(row["s"]) < LONG]
        assert sorted(found, key=lambda row: row["k"]) == expected, name
    assert {path.split("/")[0] for path in seen(tmp_path)} == {"inside"}
    for file in (path for path in inside.rglob("*") if path.is_file()):
        assert SECRET.encode() not in file.read_bytes(), file
