"""Dates of files say in which order they are read, and never that one is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hintplan
from hintplan.runtime.run.execute import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
YEAR = 365 * 24 * 3600
TODAY = 56 * YEAR
DATES = {"of 1970": 0, "of today": TODAY, "of 2200": 230 * YEAR, "of 2440": 470 * YEAR}


def test_a_file_of_any_date_hides_no_other(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = tmp_path / "o", tmp_path / "r"
    source.mkdir()
    plan = hintplan.compile_sql(
        f"""CREATE TABLE o (id STRING) WITH ('connector' = 'filesystem', 'format' = 'raw', 'path' = '{source}');
        CREATE TABLE r (id STRING) WITH ('connector' = 'filesystem', 'format' = 'raw', 'path' = '{sink}');
        INSERT INTO r SELECT id FROM o;"""
    )

    def add(name: str, date: float) -> None:
        (source / name).write_text(f"{name}\n")
        os.utime(source / name, (date, date))

    written: list[str] = []
    for round_ in range(2):  # in the second, Spark has noted those of the first
        for about, date in sorted(DATES.items(), key=lambda item: -item[1]):
            add(f"{about} in round {round_}", date)
            written.append(f"{about} in round {round_}")
            if about == "of 2200":
                run(plan, spark, tmp_path)
    run(plan, spark, tmp_path)
    assert sorted(line for file in sink.glob("*.txt") for line in file.read_text().splitlines()) == sorted(written)


def run(plan: hintplan.Plan, spark: SparkSession, folder: Path) -> None:
    execution = execute(plan, spark, checkpoint=str(folder / "checkpoint"), once=True)
    execution.await_termination()
