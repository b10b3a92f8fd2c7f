"""What jobs of Flink say most often that is not taken here: each is refused with words of its own, which are right.

The advice was written by hand from what hintplan has; where it names an option, a format, a function or a form of SQL,
a script that follows it compiles.
"""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError

pytestmark = pytest.mark.usefixtures("worded_for_commands")

ROWS = "(id BIGINT, v STRING, n INT, b BOOLEAN, d DATE, ts TIMESTAMP(3), r ARRAY<STRING>)"
FILES = "'connector' = 'filesystem', 'path' = 'o', 'format' = 'json'"
TABLES = f"CREATE TABLE o {ROWS} WITH ({FILES});CREATE TABLE s (x STRING) WITH ('connector' = 'print');"
TOPIC = "'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'scan.startup.mode' = 'earliest-offset'"
KAFKA = f"'connector' = 'kafka', {TOPIC}"
JSON = f"{KAFKA}, 'format' = 'json'"
UPSERT = "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'key.format' = 'json'"
JDBC = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'public.t'"
REGISTRY = f"{KAFKA}, 'format' = 'avro-confluent', 'avro-confluent.url' = 'http://r:8081'"


def hints(script: str) -> list[str]:
    with pytest.raises(SqlError) as caught:
        compile_script(script)
    return [found.hint or "" for found in caught.value.diagnostics]


def table(options: str, columns: str = "id BIGINT, v STRING") -> str:
    key = ", PRIMARY KEY (id) NOT ENFORCED" if "'upsert-kafka'" in options or "debezium-json'" in options else ""
    return f"CREATE TABLE t ({columns}{key}) WITH ({options});{TABLES}INSERT INTO s SELECT v FROM t;"


CHANGES = f"{KAFKA}, 'format' = 'debezium-json'"
OPTIONS = [
    # Connectors.
    *(
        (f"'connector' = '{name}', 'hostname' = 'db'", ("Debezium", "'kafka'", "'debezium-json'"), CHANGES)
        for name in ("mysql-cdc", "postgres-cdc", "oracle-cdc", "sqlserver-cdc", "mongodb-cdc")
    ),
    *((f"'connector' = '{name}'", ("'iceberg'",), None) for name in ("hudi", "paimon")),
    ("'connector' = 'hive'", ("'filesystem'", "'parquet'", "'path'"),
     "'connector' = 'filesystem', 'path' = 'warehouse/t', 'format' = 'parquet'"),
    *(
        (f"'connector' = '{name}'", ("'upsert-kafka'", "Kafka Connect"), f"{UPSERT}, 'value.format' = 'json'")
        for name in ("elasticsearch-7", "opensearch", "clickhouse", "doris", "starrocks")
    ),
    *((f"'connector' = '{name}'", ("'python'", "Kafka Connect"), None) for name in ("hbase-2.2", "mongodb")),
    *((f"'connector' = '{name}'", ("Kafka Connect", "'kafka'"), JSON) for name in ("kinesis", "pulsar", "rabbitmq")),
    ("'connector' = 'postgres'", ("'jdbc'",), JDBC),
    ("'connector' = 'mysql'", ("'jdbc'",), JDBC),
    ("'connector' = 'faker'", ("'datagen'",), "'connector' = 'datagen'"),
    ("'connector' = 's3'", ("'filesystem'", "'path'"), FILES),
    ("'connector' = 'kafkaa'", ("did you mean 'kafka'?",), JSON),
    # Formats of messages and of files.
    *((f"{KAFKA}, 'format' = '{name}'", ("'debezium-json'",), CHANGES) for name in ("maxwell-json", "ogg-json")),
    (f"{KAFKA}, 'format' = 'maxwell-json', 'maxwell-json.ignore-parse-errors' = 'true'", ("'debezium-json'",), CHANGES),
    *((f"{KAFKA}, 'format' = '{name}'", ("'avro' or 'json'",), JSON) for name in ("parquet", "orc")),
    (f"{KAFKA}, 'format' = 'protobuf-confluent'", ("id of a schema", "'protobuf'"), None),
    (f"{UPSERT}, 'value.format' = 'debezium-json'", ("'json'", "'kafka'"), f"{UPSERT}, 'value.format' = 'json'"),
    ("'connector' = 'filesystem', 'path' = 'o', 'format' = 'debezium-json'", ("'json'", "'source.changelog' = 'true'"),
     f"{FILES}, 'source.changelog' = 'true'"),
    ("'connector' = 'filesystem', 'path' = 'o', 'format' = 'avro-confluent'", ("'avro'",),
     "'connector' = 'filesystem', 'path' = 'o', 'format' = 'avro'"),
    # Options of Kafka.
    (JSON.replace("earliest-offset", "group-offsets"), ("'earliest-offset'", "'latest-offset'", "checkpoint"), JSON),
    (f"{JSON}, 'sink.delivery-guarantee' = 'exactly-once'", ("'at-least-once'", "'upsert-kafka'"),
     f"{JSON}, 'sink.delivery-guarantee' = 'at-least-once'"),
    (f"{JSON}, 'sink.semantic' = 'at-least-once'", ("'sink.delivery-guarantee'",),
     f"{JSON}, 'sink.delivery-guarantee' = 'at-least-once'"),
    (f"{JSON}, 'sink.partitioner' = 'fixed'", ("remove it",), JSON),
    (f"{JSON}, 'connector.type' = 'kafka'", ("'connector'",), JSON),
    (f"{UPSERT}, 'value.format' = 'json', 'scan.startup.mode' = 'earliest-offset'", ("remove it",),
     f"{UPSERT}, 'value.format' = 'json'"),
    (f"{UPSERT}, 'value.format' = 'json', 'format' = 'json'", ("'key.format'", "'value.format'"),
     f"{UPSERT}, 'value.format' = 'json'"),
    # Properties of Kafka's client.
    (f"{JSON}, 'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required;'",
     ("'${env:KAFKA_JAAS}'", "--allow-env KAFKA_JAAS"),
     f"{JSON}, 'properties.sasl.jaas.config' = '${{env:KAFKA_JAAS}}'"),
    (f"{JSON}, 'properties.sasl.jaas.config' = '${{KAFKA_JAAS}}'", ("'${env:KAFKA_JAAS}'",), None),
    (f"{JSON}, 'properties.sasl.mechanism' = 'AWS_MSK_IAM'", ("'SCRAM-SHA-512'",),
     f"{JSON}, 'properties.sasl.mechanism' = 'SCRAM-SHA-512'"),
    (f"{JSON}, 'properties.sasl.mechanism' = 'OAUTHBEARER'", ("'SCRAM-SHA-512'",), None),
    (f"{JSON}, 'properties.sasl.login.callback.handler.class' = 'x.Y'", ("'properties.sasl.mechanism'",), None),
    (f"{JSON}, 'properties.acks' = '1'", ("'all'",), f"{JSON}, 'properties.acks' = 'all'"),
    (f"{JSON}, 'properties.zookeeper.connect' = 'z:2181'", ("remove it",), JSON),
    (f"{JSON}, 'properties.schema.registry.url' = 'http://r'", ("'avro-confluent.url'",), REGISTRY),
    (f"{JSON}, 'properties.lingr.ms' = '5'", ("did you mean 'properties.linger.ms'?",),
     f"{JSON}, 'properties.linger.ms' = '5'"),
    # Options of formats.
    (f"{REGISTRY}, 'avro-confluent.schema-registry.url' = 'http://r:8081'",
     ("'avro-confluent.url'",), REGISTRY),
    (f"{REGISTRY}, 'avro-confluent.schema-registry.subject' = 'x'", ("'avro-confluent.subject'",),
     f"{REGISTRY}, 'avro-confluent.subject' = 'x'"),
    (f"{REGISTRY}, 'avro-confluent.basic-auth.user-info' = 'me:pw'", ("${env:",),
     f"{REGISTRY}, 'avro-confluent.basic-auth.user-info' = '${{env:REGISTRY}}'"),
    (f"{REGISTRY}, 'avro-confluent.ssl.truststore.location' = '/t'", ("remove it",), REGISTRY),
    (f"{JSON}, 'json.map-null-key.mode' = 'DROP'", ("in the query",), JSON),
    # JDBC.
    (f"{JDBC}, 'password' = 'secret'", ("${env:NAME}",), f"{JDBC}, 'password' = '${{env:PW}}'"),
    (f"{JDBC}, 'lookup.cache.max-rows' = '5'", ("'lookup.cache' = 'PARTIAL'", "'lookup.partial-cache.max-rows'"),
     f"{JDBC}, 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '5'"),
    (f"{JDBC}, 'lookup.cache.ttl' = '5 s'", ("'lookup.partial-cache.expire-after-write'",),
     f"{JDBC}, 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.expire-after-write' = '5 s'"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "parts", "followed"), OPTIONS)
def test_advice_for_a_table(options: str, parts: tuple[str, ...], followed: str | None) -> None:
    (hint,) = hints(table(options))
    assert [part for part in parts if part not in hint] == [], hint
    if followed is not None:
        compile_script(table(followed))


@pytest.mark.parametrize(
    ("database", "parameter", "advice"),
    [
        ("mysql", "useSSL=true", "sslMode=REQUIRED"),
        ("postgresql", "ssl=true", "sslmode=require"),
        ("postgresql", "currentSchema=x", "'schema.table'"),
        ("postgresql", "reWriteBatchedInserts=true", "remove it"),
        ("mysql", "characterEncoding=UTF-8", "remove it"),
        ("mysql", "autoReconnect=true", "remove it"),
    ],
)
def test_advice_for_a_parameter_of_a_url(database: str, parameter: str, advice: str) -> None:
    url = f"jdbc:{database}://db/shop"
    options = f"'connector' = 'jdbc', 'table-name' = 't', 'url' = '{url}?{parameter}'"
    with pytest.raises(SqlError) as caught:
        compile_script(table(options))
    (found,) = caught.value.diagnostics
    name = parameter.partition("=")[0]
    assert f"the url has parameters that are not supported: {name}" in found.message
    assert found.hint is not None
    assert found.hint.startswith(f"{name}: ")
    assert advice in found.hint
    followed = f"{url}?{advice}" if "=" in advice else url
    compile_script(table(options.replace(f"{url}?{parameter}", followed)))


def test_all_parameters_of_a_url_are_reported_at_once_and_unknown_ones_are_not_repeated() -> None:
    url = "jdbc:mysql://db/shop?useSSL=true&hunter2=x&rewriteBatchedStatements=true"
    with pytest.raises(SqlError) as caught:
        compile_script(table(f"'connector' = 'jdbc', 'table-name' = 't', 'url' = '{url}'"))
    (found,) = caught.value.diagnostics
    assert "not supported: useSSL, rewriteBatchedStatements" in found.message
    assert "hunter2" not in str(found)
    assert (found.hint or "").endswith("the parameters are sslMode, sslCa")


FUNCTIONS = {
    "NVL(v, 'x')": "COALESCE(v, 'x')",
    "NVL2(v, v, 'x')": "IF(v IS NOT NULL, v, 'x')",
    "ISNULL(v, 'x')": "IFNULL(v, 'x')",
    "IIF(b, 'x', v)": "IF(b, 'x', v)",
    "DATE_ADD(d, 1)": "TIMESTAMPADD(DAY, 1, d)",
    "DATE_SUB(d, 1)": "d - INTERVAL '1' DAY",
    "ADD_MONTHS(d, 1)": "TIMESTAMPADD(MONTH, 1, d)",
    "DATEDIFF(d, d)": "TIMESTAMPDIFF(DAY, d, d)",
    "DATEDIFF(DAY, d, d)": "TIMESTAMPDIFF(DAY, d, d)",
    "DATE_TRUNC('hour', ts)": "FLOOR(ts TO HOUR)",
    "DATE_PART('day', ts)": "EXTRACT(DAY FROM ts)",
    "LAST_DAY(d)": "TIMESTAMPADD(DAY, -1, TIMESTAMPADD(MONTH, 1, FLOOR(d TO MONTH)))",
    "TO_CHAR(ts, 'yyyy')": "DATE_FORMAT(ts, 'yyyy')",
    "STR_TO_DATE(v, 'yyyy-MM-dd')": "TO_DATE(v, 'yyyy-MM-dd')",
    "GETDATE()": "CURRENT_TIMESTAMP",
    "CURDATE()": "CURRENT_DATE",
    "LENGTH(v)": "CHAR_LENGTH(v)",
    "LCASE(v)": "LOWER(v)",
    "POW(n, 2)": "POWER(n, 2)",
    "STRING_AGG(v, ',')": "LISTAGG(v, ',')",
    "GROUP_CONCAT(v)": "LISTAGG(v, ',')",
    "SPLIT_PART(v, ',', 1)": "SPLIT_INDEX(v, ',', 0)",
    "TO_NUMBER(v)": "CAST(v AS DECIMAL(38, 10))",
    "STRPOS(v, 'a')": "LOCATE('a', v)",
    "CONTAINS(v, 'a')": "LOCATE('a', v) > 0",
    "REGEXP_LIKE(v, 'a+')": "REGEXP(v, 'a+')",
    "JSON_EXTRACT(v, '$.a')": "JSON_VALUE(v, '$.a')",
    "GET_JSON_OBJECT(v, '$.a')": "JSON_VALUE(v, '$.a')",
    "SAFE_CAST(v)": "TRY_CAST(v AS INT)",
    "HASH(v)": "MD5(v)",
    "BASE64(v)": "TO_BASE64(v)",
    "MEDIAN(n)": "PERCENTILE(n, 0.5)",
    "ANY_VALUE(v)": "FIRST_VALUE(v)",
    "COUNT_IF(b)": "COUNT(*) FILTER (WHERE b)",
    "SUM_IF(n, b)": "SUM(n) FILTER (WHERE b)",
    "BOOL_OR(b)": "COUNT(*) FILTER (WHERE b) > 0",
    "COLLECT_LIST(v)": "ARRAY_JOIN(ARRAY_AGG(v), ',')",
    "APPROX_COUNT_DISTINCT(v)": "COUNT(DISTINCT v)",
    "CUONT(*)": "COUNT(*)",
    "CONCTA(v, v)": "CONCAT(v, v)",
}


@pytest.mark.parametrize("call", FUNCTIONS)
def test_advice_for_a_function(call: str) -> None:
    """The function that the hint names is that of a call which compiles."""
    followed = FUNCTIONS[call]
    (hint,) = hints(f"{TABLES}INSERT INTO s SELECT CAST({call} AS STRING) FROM o;")
    words = ("INTERVAL",) if " - " in followed else (followed.partition("(")[0],)
    words = ("ARRAY_AGG",) if "ARRAY_AGG" in followed else words
    assert all(word in hint for word in words), hint
    compile_script(f"{TABLES}INSERT INTO s SELECT CAST({followed} AS STRING) FROM o;")


KEYS = {
    "table.planner": "remove it",
    "execution.type": "'execution.runtime-mode'",
    "execution.parallelism": "'parallelism.default'",
    "execution.min-idle-state-retention": "'table.exec.state.ttl'",
    "execution.savepoint.path": "hintplan run --checkpoint",
    "s3.access-key": "--conf spark.hadoop.fs.s3a.",
    "spark.sql.shuffle.partitions": "--conf",
    "table.exec.hive.infer-source-parallelism": "read the files",
}


@pytest.mark.parametrize("key", KEYS)
def test_advice_for_a_key(key: str) -> None:
    (hint,) = hints(f"SET '{key}' = 'DROP';{TABLES}INSERT INTO s SELECT v FROM o;")
    assert KEYS[key] in hint


def test_a_join_by_event_time_is_no_lookup() -> None:
    """The advice is not a processing time: the table could not be looked up either."""
    script = (
        f"CREATE TABLE r (id BIGINT, rate DOUBLE, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, "
        f"'value.format' = 'json');{TABLES}INSERT INTO s SELECT o.v FROM o JOIN r {{}}AS r ON o.id = r.id;"
    )
    (hint,) = hints(script.format("FOR SYSTEM_TIME AS OF o.ts "))
    assert "PROCTIME" not in hint
    assert "leave FOR SYSTEM_TIME AS OF out" in hint
    compile_script(script.format(""))


def test_there_are_enough_of_them() -> None:
    assert len(OPTIONS) + len(FUNCTIONS) + len(KEYS) >= 100


def test_no_suggestion_that_stands_there_already() -> None:
    (hint,) = hints(table(f"{JDBC}, 'scan.fetch-size' = '5', 'scan.fetch-sizes' = '5'"))
    assert "did you mean" not in hint
