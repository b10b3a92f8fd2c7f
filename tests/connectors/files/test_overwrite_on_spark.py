"""INSERT OVERWRITE into directories: what Flink makes of them, and nothing of a job that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import PlanError, RunError
from tests.connectors.overwriting import RECORDED, rows_of, run
from tests.flink.files import BEFORE, OVERWRITES

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]


def options(at: Path) -> str:
    return f"'connector' = 'filesystem', 'path' = '{at}/t', 'format' = 'json'"


def there(at: Path) -> list[list[Any]]:
    """The rows of the table, by Python."""
    found = []
    for file in sorted((at / "t").rglob("part-*")):
        below = file.parent.relative_to(at / "t").parts
        assert not any(part.startswith("_") for part in below)
        given: dict[str, Any] = dict(part.split("=") for part in below)
        if "p" in given:
            given["p"] = int(given["p"])
        for line in file.read_text().splitlines():
            row = {**json.loads(line), **given}
            found.append([row[name] for name in "vpr"])
    return sorted(found)


@pytest.mark.parametrize("name", OVERWRITES)
def test_rows_are_those_that_flink_leaves(spark: SparkSession, tmp_path: Path, name: str) -> None:
    by, partition, query = OVERWRITES[name]
    run(spark, options(tmp_path), tmp_path, "INSERT INTO t SELECT * FROM b", by)
    assert there(tmp_path) == rows_of(BEFORE)
    statement = f"INSERT OVERWRITE t {partition} {query}"
    if name == "the table itself":
        with pytest.raises(PlanError, match="a batch job must not read a table while it is written"):
            run(spark, options(tmp_path), tmp_path, statement, by)
        return
    run(spark, options(tmp_path), tmp_path, statement, by)
    assert there(tmp_path) == RECORDED[name]
    assert not list((tmp_path / "t").glob("_hintplan*"))


@pytest.mark.parametrize("by", ["", "p"])
def test_a_job_that_fails_takes_nothing_away(spark: SparkSession, tmp_path: Path, by: str) -> None:
    run(spark, options(tmp_path), tmp_path, "INSERT INTO t SELECT * FROM b", by)
    with pytest.raises(RunError):
        run(spark, options(tmp_path), tmp_path, "INSERT OVERWRITE t SELECT 1 / (v - 13), p, r FROM n", by)
    assert there(tmp_path) == rows_of(BEFORE)
    assert not list((tmp_path / "t").glob("_hintplan*"))
