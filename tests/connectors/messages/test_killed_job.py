"""A job from topics to a topic of upserts, killed again and again: what its readers see in the end is exact."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

import planner
import plans
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.test_topics import table
from tests.faults.killed import DEADLINE_SECONDS, KILLS, running
from tests.sample import in_turn

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ORDERS, CUSTOMERS = 30, 10


def script(broker: Broker, orders: str, customers: str, result: str, copies: str) -> str:
    formats = {"key__format": "json", "value__format": "json"}
    return (
        table(
            "orders", "id BIGINT, customer BIGINT", broker, topic=orders, format="json",
            scan__startup__mode="earliest-offset", source__max_offsets_per_trigger="10",
        )
        + table(
            "customers", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", broker, "upsert-kafka",
            topic=customers, **formats,
        )
        + table(
            "result", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", broker, "upsert-kafka", topic=result,
            **formats,
        )
        + table("copies", "id BIGINT, customer BIGINT", broker, topic=copies, format="json")
        + """
        INSERT INTO result SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '2 d') */ o.id, c.name
        FROM orders AS o JOIN customers AS c ON o.customer = c.id;
        INSERT INTO copies SELECT id, customer FROM orders;
        """
    )  # fmt: skip


def commits(directory: Path) -> int:
    return sum(
        max((int(file.name) + 1 for file in folder.iterdir() if file.name.isdigit()), default=0)
        for folder in directory.glob("checkpoint/*/commits")
    )


@in_turn(2, of=3)
def test_a_killed_job_leaves_each_key_with_its_last_row(broker: Broker, tmp_path: Path) -> None:
    chosen = random.Random(7)
    topics = {"orders": broker.create(3), "customers": broker.create(2), "result": broker.create(3)}
    copies = broker.create(2)
    plans.dump(planner.compile_sql(script(broker, **topics, copies=copies)), tmp_path / "plan.json")
    names: dict[int, str] = {}
    bought: dict[int, int] = {}
    for turn in range(KILLS):
        for _ in range(CUSTOMERS):
            customer, name = chosen.randrange(CUSTOMERS), f"n{turn}.{chosen.randrange(100)}"
            gone = chosen.random() < 0.3
            row = None if gone else json.dumps({"id": customer, "name": name})
            broker.send(topics["customers"], [(json.dumps({"id": customer}), row)])
            if gone:
                names.pop(customer, None)
            else:
                names[customer] = name
        first = turn * ORDERS
        bought |= {number: chosen.randrange(CUSTOMERS) for number in range(first, first + ORDERS)}
        rows = [(None, json.dumps({"id": i, "customer": bought[i]})) for i in range(first, first + ORDERS)]
        broker.send(topics["orders"], rows)
        before = commits(tmp_path)
        with running(tmp_path, "--trigger", "10 ms") as process:
            until = time.monotonic() + DEADLINE_SECONDS
            while commits(tmp_path) < before + 1 + turn:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.01)
    with running(tmp_path, "--once") as process:
        assert process.wait(DEADLINE_SECONDS) == 0, (tmp_path / "log").read_text()
    found = {json.loads(key or b"")["id"]: json.loads(value) for key, value in broker.latest(topics["result"]).items()}
    expected = {i: {"id": i, "name": names[c]} for i, c in bought.items() if c in names}
    assert found == expected
    copied = {row["id"]: row["customer"] for row in (json.loads(m.value or b"") for m in broker.read(copies))}
    assert copied == bought, "each at least once"
