"""A query is stopped also if what runs in it does not hear that it is to stop."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from runtime.spark.session import prepare_session
from runtime.spark.stopping import STOP_TIMEOUT, stop_query

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 60


class Deaf:
    """A query in whose batch nothing hears an interrupt; ``asked`` says how often it was to stop."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.asked = 0
        self.is_at_work, self._goes_on = threading.Event(), threading.Event()
        (directory / "in").mkdir()
        (directory / "in" / "a.json").write_text('{"k": 1}\n', encoding="utf-8")
        rows = spark.readStream.schema("k BIGINT").json(str(directory / "in"))
        writer = rows.writeStream.foreachBatch(self._write).option("checkpointLocation", str(directory / "checkpoint"))
        self.query = writer.start()

    def _write(self, rows: DataFrame, batch: int) -> None:
        self.is_at_work.set()
        assert self._goes_on.wait(DEADLINE_SECONDS)

    def stop(self) -> None:
        self.asked += 1
        if self.asked == 3:
            self._goes_on.set()
        self.query.stop()


def test_a_query_is_asked_until_it_has_ended(spark: SparkSession, tmp_path: Path) -> None:
    own = prepare_session(spark, time_zone="UTC", once=False)
    own.conf.set(STOP_TIMEOUT, "100ms")
    deaf = Deaf(own, tmp_path)
    assert deaf.is_at_work.wait(DEADLINE_SECONDS)
    stop_query(deaf)
    assert deaf.asked >= 3
    assert not deaf.query.isActive


def test_what_else_a_stop_says_is_not_for_it_to_judge() -> None:
    class Lost:
        def stop(self) -> Any:
            from pyspark.errors import PySparkException

            raise PySparkException("no connection")

    with pytest.raises(Exception, match="no connection"):
        stop_query(Lost())
