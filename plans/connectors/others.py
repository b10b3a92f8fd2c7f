"""Connectors of Flink that are not here, and what to do instead of using one.

>>> instead_of("postgres-cdc")
"let Debezium write the changes to a topic, and read it: 'connector' = 'kafka', 'format' = 'debezium-json'"
"""

from __future__ import annotations

from collections.abc import Mapping

_CHANGES = "let Debezium write the changes to a topic, and read it: 'connector' = 'kafka', 'format' = 'debezium-json'"
_LAKE = "write 'connector' = 'iceberg' or 'delta', whose tables Flink reads, too"
_MESSAGES = "bring the messages to a topic, such as with Kafka Connect, and use 'connector' = 'kafka'"
_LOADED = "write to a topic with 'connector' = 'upsert-kafka', and let a sink of Kafka Connect load it from there"
_LOOKED_UP = (
    f"look up with 'connector' = 'http', or with a class of yours and 'connector' = 'python'; to write, {_LOADED[9:]}"
)
_FILES = "write 'connector' = 'filesystem', with the directory of the files as 'path'"
_DATABASE = "write 'connector' = 'jdbc'"
_TOPIC = "write 'connector' = 'kafka'"

_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(
        ("mysql-cdc", "postgres-cdc", "oracle-cdc", "sqlserver-cdc", "mongodb-cdc", "db2-cdc", "tidb-cdc", "vitess-cdc",
         "oceanbase-cdc"),
        _CHANGES,
    ),
    **dict.fromkeys(("hudi", "paimon"), _LAKE),
    **dict.fromkeys(("delta-lake", "deltalake"), "write 'connector' = 'delta'"),
    "hive": f"{_FILES}, and 'format' = 'parquet' or 'orc'",
    **dict.fromkeys(("s3", "hdfs", "file", "files"), _FILES),
    **dict.fromkeys(("elasticsearch", "elasticsearch-6", "elasticsearch-7", "elasticsearch-8", "opensearch"), _LOADED),
    **dict.fromkeys(("opensearch-1", "opensearch-2", "clickhouse", "doris", "starrocks", "cassandra"), _LOADED),
    **dict.fromkeys(("mongodb", "hbase", "hbase-1.4", "hbase-2.2", "hbase-2.6", "dynamodb"), _LOOKED_UP),
    **dict.fromkeys(("kinesis", "firehose", "sqs", "pulsar", "rabbitmq", "pubsub", "rocketmq"), _MESSAGES),
    **dict.fromkeys(("mysql", "postgres", "postgresql", "mariadb", "sqlite"), _DATABASE),
    **dict.fromkeys(("kafka-0.10", "kafka-0.11", "universal"), _TOPIC),
    **dict.fromkeys(("socket", "values"), "write rows to files and read them with 'connector' = 'filesystem', or make "
                    "them up with 'connector' = 'datagen'"),
    "faker": "write 'connector' = 'datagen', or rows to files and read them with 'connector' = 'filesystem'",
    "rest-lookup": "write 'connector' = 'http'",
}  # fmt: skip


def instead_of(connector: str) -> str | None:
    """What to do instead of using ``connector``; None if it is none that Flink jobs use."""
    return _INSTEAD.get(connector.lower())
