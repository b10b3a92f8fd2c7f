"""Columns reach sinks of other types as Flink's sinks take them: converted, or refused with what to write."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.runtime.run.execute import execute
from tests.flink.sinks import CASES, COLUMNS, ENFORCERS, ROWS, ZONE
from tests.spark.programs import add_rows

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "sinks.json").read_text(encoding="utf-8"))
TAKEN = [case for case in CASES if RECORDED["IGNORE"][" ".join(case)] is not None]
REFUSED = [case for case in CASES if case not in TAKEN]
DEADLINE_SECONDS = 180


def script(directory: Path, *cases: tuple[str, str]) -> str:
    """Writes each column of ``cases`` to a column of the type beside it."""
    listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    wanted = ", ".join(f"c{n} {kind}" for n, (_, kind) in enumerate(cases))
    files = "'connector' = 'filesystem', 'format' = 'json'"
    return (
        f"CREATE TABLE o ({listed}) WITH ({files}, 'path' = '{directory / 'o'}');\n"
        f"CREATE TABLE r ({wanted}) WITH ({files}, 'path' = '{directory / 'result'}');\n"
        f"INSERT INTO r SELECT {', '.join(column for column, _ in cases)} FROM o;"
    )


@pytest.mark.parametrize(("column", "kind"), REFUSED)
def test_what_flink_refuses_is_refused_with_its_place(column: str, kind: str, tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        hintplan.compile_sql(script(tmp_path, (column, kind)))
    assert f"3:22: column 'c0' of sink 'r' is {kind}, but '{column}' is {COLUMNS[column]}" in str(caught.value)


@pytest.mark.parametrize(("column", "kind"), TAKEN)
def test_a_note_says_where_a_value_may_not_fit(column: str, kind: str, tmp_path: Path) -> None:
    notes: list[Diagnostic] = []
    hintplan.compile_sql(script(tmp_path, (column, kind)), on_warning=notes.append)
    narrower = {
        *(("s", f"VARCHAR({n})") for n in (3, 5, 9)),
        *(("v", "VARCHAR(3)"), ("w", "VARCHAR(3)"), ("w", "VARCHAR(5)"), ("w", "CHAR(3)"), ("w", "CHAR(9)")),
        *(("n", "DECIMAL(4, 2)"), ("d", "FLOAT"), ("t", "DATE"), ("b", "DECIMAL(10, 2)"), ("b", "DECIMAL(3, 3)")),
        *(("x", "VARBINARY(2)"), ("x", "VARBINARY(9)"), ("y", "VARBINARY(2)"), ("q", "VARBINARY(2)")),
        *(("q", "BINARY(2)"), ("q", "BINARY(5)")),
        *(("d", f"DECIMAL({size})") for size in ("12, 2", "3, 1", "4, 2")),
        *(("t", kind) for kind in ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)")),
        *(
            ("z", kind)
            for kind in ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(0)", "TIMESTAMP_LTZ(3)")
        ),
    }
    said = [note for note in notes if f"column 'c0' of sink 'r' is {kind}, and the query's is" in str(note)]
    assert len(said) == ((column, kind) in narrower)
    if kind.startswith("TIMESTAMP") and said:
        other = kind.partition("(")[0] != COLUMNS[column].partition("(")[0]
        assert ("the time zone of the session" in str(said[0])) == other
        assert ("further digits of a second are cut" in str(said[0])) == (not kind.endswith("(6)"))


def test_another_word_for_the_enforcer_is_refused() -> None:
    with pytest.raises(SqlError, match="expected IGNORE or TRIM_PAD, found 'ERROR'"):
        hintplan.compile_sql("SET 'table.exec.sink.type-length-enforcer' = 'ERROR';")


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("enforcer", ENFORCERS)
def test_values_are_those_that_flink_writes(spark: SparkSession, tmp_path: Path, enforcer: str, mode: str) -> None:
    add_rows(tmp_path, "o", [{**row, **{c: row[c].replace(" ", "T") for c in "tz"}} for row in ROWS])
    plan = hintplan.compile_sql(
        f"SET 'table.exec.sink.type-length-enforcer' = '{enforcer}'; SET 'execution.runtime-mode' = '{mode}';"
        + script(tmp_path, *TAKEN),
        {"parallelism.default": "2", "table.local-time-zone": ZONE},
        name="sinks",
    )
    once = {"checkpoint": str(tmp_path / "checkpoint"), "once": True} if mode == "streaming" else {}
    assert execute(plan, spark, **once).await_termination(DEADLINE_SECONDS)
    rows = [json.loads(line) for path in sorted((tmp_path / "result").glob("*.json")) for line in path.open()]
    for n, case in enumerate(TAKEN):
        values = [row.get(f"c{n}") for row in sorted(rows, key=lambda row: row["c0"])]
        found = [moment(value) for value in values] if case[1].startswith("TIMESTAMP") else values
        wanted = RECORDED[enforcer][" ".join(case)]
        assert found == ([moment(value) for value in wanted] if case[1].startswith("TIMESTAMP") else wanted), case


def moment(text: str) -> datetime:
    """What a time in JSON says, however many digits it has; one without a zone has none."""
    return datetime.fromisoformat(text)
