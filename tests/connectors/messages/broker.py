"""A broker of Kafka of the tests' own: one process, with its data in a directory that goes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.connectors.lookup_sources.servers import free_port, wait_for_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hintplan" / "kafka"
LISTED = Path(__file__).parents[3] / ".ci" / "kafka-jars"
_OF_SPARK = ("spark-avro", "spark-sql-kafka", "spark-token-provider", "commons-pool2")
_SHARED = "kafka-clients"


def jars() -> list[Path]:
    """All jars that are listed; empty if one is not there."""
    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [CACHE / line.rpartition("/")[2] for line in lines]
    return found if all(path.is_file() for path in found) else []


def spark_conf() -> dict[str, str]:
    """What lets Spark read topics and Avro, in whichever version the tests have; nothing if there are no jars."""
    import pyspark

    from hintplan.runtime.spark.versions import package_version

    version, _ = package_version(pyspark.__version__)
    found = [jar for jar in jars() if jar.name.startswith((*_OF_SPARK, _SHARED))]
    chosen = [jar for jar in found if not jar.name.startswith("spark-") or jar.name.endswith(f"-{version}.jar")]
    return {"spark.jars": ",".join(map(str, chosen))} if chosen else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as a reader finds it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(slots=True, kw_only=True)
class _Process:
    """A process that can be started more than once."""

    command: Sequence[str]
    log: Path
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(self.command, stdout=log, stderr=log)

    def stop(self) -> None:
        if self.running is not None:
            self.running.terminate()
            try:
                self.running.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait(20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that listens on ``port``; topics are created, written to and read without Spark."""

    port: int
    process: _Process | None = None
    """What listens there, if it is of the tests' own."""
    client: Mapping[str, str] = field(default_factory=dict)
    """What a client that is not Spark's is told besides the address."""

    def start(self) -> None:
        assert self.process is not None
        self.process.start()
        wait_for_port(self.port)

    def kill(self) -> None:
        """SIGKILL it; what it has stays where it is."""
        assert self.process is not None
        self.process.kill()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def create(self, partitions: int = 1, *, named: str | None = None) -> str:
        """A new topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        name = named or f"t-{uuid.uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": self.servers, **self.client})
        for done in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            done.result(30)
        return name

    def drop(self, topic: str) -> None:
        """Remove a topic, and wait until it is gone."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers, **self.client})
        for done in admin.delete_topics([topic]).values():
            done.result(30)
        until = time.monotonic() + 30
        while topic in admin.list_topics(timeout=30).topics:
            assert time.monotonic() < until, f"{topic} is still there"
            time.sleep(0.05)

    def forget(self, topic: str) -> None:
        """Drop the messages that are there, as a broker does by age; their offsets are not given again."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers, **self.client})
        partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
        for done in admin.delete_records([TopicPartition(topic, n, -1) for n in partitions]).values():
            done.result(30)

    def widen(self, topic: str, partitions: int) -> None:
        """Give a topic this many partitions."""
        from confluent_kafka.admin import AdminClient, NewPartitions

        admin = AdminClient({"bootstrap.servers": self.servers, **self.client})
        for done in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(30)

    def send(
        self,
        topic: str,
        messages: Sequence[tuple[str | bytes | None, str | bytes | None]],
        *,
        partition: int | None = None,
        headers: Mapping[str, bytes] | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Append messages, each with its key and its value, in this order."""
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 0, "partitioner": "murmur2_random", **self.client}
        )
        more = {key: value for key, value in (("partition", partition), ("timestamp", timestamp)) if value is not None}
        for key, value in messages:
            producer.produce(topic, key=key, value=value, headers=list((headers or {}).items()), **more)
        assert producer.flush(30) == 0

    def read(self, topic: str) -> list[Message]:
        """All messages that are in the topic, by partition and offset."""
        from confluent_kafka import Consumer, TopicPartition

        own = {"group.id": uuid.uuid4().hex, "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": self.servers, **own, **self.client})
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            bounds = {n: _bounds(consumer, TopicPartition(topic, n)) for n in partitions}
            consumer.assign([TopicPartition(topic, n, first) for n, (first, _) in bounds.items()])
            found: list[Message] = []
            while len(found) < sum(end - first for first, end in bounds.values()):
                message = consumer.poll(30)
                assert message is not None, "the broker does not answer"
                assert message.error() is None, message.error()
                found.append(
                    Message(
                        partition=message.partition(), offset=message.offset(), key=message.key(),
                        value=message.value(), headers=tuple(message.headers() or ()),
                    )
                )  # fmt: skip
            return sorted(found, key=lambda each: (each.partition, each.offset))
        finally:
            consumer.close()

    def latest(self, topic: str) -> dict[bytes | None, bytes]:
        """The last value of each key, without those that have none any more."""
        found = {message.key: message.value for message in self.read(topic)}
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A listener with SASL over TLS: settings of the broker, what its storage is made with, what clients are told."""

    settings: str
    storage: tuple[str, ...]
    client: Mapping[str, str]


@contextmanager
def running_broker(secured: Secured | None = None) -> Iterator[Broker | None]:
    """A running broker; None if its jars are not there."""
    found = [jar for jar in jars() if not jar.name.startswith(_OF_SPARK)]
    if not found:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="hintplan-kafka-"))
    try:
        port, control = free_port(), free_port()
        listener = "SASL_SSL" if secured else "PLAINTEXT"
        settings = directory / "server.properties"
        settings.write_text(
            f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners={listener}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners={listener}://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name={listener}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{listener}:{listener}
log.dirs={directory}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
{secured.settings if secured else ""}
"""
        )
        classes = ":".join(map(str, found))
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classes]
        identity = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        with (directory / "log").open("wb") as log:
            subprocess.run(
                [*java, "kafka.tools.StorageTool", "format", f"--cluster-id={identity}", "-c", str(settings),
                 *(secured.storage if secured else ())],
                stdout=log, stderr=log, check=True, timeout=180,
            )  # fmt: skip
        process = _Process(command=[*java, "kafka.Kafka", str(settings)], log=directory / "log")
        broker = Broker(port=port, process=process, client=secured.client if secured else {})
        try:
            broker.start()
            yield broker
        finally:
            process.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _bounds(consumer: Any, partition: Any) -> tuple[int, int]:
    """The first and the next offset of a partition, which has no leader in the moments after its creation."""
    from confluent_kafka import KafkaError, KafkaException

    until = time.monotonic() + 30
    while True:
        try:
            first, end = consumer.get_watermark_offsets(partition, timeout=30)
            return first, end
        except KafkaException as error:
            leaderless = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
            if error.args[0].code() not in leaderless or time.monotonic() >= until:
                raise
            time.sleep(0.05)
