"""Topics that lack what their checkpoint has written, and topics of which a broker has only dropped old messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import Unavailable
from hintplan.runtime.checkpoint.sink_marks import marks_line, parsed_marks
from hintplan.runtime.connectors.kafka.ends import Marking
from tests.connectors.messages.broker import Broker
from tests.faults.older_sinks import CopyJob
from tests.sample import each_once

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2)]

KINDS = {
    "kafka": {"connector": "kafka", "format": "json"},
    "upsert-kafka": {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"},
}


def job_on(kind: str, spark: SparkSession, at: Path, broker: Broker, topic: str) -> CopyJob:
    options = {**KINDS[kind], "topic": topic, "properties.bootstrap.servers": broker.servers}
    return CopyJob(spark, at, options, key=kind != "kafka")


def numbers(broker: Broker, topic: str) -> list[int]:
    return [json.loads(message.value or b"")["id"] for message in broker.read(topic)]


def dropped(broker: Broker, topic: str, checkpoint: Path) -> str:
    broker.drop(topic)
    return "no longer exists"


def made_anew(broker: Broker, topic: str, checkpoint: Path) -> str:
    broker.drop(topic)
    broker.create(named=topic)
    return "was recreated"


def put_back(broker: Broker, topic: str, checkpoint: Path) -> str:
    """As a broker that is restored from before has it; here the mark says that the topic had more."""
    edit(checkpoint, "ends", {"0": 9})
    return "ends at offset 2 in partition 0, and ended at 9"


def narrowed(broker: Broker, topic: str, checkpoint: Path) -> str:
    edit(checkpoint, "ends", {"0": 2, "1": 0})
    return "no longer has partition 1"


def edit(checkpoint: Path, key: str, value: object) -> None:
    path = checkpoint / "sink_r" / "marks" / "1"
    (mark,) = parsed_marks(path.read_bytes()).values()
    path.write_bytes(marks_line(1, {"sink_r": replace(mark, had={**mark.had, key: value})}))


DAMAGES = [dropped, made_anew, put_back, narrowed]


@pytest.mark.parametrize(("kind", "damage"), each_once(KINDS, DAMAGES))
def test_a_topic_that_is_older_than_its_checkpoint_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path, kind: str, damage: Callable[..., str]
) -> None:
    topic = broker.create()
    job = job_on(kind, spark, tmp_path, broker, topic)
    job.batch(1)
    job.batch(2)
    job.refuses(damage(broker, topic, job.checkpoint))
    left = [1, 2] if damage in (put_back, narrowed) else []
    if damage is dropped:
        broker.create(named=topic)
    job.batch(3, agreed=True)
    assert numbers(broker, topic) == [*left, 3]
    job.batch(4)
    assert numbers(broker, topic) == [*left, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_of_which_old_messages_were_dropped_is_gone_on_with(
    spark: SparkSession, broker: Broker, tmp_path: Path, kind: str
) -> None:
    """Also with batches without rows, messages of others, and more partitions."""
    topic = broker.create()
    job = job_on(kind, spark, tmp_path, broker, topic)
    job.batch(1)
    job.batch()
    broker.send(topic, [('{"id":7}', '{"id":7}')])
    broker.forget(topic)
    job.batch(2)
    broker.widen(topic, 2)
    job.batch(3)
    assert sorted(numbers(broker, topic)) == [2, 3]


def test_a_topic_is_marked_at_once_and_then_from_time_to_time(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, now, marked = broker.create(), 100.0, []
    table = job_on("kafka", spark, tmp_path, broker, topic).plan().tables["r"]
    marking = Marking(table=table, mark=lambda batch, had: marked.append((batch, had["ends"])), clock=lambda: now)
    marking(spark, 0)
    broker.send(topic, [(None, "a")])
    now = 109.0
    marking(spark, 1)
    now = 110.0
    marking(spark, 2)
    assert marked == [(0, {"0": 0}), (2, {"0": 1})]


def test_a_broker_that_is_away_is_not_a_topic_that_is_gone(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.create()
    options = {
        **KINDS["kafka"], "topic": topic, "properties.bootstrap.servers": broker.servers,
        "properties.request.timeout.ms": "1000", "properties.default.api.timeout.ms": "2000",
        "properties.max.block.ms": "2000", "properties.delivery.timeout.ms": "2000", "properties.linger.ms": "0",
    }  # fmt: skip
    job = CopyJob(spark, tmp_path, options)
    job.batch(1)
    broker.kill()
    try:
        with pytest.raises(Unavailable, match=f"table r: the end of topic '{topic}', to which"):
            job.batch(2)
    finally:
        broker.start()
    job.batch(3)
    assert sorted(numbers(broker, topic)) == [1, 2, 3]
