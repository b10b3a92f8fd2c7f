"""Topics of a real broker, read and written by jobs, and looked at by a client that is not Spark's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.errors import RunError, SqlError
from hintplan.runtime.connectors.kafka.metadata import values as kafka_values
from hintplan.runtime.run.execute import execute
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.registry import Registry

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 120


def table(name: str, columns: str, broker: Broker, connector: str = "kafka", **options: str) -> str:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    given = {"connector": connector, "properties.bootstrap.servers": broker.servers, **named}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({listed});\n"


def source(name: str, columns: str, broker: Broker, topic: str, **options: str) -> str:
    given = {"format": "json"} if not any(key.startswith("value__") for key in options) else {}
    return table(name, columns, broker, topic=topic, **{**given, "scan__startup__mode": "earliest-offset", **options})


def run(spark: SparkSession, script: str, checkpoint: Path, policy: Policy | None = None) -> Any:
    plan = hintplan.compile_sql(script)
    execution = execute(plan, spark, checkpoint=str(checkpoint), once=True, policy=policy or Policy())
    assert execution.await_termination(DEADLINE_SECONDS)
    execution.raise_failure()
    return execution


def messages(*rows: dict[str, Any]) -> list[tuple[None, str]]:
    return [(None, json.dumps(row)) for row in rows]


def values(broker: Broker, topic: str) -> list[Any]:
    return [json.loads(message.value or b"null") for message in broker.read(topic)]


def test_rows_go_from_topic_to_topic_once_each_over_restarts(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    orders, copies = broker.create(3), broker.create(2)
    script = (
        source("orders", "id BIGINT, note STRING", broker, orders)
        + table("copies", "id BIGINT, note STRING", broker, topic=copies, format="json")
        + "INSERT INTO copies SELECT id, note FROM orders WHERE id <> 3;"
    )
    for first in (0, 4, 8):
        broker.send(orders, messages(*({"id": i, "note": f"n{i}"} for i in range(first, first + 4))))
        run(spark, script, tmp_path / "checkpoint")
    found = sorted(values(broker, copies), key=lambda row: row["id"])
    assert found == [{"id": i, "note": f"n{i}"} for i in range(12) if i != 3]


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("json", [b'{"a":"10:11:12","b":"10:11:12.34"}', b'{"a":null,"b":"23:00:00"}']),
        ("csv", [b"10:11:12,10:11:12.34", b",23:00:00"]),
    ],
)
def test_times_of_the_day_are_texts_in_messages(
    spark: SparkSession, broker: Broker, tmp_path: Path, format_: str, expected: list[bytes]
) -> None:
    topic, result = broker.create(), broker.create()
    broker.send(topic, messages({"a": "10:11:12.9", "b": "10:11:12.340"}, {"b": "23:00:00"}, {"a": "x"}))
    columns = "a TIME, b TIME(3)"
    script = (
        source("given", columns, broker, topic, **{"json__ignore-parse-errors": "true"})
        + table("result", columns, broker, topic=result, format=format_)
        + "INSERT INTO result SELECT a, b FROM given WHERE b >= TIME '10:11:12.3';"
    )
    run(spark, script, tmp_path / "checkpoint")
    assert [message.value for message in broker.read(result)] == expected


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("json", [b'{"id":1,"note":"a","at":"2024-01-02 03:04:05.5"}', b'{"id":2,"note":null,"at":null}']),
        ("csv", [b'1,a,"2024-01-02 03:04:05.5"', b"2,,"]),
        (
            "debezium-json",
            [
                b'{"before":null,"after":{"id":1,"note":"a","at":"2024-01-02 03:04:05.5"},"op":"c"}',
                b'{"before":null,"after":{"id":2,"note":null,"at":null},"op":"c"}',
            ],
        ),
    ],
)
@pytest.mark.parametrize("where", ["id > 0", "CHAR_LENGTH(UPPER(CAST(id AS STRING))) > 0"])
def test_a_message_is_made_of_each_row_in_the_task_that_has_it_or_of_sparks_rows(
    spark: SparkSession, broker: Broker, tmp_path: Path, where: str, format_: str, expected: list[bytes]
) -> None:
    """The first condition is one of those that are done in Arrow, the second Spark's."""
    topic, result = broker.create(), broker.create()
    broker.send(topic, messages({"id": 1, "note": "a", "at": "2024-01-02 03:04:05.5"}, {"id": 2}))
    columns = "id BIGINT, note STRING, `at` TIMESTAMP(6)"
    script = (
        source("orders", columns, broker, topic)
        + table("result", columns, broker, topic=result, format=format_)
        + f"INSERT INTO result SELECT id, note, `at` FROM orders WHERE {where};"
    )
    (query,) = run(spark, script, tmp_path / "checkpoint").queries.values()
    counted = (each["observedMetrics"]["sink_result"]["rows_out"] for each in query.recentProgress)
    assert sum(counted) == 2
    assert [message.value for message in broker.read(result)] == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan__startup__mode": "earliest-offset"}, [0, 1, 2, 3]),
        ({"scan__startup__mode": "latest-offset"}, []),
        ({"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "2000"}, [2, 3]),
        ({"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "9000"}, []),
        (
            {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "partition:0,offset:1"},
            [1, 2, 3],
        ),
    ],
)  # fmt: skip
def test_reading_starts_where_the_table_says(
    spark: SparkSession, broker: Broker, tmp_path: Path, options: dict[str, str], expected: list[int]
) -> None:
    topic, result = broker.create(), broker.create()
    for i in range(4):
        broker.send(topic, messages({"id": i}), timestamp=i * 1000 + 1)
    script = (
        source("orders", "id BIGINT", broker, topic, **options)
        + table("result", "id BIGINT", broker, topic=result, format="json")
        + "INSERT INTO result SELECT id FROM orders;"
    )
    run(spark, script, tmp_path / "checkpoint")
    assert [row["id"] for row in values(broker, result)] == expected
    broker.send(topic, messages({"id": 9}))
    run(spark, script, tmp_path / "checkpoint")
    assert [row["id"] for row in values(broker, result)] == [*expected, 9], "the checkpoint knows how far it was read"


def test_a_batch_job_reads_from_start_to_end(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic, result = broker.create(), broker.create()
    broker.send(topic, messages(*({"id": i} for i in range(6))))
    script = (
        "SET 'execution.runtime-mode' = 'batch';"
        + source(
            "orders", "id BIGINT", broker, topic, scan__startup__mode="specific-offsets",
            scan__startup__specific_offsets="partition:0,offset:1", scan__bounded__mode="specific-offsets",
            scan__bounded__specific_offsets="partition:0,offset:5",
        )
        + table("result", "n BIGINT, s BIGINT", broker, topic=result, format="json")
        + "INSERT INTO result SELECT COUNT(*), SUM(id) FROM orders;"
    )  # fmt: skip
    execution = execute(hintplan.compile_sql(script), spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    execution.raise_failure()
    assert values(broker, result) == [{"n": 4, "s": 10}]


def test_a_message_that_does_not_fit_is_named_by_its_offset(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.create()
    broker.send(topic, [*messages({"id": 1}), (None, '{"id": "one"}')])
    script = (
        source("orders", "id BIGINT", broker, topic)
        + "CREATE TABLE result (id BIGINT) WITH ('connector' = 'blackhole');"
        + "INSERT INTO result SELECT id FROM orders;"
    )
    execution = execute(hintplan.compile_sql(script), spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    with pytest.raises(RunError, match=f"topic {topic}, partition 0, offset 1 .*field 'id': 'one' is not BIGINT"):
        execution.await_termination(DEADLINE_SECONDS)
    result = broker.create()
    lenient = (
        source("orders", "id BIGINT", broker, topic, json__ignore_parse_errors="true")
        + table("result", "id BIGINT", broker, topic=result, format="json")
        + "INSERT INTO result SELECT id FROM orders;"
    )
    run(spark, lenient, tmp_path / "lenient")
    assert values(broker, result) == [{"id": 1}, {"id": None}]


def test_a_source_that_says_no_start_is_refused() -> None:
    script = (
        table("orders", "id BIGINT", Broker(port=9092), topic="t", format="json")
        + "CREATE TABLE result (id BIGINT) WITH ('connector' = 'blackhole');\n"
        + "INSERT INTO result SELECT id FROM orders;"
    )
    with pytest.raises(SqlError, match="there is no start position") as refused:
        hintplan.compile_sql(script)
    assert "'scan.startup.mode' = 'earliest-offset'" in str(refused.value)
    plan = hintplan.compile_sql(script.replace("'format'", "'scan.startup.mode' = 'latest-offset', 'format'"))
    orders = plan.tables["orders"]
    options = {key: value for key, value in orders.options.items() if key != "scan.startup.mode"}
    edited = replace(plan, tables={**plan.tables, "orders": replace(orders, options=options)})
    assert [problem.path for problem in plan_problems(edited)] == ["tables.orders.options.scan.startup.mode"]


def test_a_topic_of_upserts_has_the_last_row_of_each_key(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    customers, totals = broker.create(2), broker.create(3)
    declared = "id BIGINT, country STRING, PRIMARY KEY (id) NOT ENFORCED"
    formats = {"key__format": "json", "value__format": "json"}
    script = (
        table("customers", declared, broker, "upsert-kafka", topic=customers, **formats)
        + table(
            "totals", "country STRING, customers BIGINT, PRIMARY KEY (country) NOT ENFORCED", broker, "upsert-kafka",
            topic=totals, **formats,
        )
        + "INSERT INTO totals SELECT country, COUNT(*) FROM customers GROUP BY country;"
    )  # fmt: skip

    def upsert(number: int, country: str | None) -> tuple[str, str | None]:
        row = None if country is None else json.dumps({"id": number, "country": country})
        return json.dumps({"id": number}), row

    steps: list[list[tuple[int, str | None]]] = [
        [(1, "DE"), (2, "DE"), (3, "FR")],
        [(1, "FR"), (1, "DE"), (2, None), (4, "IT"), (4, None)],
        [(3, None), (5, "DE"), (1, "IT")],
    ]
    state: dict[int, str] = {}
    for step in steps:
        broker.send(customers, [upsert(*change) for change in step])
        run(spark, script, tmp_path / "checkpoint")
        for number, country in step:
            state.pop(number, None)
            if country is not None:
                state[number] = country
        expected = {
            json.dumps({"country": country}, separators=(",", ":")).encode(): {
                "country": country, "customers": sum(each == country for each in state.values()),
            }
            for country in state.values()
        }  # fmt: skip
        assert {key: json.loads(value) for key, value in broker.latest(totals).items()} == expected
    deleted = [message.key for message in broker.read(totals) if message.value is None]
    assert b'{"country":"FR"}' in deleted


@pytest.mark.parametrize("include", ["ALL", "EXCEPT_KEY"])
def test_keys_and_values_have_the_columns_that_the_table_says(
    spark: SparkSession, broker: Broker, tmp_path: Path, include: str
) -> None:
    topic, result = broker.create(), broker.create()
    value = {"v": "a"} if include == "EXCEPT_KEY" else {"k_id": 7, "v": "a"}
    prefix = {"key__fields_prefix": "k_"} if include == "EXCEPT_KEY" else {}
    key = {"id": 7} if include == "EXCEPT_KEY" else {"k_id": 7}
    broker.send(topic, [(json.dumps(key), json.dumps(value))])
    parts = {
        "key__fields": "k_id",
        "key__format": "json",
        "value__format": "json",
        "value__fields_include": include,
        **prefix,
    }
    script = (
        source("orders", "k_id BIGINT, v STRING", broker, topic, **parts)
        + table("result", "k_id BIGINT, v STRING", broker, topic=result, **parts)
        + "INSERT INTO result SELECT k_id + 1, UPPER(v) FROM orders;"
    )
    run(spark, script, tmp_path / "checkpoint")
    (found,) = broker.read(result)
    assert (json.loads(found.key or b""), json.loads(found.value or b"")) == (
        dict.fromkeys(key, 8),
        {name: 8 if name == "k_id" else "A" for name in value},
    )


CHANGES = {
    "debezium-json": [
        {"before": None, "after": {"id": 1, "v": "a"}, "op": "r"},
        {"before": None, "after": {"id": 2, "v": "a"}, "op": "c"},
        {"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}, "op": "u"},
        {"before": {"id": 2, "v": "a"}, "after": None, "op": "d"},
        {"before": None, "after": {"id": 3, "v": "b"}, "op": "c"},
    ],
    "canal-json": [
        {"data": [{"id": 1, "v": "a"}, {"id": 2, "v": "a"}], "old": None, "type": "INSERT"},
        {"data": [{"id": 1, "v": "b"}], "old": [{"v": "a"}], "type": "UPDATE"},
        {"data": [{"id": 2, "v": "a"}], "type": "DELETE"},
        {"data": [{"id": 3, "v": "b"}], "type": "INSERT"},
    ],
}


@pytest.mark.parametrize("format_", CHANGES)
def test_changes_of_a_database_are_aggregated_and_written_again(
    spark: SparkSession, broker: Broker, tmp_path: Path, format_: str
) -> None:
    topic, counts, result = broker.create(), broker.create(), broker.create()
    script = (
        source("orders", "id BIGINT, v STRING", broker, topic, format=format_)
        + table(
            "counts", "v STRING, n BIGINT, PRIMARY KEY (v) NOT ENFORCED", broker, "upsert-kafka", topic=counts,
            key__format="raw", value__format="csv",
        )
        + table("result", "id BIGINT, v STRING", broker, topic=result, format=format_)
        + "INSERT INTO counts SELECT v, COUNT(*) FROM orders GROUP BY v;"
        + "INSERT INTO result SELECT id, v FROM orders;"
    )  # fmt: skip
    for change in CHANGES[format_]:
        broker.send(topic, [("k", json.dumps(change))])
        run(spark, script, tmp_path / "checkpoint")
    assert broker.latest(counts) == {b"b": b"b,2"}
    rows: list[dict[str, Any]] = []
    for change in values(broker, result):
        if format_ == "debezium-json":
            rows.append(change["after"]) if change["op"] == "c" else rows.remove(change["before"])
        else:
            (row,) = change["data"]
            rows.append(row) if change["type"] == "INSERT" else rows.remove(row)
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 1, "v": "b"}, {"id": 3, "v": "b"}]


def test_two_topics_share_what_is_computed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic, totals, changes = broker.create(), broker.create(), broker.create()
    broker.send(topic, messages(*({"id": i, "v": "ab"[i % 2]} for i in range(5))))
    script = (
        source("orders", "id BIGINT, v STRING", broker, topic)
        + table(
            "totals", "v STRING, n BIGINT, PRIMARY KEY (v) NOT ENFORCED", broker, "upsert-kafka", topic=totals,
            key__format="raw", value__format="json", value__fields_include="EXCEPT_KEY",
        )
        + table("changes", "v STRING, n BIGINT", broker, topic=changes, format="canal-json")
        + "CREATE VIEW counted AS SELECT v, COUNT(*) AS n FROM orders GROUP BY v;"
        + "INSERT INTO totals SELECT v, n FROM counted; INSERT INTO changes SELECT v, n FROM counted;"
    )  # fmt: skip
    execution = run(spark, script, tmp_path / "checkpoint")
    assert broker.latest(totals) == {b"a": b'{"n":3}', b"b": b'{"n":2}'}
    added = [change["data"][0] for change in values(broker, changes) if change["type"] == "INSERT"]
    assert sorted(added, key=lambda row: row["v"]) == [{"v": "a", "n": 3}, {"v": "b", "n": 2}]
    assert {name: each.rows_out for name, each in execution.progress.items()} == {"sink_totals": 2, "sink_changes": 2}


def test_schemas_are_those_of_a_registry(spark: SparkSession, broker: Broker, tmp_path: Path, registry: str) -> None:
    topic, result = broker.create(), broker.create()
    # Two versions of a schema, of which the second has a field more; both by hand: head, then Avro.
    first = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "long"}]}
    second = {"type": "record", "name": "order", "fields": [{"name": "note", "type": "string"}, *first["fields"]]}
    Registry.schemas |= {7: json.dumps(first), 8: json.dumps(second)}
    broker.send(topic, [(None, b"\0\0\0\0\x07" + b"\x02"), (None, b"\0\0\0\0\x08" + b"\x04hi" + b"\x04")])
    options = {"avro-confluent.url": registry}
    script = (
        source("orders", "id BIGINT, note STRING", broker, topic, format="avro-confluent", **options)
        + table(
            "result", "id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED", broker, "upsert-kafka", topic=result,
            key__format="raw", value__format="avro-confluent", **{"value.avro-confluent.url": registry},
        )
        + "INSERT INTO result SELECT id, MAX(note) FROM orders GROUP BY id;"
    )  # fmt: skip
    run(spark, script, tmp_path / "checkpoint")
    number = Registry.subjects[f"{result}-value"]
    head = b"\0" + number.to_bytes(4, "big")
    key = [i.to_bytes(8, "big") for i in (1, 2)]
    assert broker.latest(result) == {key[0]: head + b"\x02\x02\x00", key[1]: head + b"\x02\x04\x02\x04hi"}
    fields = json.loads(Registry.schemas[number])["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [
        ("id", ["null", "long"]),
        ("note", ["null", "string"]),
    ]
    broker.send(topic, [(None, b"\0\0\0\0\x63\x02")])
    with pytest.raises(RunError, match=r"the schema registry at .* answers 404 to /schemas/ids/99"):
        run(spark, script, tmp_path / "checkpoint")


def test_partitions_that_are_added_are_read_from_their_beginning(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, result = broker.create(), broker.create()
    script = (
        source("orders", "id BIGINT", broker, topic, scan__startup__mode="latest-offset")
        + table("result", "id BIGINT", broker, topic=result, format="json")
        + "INSERT INTO result SELECT id FROM orders;"
    )
    broker.send(topic, messages({"id": 0}))
    run(spark, script, tmp_path / "checkpoint")
    broker.widen(topic, 2)
    broker.send(topic, messages({"id": 1}), partition=1)
    broker.send(topic, messages({"id": 2}), partition=0)
    run(spark, script, tmp_path / "checkpoint")
    assert sorted(row["id"] for row in values(broker, result)) == [1, 2]


def test_a_checkpoint_of_another_topic_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    first, second, result = broker.create(), broker.create(), broker.create()

    def script(topic: str) -> str:
        return (
            source("orders", "id BIGINT", broker, topic)
            + table("result", "id BIGINT", broker, topic=result, format="json")
            + "INSERT INTO result SELECT id FROM orders;"
        )

    broker.send(first, messages({"id": 1}))
    broker.send(second, messages({"id": 2}))
    run(spark, script(first), tmp_path / "checkpoint")
    with pytest.raises(RunError, match=r"messages that the checkpoint continues with are not on the servers"):
        run(spark, script(second), tmp_path / "checkpoint")
    assert values(broker, result) == [{"id": 1}]


METADATA = (
    "`topic` STRING METADATA VIRTUAL, `partition` BIGINT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL, "
    "sent TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, wall TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, "
    "kind STRING METADATA FROM 'timestamp-type' VIRTUAL, headers MAP<STRING NOT NULL, BYTES> NOT NULL METADATA VIRTUAL"
)


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_have_the_metadata_of_their_messages(
    spark: SparkSession, broker: Broker, tmp_path: Path, mode: str
) -> None:
    calls, result = broker.create(2), broker.create()
    broker.send(calls, messages({"id": 1}, {"id": 2}), partition=1, timestamp=1_700_000_000_123, headers={"a": b"x"})
    broker.send(calls, messages({"id": 3}), partition=0, timestamp=1_700_000_000_000)
    names = "`topic` STRING, `partition` BIGINT, `offset` BIGINT, sent TIMESTAMP_LTZ(3), wall TIMESTAMP(3), kind STRING"
    script = (
        f"SET 'execution.runtime-mode' = '{mode}';"
        + source("calls", f"id BIGINT, {METADATA}", broker, calls,
                 **({"scan__bounded__mode": "latest-offset"} if mode == "batch" else {}))
        + table("result", f"id BIGINT, {names}, a STRING, n INT", broker, topic=result, format="json")
        + "INSERT INTO result SELECT id, `topic`, `partition`, `offset`, sent, wall, kind, "
        "DECODE(headers['a'], 'UTF-8'), CARDINALITY(headers) FROM calls;"
    )  # fmt: skip
    checkpoint = {"checkpoint": str(tmp_path / "checkpoint")} if mode == "streaming" else {}
    execution = execute(hintplan.compile_sql(script), spark, once=mode == "streaming", **checkpoint)
    assert execution.await_termination(DEADLINE_SECONDS)
    execution.raise_failure()
    early, late = "2023-11-14 22:13:20", "2023-11-14 22:13:20.123"
    assert sorted(values(broker, result), key=lambda row: int(row["id"])) == [
        {"id": id_, "topic": calls, "partition": partition, "offset": offset, "sent": f"{wall}Z", "wall": wall,
         "kind": "CreateTime", "a": a, "n": n}
        for id_, partition, offset, wall, a, n in [
            (1, 1, 0, late, "x", 1), (2, 1, 1, late, "x", 1), (3, 0, 0, early, None, 0)
        ]
    ]  # fmt: skip


def test_headers_of_rows_are_written_and_others_are_not(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    orders, result, totals = broker.create(), broker.create(), broker.create()
    broker.send(orders, messages({"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 3, "v": "b"}))
    declared = "id BIGINT, headers MAP<STRING, BYTES> METADATA, `offset` BIGINT METADATA VIRTUAL"
    keyed = "id BIGINT, n BIGINT, h MAP<STRING, BYTES> METADATA FROM 'headers', PRIMARY KEY (id) NOT ENFORCED"
    formats = {"key__format": "json", "value__format": "json"}
    script = (
        source("orders", "id BIGINT, v STRING", broker, orders)
        + table("result", declared, broker, topic=result, format="json")
        + table("totals", keyed, broker, "upsert-kafka", topic=totals, **formats)
        + "INSERT INTO result SELECT id, CASE WHEN v IS NULL THEN CAST(NULL AS MAP<STRING, BYTES>) "
        "ELSE MAP['v', ENCODE(v, 'UTF-8')] END FROM orders;"
        "INSERT INTO totals SELECT id, COUNT(*), MAP['id', ENCODE(CAST(id AS STRING), 'UTF-8')] "
        "FROM orders GROUP BY id;"
    )
    run(spark, script, tmp_path / "checkpoint")
    found = {json.loads(message.value or b"null")["id"]: message.headers for message in broker.read(result)}
    assert found == {1: (("v", b"a"),), 2: (), 3: (("v", b"b"),)}
    assert all(set(row) == {"id"} for row in values(broker, result))
    of_keys = {json.loads(message.key or b"null")["id"]: message.headers for message in broker.read(totals)}
    assert of_keys == {1: (("id", b"1"),), 2: (("id", b"2"),), 3: (("id", b"3"),)}


def test_the_last_of_two_headers_of_a_name_counts(spark: SparkSession) -> None:
    (headers,) = kafka_values(
        (TableColumn(name="h", type="MAP<STRING, BYTES>", metadata="headers"),), lambda place: "h"
    )
    given = [
        ([("a", b"1"), ("b", None), ("a", b"2")], {"a": b"2", "b": None}),
        ([("a", b"1"), ("a", None)], {"a": None}),
        ([], {}),
        (None, {}),
    ]
    schema = "headers array<struct<key: string, value: binary>>"
    rows = spark.createDataFrame([(found,) for found, _ in given], schema).select(headers).collect()
    assert [{key: value and bytes(value) for key, value in row["h"].items()} for row in rows] == [
        expected for _, expected in given
    ]


def test_changes_without_a_key_go_to_one_partition_in_their_order(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    orders, keyless, keyed = broker.create(), broker.create(3), broker.create(3)
    changes = {"format": "debezium-json"}
    script = (
        source("orders", "id BIGINT, v BIGINT", broker, orders)
        + table("keyless", "id BIGINT, v BIGINT", broker, topic=keyless, **changes)
        + table("keyed", "id BIGINT, v BIGINT", broker, topic=keyed, key__format="json", key__fields="id",
                value__format="debezium-json")
        + "CREATE VIEW sums AS SELECT id, SUM(v) AS v FROM orders GROUP BY id;"
        + "INSERT INTO keyless SELECT id, v FROM sums; INSERT INTO keyed SELECT id, v FROM sums;"
    )  # fmt: skip
    for _ in range(2):
        broker.send(orders, messages(*({"id": i, "v": 1} for i in range(20))))
        run(spark, script, tmp_path / "checkpoint")
    found = broker.read(keyless)
    assert {message.partition for message in found} == {0}
    there: list[dict[str, Any]] = []
    for message in sorted(found, key=lambda message: message.offset):
        change = json.loads(message.value or b"{}")
        if change["op"] == "c":
            there.append(change["after"])
        else:
            there.remove(change["before"])
    assert sorted(there, key=lambda row: row["id"]) == [{"id": i, "v": 2} for i in range(20)]
    assert len({message.partition for message in broker.read(keyed)}) > 1


def test_changes_in_avro_go_through_a_topic(spark: SparkSession, broker: Broker, tmp_path: Path, registry: str) -> None:
    orders, changes, totals = broker.create(), broker.create(), broker.create()
    avro = {"format": "debezium-avro-confluent", "debezium-avro-confluent.url": registry}
    counting = (
        source("orders", "id BIGINT, v STRING", broker, orders)
        + table("changes", "v STRING, n BIGINT", broker, topic=changes, **avro)
        + "INSERT INTO changes SELECT v, COUNT(*) FROM orders GROUP BY v;"
    )
    following = (
        source("changes", "v STRING, n BIGINT", broker, changes, **avro)
        + table(
            "totals", "n BIGINT, names BIGINT, PRIMARY KEY (n) NOT ENFORCED", broker, "upsert-kafka", topic=totals,
            key__format="json", value__format="json",
        )
        + "INSERT INTO totals SELECT n, COUNT(*) FROM changes GROUP BY n;"
    )  # fmt: skip
    for rows in ([1, 2], [3, 4, 5]):
        broker.send(orders, messages(*({"id": i, "v": "ab"[i % 2]} for i in rows)))
        run(spark, counting, tmp_path / "counting")
        run(spark, following, tmp_path / "following")
    # Of b are 1, 3 and 5, of a 2 and 4: at first both had one order, in the end none has.
    assert broker.latest(totals) == {b'{"n":2}': b'{"n":2,"names":1}', b'{"n":3}': b'{"n":3,"names":1}'}
