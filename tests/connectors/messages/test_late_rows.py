"""Late rows that go to a topic: each of them comes at least once, also if a batch runs again after a crash."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.lakes.lakes import in_with
from tests.connectors.messages.broker import Broker
from tests.runtime.event_time.test_late_rows_on_spark import late_rows_of_replays

pytestmark = pytest.mark.spark


def test_a_topic_has_each_late_row_once_and_those_of_a_batch_that_runs_again_twice(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.create(2)
    options = {
        "connector": "kafka", "topic": topic, "properties.bootstrap.servers": broker.servers, "format": "json"
    }  # fmt: skip
    first, second = late_rows_of_replays(spark, tmp_path, in_with(options))
    sent = [json.loads(message.value or b"") for message in broker.read(topic)]
    assert {row["watermark"] for row in sent} == {"2024-01-01 12:00:12Z", "2024-01-01 12:00:13Z"}
    times = {"late one": "2024-01-01 12:00:02", None: "2024-01-01 12:00:09", "later": "2024-01-01 12:00:03"}
    assert all(row["at"] == times[row["words"]] for row in sent)
    # The batch of the first rows runs again, and a topic does not know that it has them.
    assert Counter((row["operator"], row["device"], row["words"], row["n"]) for row in sent) == Counter(first + second)
