"""Options and values of Flink's connectors that tables here have not: what changes nothing, and what to do instead.

An option without effect is left out of the plan, with a note. Any other is refused, with the advice that is here.

>>> why_idle("jdbc", "driver")
'the URL says which database it is, and its driver comes with hintplan'
>>> instead_of("kafka", "sink.semantic")
"write 'sink.delivery-guarantee'"
"""

from __future__ import annotations

from collections.abc import Mapping

_TASKS = "as many tasks write as make the rows"
_NO_TRANSACTIONS = "messages are sent without transactions"
_TOPICS = {
    "scan.parallelism": "a task reads each partition of a topic",
    "scan.topic-partition-discovery.interval": "new partitions are found before each micro-batch",
    "sink.parallelism": _TASKS,
    "sink.transaction-naming-strategy": _NO_TRANSACTIONS,
    "sink.transactional-id-prefix": _NO_TRANSACTIONS,
}
_BUFFER = "each micro-batch is written as it ends"
_IDLE: Mapping[str, Mapping[str, str]] = {
    "blackhole": {"sink.parallelism": _TASKS},
    "datagen": {"scan.parallelism": "rows are made by as many tasks as there are cores"},
    "jdbc": {
        "connection.max-retry-timeout": "a lost connection is opened anew; lookups wait by 'connection.timeout'",
        "driver": "the URL says which database it is, and its driver comes with hintplan",
        "scan.auto-commit": "each part of a table is read by one query, in a transaction of its own",
        "sink.buffer-flush.interval": _BUFFER,
    },
    "kafka": _TOPICS,
    "print": {"sink.parallelism": _TASKS},
    "upsert-kafka": {
        **_TOPICS,
        "sink.buffer-flush.interval": _BUFFER,
        "sink.buffer-flush.max-rows": _BUFFER,
    },
}

_CACHE = "write 'lookup.cache' = 'PARTIAL' and "
_INSTEAD: Mapping[str, Mapping[str, str]] = {
    "jdbc": {
        "lookup.cache.caching-missing-key": f"{_CACHE}'lookup.partial-cache.cache-missing-key'",
        "lookup.cache.max-rows": f"{_CACHE}'lookup.partial-cache.max-rows'",
        "lookup.cache.ttl": f"{_CACHE}'lookup.partial-cache.expire-after-write'",
    },
    "kafka": {"sink.semantic": "write 'sink.delivery-guarantee'"},
    "upsert-kafka": {
        "format": "write 'key.format' and 'value.format'",
        "scan.startup.mode": "leave it out: a topic of upserts is read from its beginning",
        "sink.delivery-guarantee": "leave it out: messages are sent at least once, and of each key the last one counts",
    },
}

_AVRO_ENVELOPE = "let Debezium write JSON, and read it with 'debezium-json'"
_VALUES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("kafka", "format"): {"debezium-avro": _AVRO_ENVELOPE, "debezium-avro-confluent": _AVRO_ENVELOPE},
    ("kafka", "value.format"): {"debezium-avro": _AVRO_ENVELOPE, "debezium-avro-confluent": _AVRO_ENVELOPE},
    ("kafka", "scan.startup.mode"): {
        "group-offsets": "write 'earliest-offset' or 'latest-offset', where the first run begins; "
        "later ones go on by their checkpoint"
    },
    ("kafka", "sink.partitioner"): {
        "fixed": "leave it out: the messages of a key go to one partition",
        "round-robin": "leave it out: messages without a key go to any partition",
    },
}


def why_idle(connector: str, option: str) -> str | None:
    """Why ``option`` of Flink's ``connector`` changes nothing here; None if it does, or is no such option."""
    return _IDLE.get(connector, {}).get(option)


def instead_of(connector: str, option: str) -> str | None:
    """What to do instead of setting ``option``, which is one of Flink's ``connector``; None if nobody knows."""
    return _INSTEAD.get(connector, {}).get(option)


def instead_of_value(connector: str, option: str, value: str) -> str | None:
    """What to write instead of ``value``, which ``option`` has in Flink; None if it is no such value."""
    return _VALUES.get((connector, option), {}).get(value.lower())
