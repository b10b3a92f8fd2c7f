"""Topic to topic, beside Flink's connector for Kafka: the same broker, the same messages, the same SQL.

    python benchmarks/topics.py --messages 2000000
    python benchmarks/topics.py --format csv

A broker of one process is started, one topic is filled with JSON or CSV, and each job reads it from beginning to end
and writes to topics of its own: rows as they come (`passed`), a filter with an expression (`filtered`), a join with a
topic of customers (`joined`), sums by key into a topic of upserts (`summed`). Engines take turns, each run is one job;
what it has written is counted, and of `summed` compared.
Flink runs as benchmarks/flink.py says, with its mini-batches; both have two cores.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.flink import HEAP, THROUGHPUT, Flink, flink_python
from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.spark.session import start_session
from tests.connectors.messages.broker import Broker, running_broker, spark_conf

PARTITIONS = 4
CUSTOMERS = 50_000
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
OF_CUSTOMERS = "customer BIGINT, name STRING"
COLUMNS = "id BIGINT, customer BIGINT, country STRING, total DOUBLE, note STRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A table that is written to, and the query of its rows."""

    name: str
    columns: str
    query: str
    upserts: bool = False


JOBS = (
    Job(name="passed", columns=COLUMNS, query="SELECT id, customer, country, total, note FROM orders"),
    Job(
        name="filtered",
        columns="id BIGINT, country STRING, gross DOUBLE",
        query="SELECT id, UPPER(country), total * 1.19E0 FROM orders WHERE total > 500",
    ),
    Job(
        name="joined",
        columns="id BIGINT, name STRING, total DOUBLE",
        query="SELECT o.id, c.name, o.total FROM orders AS o JOIN customers AS c ON o.customer = c.customer",
    ),
    Job(
        name="summed",
        columns="customer BIGINT, n BIGINT, total BIGINT, PRIMARY KEY (customer) NOT ENFORCED",
        query="SELECT customer, COUNT(*), SUM(id) FROM orders GROUP BY customer",
        upserts=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics that a job reads."""

    orders: str
    customers: str


def script(
    job: Job, broker: Broker, sources: Topics, target: str, source_options: Mapping[str, str], format_: str
) -> str:
    """The SQL of a job, for either engine."""
    servers = f"'properties.bootstrap.servers' = '{broker.servers}'"
    more = "".join(f", '{key}' = '{value}'" for key, value in source_options.items())
    read = f"{servers}, 'format' = '{format_}', 'scan.startup.mode' = 'earliest-offset'{more}"
    kind = f"'connector' = 'upsert-kafka', 'key.format' = '{format_}', 'value.format' = '{format_}'"
    written = kind if job.upserts else f"'connector' = 'kafka', 'format' = '{format_}'"
    return (
        f"CREATE TABLE orders ({COLUMNS}) WITH ('connector' = 'kafka', 'topic' = '{sources.orders}', {read});\n"
        f"CREATE TABLE customers ({OF_CUSTOMERS}) "
        f"WITH ('connector' = 'kafka', 'topic' = '{sources.customers}', {read});\n"
        f"CREATE TABLE r ({job.columns}) WITH ({written}, 'topic' = '{target}', {servers});\n"
        f"INSERT INTO r {job.query};"
    )


def orders(count: int) -> Iterable[dict[str, Any]]:
    """So many orders."""
    chance = random.Random(1)
    for number in range(count):
        yield {
            "id": number, "customer": chance.randrange(CUSTOMERS), "country": chance.choice(("de", "fr", "it")),
            "total": round(chance.uniform(0, 1000), 2), "note": "by the door, please",
        }  # fmt: skip


def customers() -> Iterable[dict[str, Any]]:
    """All customers."""
    return ({"customer": number, "name": f"customer {number}"} for number in range(CUSTOMERS))


def message_of(row: dict[str, Any], format_: str) -> bytes:
    if format_ == "json":
        return json.dumps(row).encode()
    return ",".join(f'"{value}"' if isinstance(value, str) else str(value) for value in row.values()).encode()


def fill(broker: Broker, rows: Iterable[dict[str, Any]], format_: str) -> str:
    """A topic with these rows."""
    from confluent_kafka import Producer

    topic = broker.create(PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number, row in enumerate(rows):
        while True:
            try:
                producer.produce(topic, message_of(row, format_), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return topic


def ours(spark: Any, text: str) -> float:
    """Seconds from the start of the query to its end."""
    began = time.monotonic()
    execution = execute(compile_sql(text, {"parallelism.default": "2"}), spark, once=True)
    assert execution.await_termination(1200)
    execution.raise_failure()
    return time.monotonic() - began


def written(job: Job, broker: Broker, topic: str, format_: str) -> Any:
    """What a job has written: how many messages, or the rows of the keys."""
    if job.upserts:
        values = broker.latest(topic).values()
        if format_ == "csv":
            return sorted(tuple(map(int, value.decode().split(","))) for value in values)
        return sorted((row["customer"], row["n"], row["total"]) for row in map(json.loads, values))
    return len(broker.read(topic))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--format", choices=("json", "csv"), default="json")
    parser.add_argument("--flink", metavar="PYTHON")
    parser.add_argument("--jobs", default=",".join(job.name for job in JOBS))
    chosen = parser.parse_args()
    python = flink_python(chosen.flink)
    jars = python.parent.parent / "jars"
    name, version = CONNECTOR.split(":")[1:]
    if not (jars / f"{name}-{version}.jar").exists():
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={CONNECTOR}", f"-DoutputDirectory={jars}"]
        subprocess.run(command, check=True)
    settings = {**THROUGHPUT, **HEAP, "pipeline.jars": f"file://{jars / f'{name}-{version}.jar'}"}
    with running_broker() as broker, tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        assert broker is not None, "make kafka"
        of_customers = fill(broker, customers(), chosen.format)
        every = Topics(orders=fill(broker, orders(chosen.messages), chosen.format), customers=of_customers)
        some = Topics(orders=fill(broker, orders(chosen.messages // 10), chosen.format), customers=of_customers)
        conf = {"spark.driver.memory": "4g", "spark.local.dir": scratch, "spark.sql.warehouse.dir": scratch}
        spark = start_session("local[2]", {**conf, **spark_conf()})
        print(f"{chosen.messages:,} messages, seconds of each run, rows/s of the median one", flush=True)
        with Flink.start(python, jvm=("-Xmx4g",)) as flink:
            for job in (job for job in JOBS if job.name in chosen.jobs.split(",")):
                seconds: dict[str, list[float]] = {"hintplan": [], "Flink": []}
                results: dict[str, Any] = {}
                for run in range(chosen.runs + 1):
                    source = every if run else some  # the first, of a tenth, is for compilers and caches
                    for engine in seconds:
                        target = broker.create(PARTITIONS)
                        if engine == "Flink":
                            bounded = {"scan.bounded.mode": "latest-offset"}
                            took = flink.run(script(job, broker, source, target, bounded, chosen.format), settings)
                        else:
                            took = ours(spark, script(job, broker, source, target, {}, chosen.format))
                        if run:
                            seconds[engine].append(took)
                        if run == chosen.runs:
                            results[engine] = written(job, broker, target, chosen.format)
                assert results["hintplan"] == results["Flink"], f"{job.name}: the engines differ"
                for engine, found in seconds.items():
                    rate = chosen.messages / statistics.median(found)
                    print(
                        f"{job.name:10} {engine:10} {' '.join(f'{s:6.1f}' for s in found)}  {rate:12,.0f}", flush=True
                    )
        spark.stop()


if __name__ == "__main__":
    main()
