"""Rows of a micro-batch that come to the driver with it reach every sink as those do that stay in Spark: of each type,
as they are, through a calc that Arrow answers, and through one that only Spark can."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run import writers
from hintplan.runtime.run.execute import execute
from tests.sample import in_turn

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
COLUMNS = {
    "k": ("BIGINT", [1, 2, 3]),
    "b": ("BOOLEAN", [True, None, False]),
    "t": ("TINYINT", [-128, 0, None]),
    "h": ("SMALLINT", [32767, None, 1]),
    "i": ("INT", [None, -5, 5]),
    "f": ("FLOAT", [1.5, None, -0.25]),
    "d": ("DOUBLE", [1e10, 0.1, None]),
    "n": ("DECIMAL(38, 4)", ["1234567890123456789012345678901234.5678", None, "-0.0001"]),
    "s": ("STRING", ["it's", "\u00e9 \u2603", None]),
    "y": ("DATE", ["2024-02-29", None, "1969-12-31"]),
    "ts": ("TIMESTAMP(6)", ["2024-07-01 10:30:05.123456", "1960-01-01 00:00:00", None]),
    "at": ("TIMESTAMP_LTZ(3)", ["2024-07-01 10:30:05.120Z", None, "2024-12-24 23:59:59Z"]),
}
FORMATS = ("json", "csv", "parquet")
AS_IT_IS = ", ".join(f"`{name}`" for name in COLUMNS)
# A comparison is answered in Arrow; the length of a text only by Spark. With a count they stay above it.
QUERIES = {"whole": " WHERE w > 0", "arrow": " WHERE k + w > 2", "spark": " WHERE CHAR_LENGTH(s) + w > 1"}
KEYS = {"whole": [1, 2, 3], "arrow": [2, 3], "spark": [1, 2]}


def plan_of(directory: Path, results: Path) -> Plan:
    columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items())

    def table(name: str, key: str = "", **options: str) -> str:
        found = ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {name} ({columns}{key}) WITH ({found});"

    url = f"jdbc:sqlite:{results / 'result.db'}"
    script = [
        "SET 'table.local-time-zone' = 'Asia/Tokyo';",
        table("o", connector="filesystem", format="json", path=str(directory / "o")),
        f"CREATE VIEW j AS SELECT {AS_IT_IS}, COUNT(*) AS w FROM o GROUP BY {AS_IT_IS};",
    ]
    for name, where in QUERIES.items():
        sinks = {
            f"{name}_{each}": {"connector": "filesystem", "format": each, "sink.changelog": "true"} for each in FORMATS
        }
        script += [table(sink, path=str(results / sink), **options) for sink, options in sinks.items()]
        script += [
            table(f"{name}_db", ", PRIMARY KEY (k) NOT ENFORCED", connector="jdbc", url=url, table_name=f"{name}_db"),
            table(f"{name}_seen", connector="print", print_identifier=name),
            table(f"{name}_hole", connector="blackhole"),
        ]
        sinks |= {f"{name}_{each}": {} for each in ("db", "seen", "hole")}
        script += [f"INSERT INTO {sink} SELECT {AS_IT_IS} FROM j{where};" for sink in sinks]
    return hintplan.compile_sql("\n".join(script), name="rows")


def outcome(
    spark: SparkSession, results: Path, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> dict[str, dict[str, object]]:
    """What each sink has, as it has it, and how many rows the run says that it got."""
    results.mkdir()
    capsys.readouterr()
    execution = execute(plan, spark, once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    assert list(execution.queries) == ["aggregate_o"]
    said = capsys.readouterr().out.splitlines()
    database = sqlite3.connect(results / "result.db")
    found: dict[str, dict[str, object]] = {}
    for name in QUERIES:
        schema = spark.read.parquet(str(results / f"{name}_parquet"))
        found[name] = {
            "rows": {sink: batch.rows_out for sink, batch in execution.progress.items() if f"sink_{name}_" in sink},
            "seen": sorted(line for line in said if line.startswith(f"{name}> ")),
            "db": sorted(database.execute(f"SELECT * FROM {name}_db"), key=repr),
            "parquet": sorted(map(repr, schema.collect())),
            "types": str(schema.schema),
        } | {
            each: sorted(
                line for path in (results / f"{name}_{each}").glob("part-*") for line in path.read_text().splitlines()
            )
            for each in ("json", "csv")
        }
    database.close()
    return found


@in_turn(0, of=2)
def test_rows_that_come_to_the_driver_are_those_that_stay_in_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*(v for _, v in COLUMNS.values()), strict=True)]
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    on_driver = outcome(spark, tmp_path / "driver", plan_of(tmp_path, tmp_path / "driver"), capsys)
    monkeypatch.setattr(writers, "_BYTES_ON_DRIVER", 0)
    in_spark = outcome(spark, tmp_path / "spark", plan_of(tmp_path, tmp_path / "spark"), capsys)
    for name, keys in KEYS.items():
        assert on_driver[name] == in_spark[name], name
        assert set(on_driver[name]["rows"].values()) == {len(keys)}
        read = [json.loads(line) for line in on_driver[name]["json"]]
        assert sorted(row["k"] for row in read) == keys
        assert {row["k"]: (row["s"], row["i"], row["b"]) for row in read} == {
            row["k"]: (row["s"], row["i"], row["b"]) for row in rows if row["k"] in keys
        }
