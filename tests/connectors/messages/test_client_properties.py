"""Properties of Kafka's client: those of the table, and those that it has without any."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.kafka.client import client_options
from hintplan.runtime.connectors.kafka.source import source_options
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.test_topics import messages, run, source, table, values


def test_what_the_table_declares_takes_the_place_of_what_it_has_without() -> None:
    declared = Table(columns=(), options={"properties.max.poll.records": "7", "properties.client.id": "me"})
    assert client_options(declared, {"max.poll.records": "10000", "batch.size": "5"}) == {
        "kafka.max.poll.records": "7",
        "kafka.client.id": "me",
        "kafka.batch.size": "5",
    }


def test_a_task_does_not_wait_for_messages_that_come_after_its_own() -> None:
    options = {"topic": "t", "properties.bootstrap.servers": "kafka:9092"}
    kept = {**options, "properties.fetch.max.wait.ms": "500"}
    found = [source_options(Table(columns=(), options=each))["kafka.fetch.max.wait.ms"] for each in (options, kept)]
    assert found == ["10", "500"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("read", "written"),
    [
        ({"properties__max__poll__records": "1", "properties__max__partition__fetch__bytes": "100"}, {}),
        ({}, {"properties__buffer__memory": "65536"}),
        ({}, {"properties__batch__size": "0", "properties__max__request__size": "100000"}),
    ],
)
def test_messages_come_through_with_little_room(
    spark: SparkSession, broker: Broker, tmp_path: Path, read: dict[str, str], written: dict[str, str]
) -> None:
    """Such as a buffer that is smaller than what is sent at once without it."""
    given, made = broker.create(), broker.create()
    rows = [{"id": number, "note": "x" * 1000} for number in range(300)]
    broker.send(given, messages(*rows))
    columns = "id BIGINT, note STRING"
    sink = table("r", columns, broker, topic=made, format="json", **written)
    script = f"{source('t', columns, broker, given, **read)}{sink}INSERT INTO r SELECT id, note FROM t;"
    run(spark, script, tmp_path / "checkpoint")
    assert sorted(values(broker, made), key=lambda row: row["id"]) == rows
