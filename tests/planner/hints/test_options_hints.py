"""OPTIONS hints: the options of a table for one reference, which are those that its WITH takes.

What Flink 2.3 does with them was asked of it: a hint wins over WITH, holds inside of a view, is refused at a view and
after an alias, and at a sink is not switched off.
"""

from __future__ import annotations

import pytest

from hintplan.planner.compile import Compilation, compile_script
from hintplan.plans.connectors.connector import Connector, LookedUp, Readable
from hintplan.plans.connectors.messages.format_options import DESCRIPTORS, FORMATS, MESSAGE, OF_REGISTRY
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.errors import SqlError
from hintplan.plans.settings.lookup import SETTINGS
from hintplan.plans.settings.setting import Setting

SERVERS = {"properties.bootstrap.servers": "localhost:9092"}
BASES = {
    "upsert-kafka": {**SERVERS, "topic": "t", "key.format": "json", "value.format": "json"},
    "filesystem": {"path": "d", "format": "csv"},
    "jdbc": {"url": "jdbc:postgresql://localhost/shop", "table-name": "d"},
    "redis": {"host": "localhost", "key-pattern": "{k}"},
    "http": {"url": "http://localhost/{k}"},
    "python": {"class": "shop.Rates"},
    "delta": {"table-path": "s3://lake/d"},
    "iceberg": {
        "catalog-name": "c",
        "catalog-type": "rest",
        "uri": "http://localhost:1",
        "catalog-database": "d",
        "catalog-table": "d",
        "location": "s3://lake/d",
    },
}
VALUES = {"duration": "7 s", "bool": "true", "int": "7", "character": ";", "text": "a_text"}
SPECIAL = {"url": "{}_7", "key-pattern": "{}:7", "response.pointer": "/a", "class": "shop.Others"}
SPECIAL |= {"properties.bootstrap.servers": "localhost:7", "key.fields": "k", "key.fields-prefix": "k"}
SPECIAL |= {f"{name}.url": "http://localhost:7" for name in OF_REGISTRY}
SPECIAL |= dict.fromkeys(("scan.startup.specific-offsets", "scan.bounded.specific-offsets"), "partition:0,offset:7")
SPECIAL |= {"table-path": "{}/7", "s3.endpoint": "http://localhost:7", "s3.region": "eu-7"}
SPECIAL |= {"async-class": "shop.Async", "scan-class": "shop.Scan"}
SEQUENCE = {"fields.k.kind": "sequence", "fields.k.start": "1", "fields.k.end": "9"}
PARTS = {"column": "k", "num": "3", "lower-bound": "-7", "upper-bound": "70"}
SPECIAL |= {f"scan.partition.{name}": value for name, value in PARTS.items()}
SPECIAL |= {"catalog-type": "REST", "uri": "http://localhost:7", "oauth2-server-uri": "http://localhost:7"}
SPECIAL |= {"warehouse": "s3://lake/7", "location": "s3://lake/7"}
BESIDE = dict.fromkeys(SEQUENCE, SEQUENCE) | {"json.ignore-parse-errors": {"format": "json"}}
BESIDE |= {"s3.access-key-id": {"s3.secret-access-key": "${env:KEY}"}}
BESIDE |= {"s3.secret-access-key": {"s3.access-key-id": "${env:ID}"}}
BESIDE |= {"parquet.compression": {"format": "parquet"}, "orc.compress": {"format": "orc"}}
BESIDE |= {name: {"format": "avro"} for name in ("avro.codec", "avro.timestamp_mapping.legacy")}
BESIDE |= {name: {n: v for n, v in SPECIAL.items() if n.startswith("scan.partition.") and n != name}
           for name in SPECIAL if name.startswith("scan.partition.")}  # fmt: skip
COMMITS = {"policy.kind": "success-file", "success-file.name": "_done", "trigger": "process-time", "delay": "0 ms"}
SPECIAL |= {f"sink.partition-commit.{name}": value for name, value in COMMITS.items()}
BESIDE |= {f"sink.partition-commit.{name}": {"sink.partition-commit.policy.kind": "success-file"} for name in COMMITS}
"""What an option needs beside it."""
IN_FAMILIES = {
    "properties.": "properties.client.id",
    "key.": "key.csv.null-literal",
    "value.": "value.csv.null-literal",
}
"""An option of each family that does not take any name."""
WITH_KEY = {"key.fields": "k", "key.format": "json"}
BESIDE_IN_KAFKA = {
    "value.format": {},
    "key.fields": WITH_KEY,
    "key.format": WITH_KEY,
    "key.fields-prefix": {**WITH_KEY, "value.fields-include": "EXCEPT_KEY"},
    "key.csv.null-literal": {**WITH_KEY, "key.format": "csv"},
    "value.csv.null-literal": {"value.format": "csv"},
    **{
        f"scan.{end}.{what}": {f"scan.{end}.mode": what.removesuffix("-millis")}
        for end in ("startup", "bounded") for what in ("specific-offsets", "timestamp-millis")
    },
    "raw.": {**WITH_KEY, "value.fields-include": "EXCEPT_KEY"},
}  # fmt: skip


def beside(connector: str, key: str) -> dict[str, str]:
    """What an option of a connector needs beside it."""
    if connector == "upsert-kafka":
        prefix = {"value.fields-include": "EXCEPT_KEY"} if key == "key.fields-prefix" else {}
        return prefix | ({f"{key.partition('.')[0]}.format": "csv"} if key.endswith("null-literal") else {})
    if connector != "kafka":
        return BESIDE.get(key, {})
    format_ = next(
        (f for f in FORMATS if f != "json" and key.startswith(f"{f}.")),
        "json",
    )
    found = BESIDE_IN_KAFKA.get(key, BESIDE_IN_KAFKA["raw."] if format_ == "raw" else {})
    if format_ in OF_REGISTRY:
        found = {**found, f"{format_}.url": "http://localhost:8081"}
    if format_ == "protobuf":
        found = {**found, MESSAGE: "shop.Order", DESCRIPTORS: "orders.desc"}
    start = {} if key.startswith("scan.startup.") else {"scan.startup.mode": "latest-offset"}
    found = {**start, **found}
    topic = {} if key == "topic-pattern" else {"topic": "t"}
    return SERVERS | topic | ({} if key.startswith("value.") and "fields" not in key else {"format": format_}) | found


ORDERS = "CREATE TABLE o (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'datagen');\n"
SINK = "CREATE TABLE s (k BIGINT, v STRING) WITH ('connector' = 'print');\n"


def value_of(connector: str, option: Setting) -> str:
    base = BASES.get(connector, {}).get(option.name, "")
    if option.name in SPECIAL:
        return SPECIAL[option.name].format(base)
    if option.secret:
        return "${env:SECRET}"
    others = [choice for choice in option.choices if choice != base]
    return others[0] if others else VALUES[option.kind]


def options_of(spec: Connector) -> dict[str, str]:
    """A value for each option that WITH takes, but for those of a lookup's cache."""
    found = {option.name: value_of(spec.name, option) for option in spec.options}
    of_messages = "properties.bootstrap.servers" in found
    found |= {IN_FAMILIES[family] if of_messages else f"{family}x": "text" for family in spec.families}
    columns = {**SEQUENCE, "fields.k.min": "1", "fields.k.max": "9", "fields.v.length": "3"}
    assert not spec.column_options or {key.rpartition(".")[2] for key in columns} == {
        option.name for option in spec.column_options
    }
    return found | (columns if spec.column_options else {})


def sql(spec: Connector, options: dict[str, str], hint: str) -> str:
    """A job that reads, writes or looks up table ``d`` with these options in WITH."""
    body = ", ".join(
        f"'{k}' = '{v}'" for k, v in {"connector": spec.name, **BASES.get(spec.name, {}), **options}.items()
    )
    key = ", PRIMARY KEY (k) NOT ENFORCED" if spec.name == "upsert-kafka" else ""
    partitioned = "PARTITIONED BY (v)" if spec.partitions else ""
    tables = f"{ORDERS}{SINK}CREATE TABLE d (k BIGINT, v STRING{key}) {partitioned} WITH ({body});\n"
    if isinstance(spec, LookedUp) and spec.name != "filesystem":
        return f"{tables}INSERT INTO s SELECT d.k, d.v FROM o JOIN d {hint} FOR SYSTEM_TIME AS OF o.p ON o.k = d.k"
    if isinstance(spec, Readable):
        mode = "" if spec.in_streams else "SET 'execution.runtime-mode' = 'batch';\n"
        return f"{mode}{tables}INSERT INTO s SELECT k, v FROM d {hint}"
    return f"{tables}INSERT INTO d {hint} SELECT k, 'x' FROM o"


def answer(text: str) -> tuple[dict[str, str], str] | str:
    """The options of ``d`` in the plan and the operators, or the message of the refusal."""
    try:
        plan = compile_script(text).plan
    except SqlError as error:
        return error.diagnostics[0].message
    return dict(plan.tables["d"].options), str(plan.operators)


@pytest.mark.parametrize(
    ("connector", "key"), [(name, key) for name, spec in CONNECTORS.items() for key in options_of(spec)]
)
def test_every_option_of_every_connector_says_in_a_hint_what_it_says_in_with(connector: str, key: str) -> None:
    spec = CONNECTORS[connector]
    value = options_of(spec)[key]
    options = beside(connector, key) | {key: value}
    in_with = answer(sql(spec, options, ""))
    assert isinstance(in_with, tuple), in_with
    assert in_with[0][key] == value
    hint = ", ".join(f"'{name}'='{said}'" for name, said in options.items())
    assert answer(sql(spec, {}, f"/*+ OPTIONS({hint}) */")) == in_with


def test_options_of_caches_are_left_to_the_lookup() -> None:
    spec = CONNECTORS["jdbc"]
    plan = compile_script(sql(spec, {}, "/*+ OPTIONS('lookup.max-retries'='7', 'scan.fetch-size'='9') */")).plan
    assert set(plan.tables["d"].options) & set(SETTINGS["cache"]) == set()
    assert plan.tables["d"].options["scan.fetch-size"] == "9"
    (lookup,) = [o for o in plan.operators if o.id == "lookup_d"]
    assert lookup.settings["cache"].values["lookup.max-retries"] == 7


T = """CREATE TABLE t (a INT, b AS a + 1) WITH ('connector' = 'datagen', 'number-of-rows' = '3');
CREATE TABLE k (a INT) WITH ('connector' = 'print');
CREATE VIEW w AS SELECT a FROM t /*+ OPTIONS('number-of-rows' = '1') */;
"""


def compiled(query: str, tables: str = T) -> Compilation:
    return compile_script(tables + query)


def reads(found: Compilation) -> list[tuple[str, str | None]]:
    """The rows that each scan would make, with its id."""
    plan = found.plan
    scans = [o for o in plan.operators if o.id.startswith("scan")]
    return [(o.id, plan.tables[o.table].options.get("number-of-rows")) for o in scans]  # type: ignore[union-attr]


def test_the_only_reference_has_the_name_of_the_table_and_the_plan_is_that_of_with() -> None:
    hinted = compiled("INSERT INTO k SELECT b FROM t /*+ options('number-of-rows' = '2') */ AS x").plan
    written = compiled("INSERT INTO k SELECT b FROM t AS x", T.replace("'3'", "'2'")).plan
    assert hinted == written


def test_references_with_other_options_are_tables_of_their_own() -> None:
    found = compiled(
        "INSERT INTO k SELECT a FROM t /*+ OPTIONS('number-of-rows'='2') */ UNION ALL SELECT b FROM t "
        "UNION ALL SELECT a FROM w UNION ALL SELECT a FROM t /*+ OPTIONS('number-of-rows'='1') */"
    )
    assert sorted(found.plan.tables) == ["k", "t", "t_hinted", "t_hinted_2"]
    assert {rows for _, rows in reads(found)} == {"1", "2", "3"}
    assert all(o.id.startswith("scan_t") and "hinted" not in o.id for o in found.plan.operators if o.id[:4] == "scan")
    told = [(h.status, h.detail) for h in found.hints]
    assert told == [
        ("applied", "tables.t_hinted_2.options.number-of-rows"),
        ("applied", "tables.t_hinted.options.number-of-rows"),
        ("applied", "tables.t_hinted_2.options.number-of-rows"),
    ]
    assert not found.findings


def test_the_hint_is_the_place_of_its_option() -> None:
    found = compiled("INSERT INTO k SELECT a FROM t /*+ OPTIONS('number-of-rows'='2') */")
    place = found.positions["", "tables.t.options.number-of-rows", "table"]
    assert (place.line, place.column) == (4, 43)


def test_each_sink_may_have_its_own() -> None:
    found = compiled(
        "INSERT INTO k /*+ OPTIONS('print-identifier'='x') */ SELECT a FROM t;"
        "INSERT INTO default_catalog.default_database.k /*+ OPTIONS('print-identifier'='y') */ (a) SELECT b FROM t"
    ).plan
    tables = [found.tables[sink.table].options.get("print-identifier") for sink in found.sinks]
    assert (tables, found.name) == (["x", "y"], "k")


def test_a_hint_may_add_what_with_lacks() -> None:
    lacking = "CREATE TABLE f (a INT) WITH ('connector' = 'filesystem', 'format' = 'json');"
    found = compiled(f"{lacking} INSERT INTO k SELECT a FROM f /*+ OPTIONS('path'='in') */").plan
    assert found.tables["f"].options == {"connector": "filesystem", "format": "json", "path": "in"}


def test_what_says_the_same_as_with_makes_no_other_table() -> None:
    same = "/*+ OPTIONS('connector'='datagen', 'number-of-rows'='3') */"
    found = compiled(f"INSERT INTO k SELECT a FROM t UNION ALL SELECT a FROM t {same}")
    assert sorted(found.plan.tables) == ["k", "t"]
    assert {h.status for h in found.hints if h.key == "connector"} == {"applied"}


@pytest.mark.parametrize(
    ("query", "message", "advice"),
    [
        ("INSERT INTO k SELECT a FROM t /*+ OPTIONS('number-of-row'='1') */",
         "table 't': the datagen connector has no option 'number-of-row'", "did you mean 'number-of-rows'?"),
        ("INSERT INTO k /*+ OPTIONS('print-id'='1') */ SELECT a FROM t",
         "table 'k': the print connector has no option 'print-id'", "did you mean 'print-identifier'?"),
        ("INSERT INTO k SELECT a FROM t /*+ OPTIONS('connector'='print') */",
         "OPTIONS cannot change the connector of table 't'", None),
        ("INSERT INTO k SELECT a FROM w /*+ OPTIONS('number-of-rows'='1') */",
         "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO", None),
        ("INSERT INTO k (a) /*+ OPTIONS('print-identifier'='1') */ SELECT a FROM t",
         "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO", None),
        ("SET 'table.dynamic-table-options.enabled' = 'false'; INSERT INTO k SELECT a FROM w",
         "OPTIONS is switched off: 'table.dynamic-table-options.enabled' is false", None),
        ("INSERT INTO k SELECT a FROM w; INSERT INTO k SELECT a FROM t; "
         "CREATE TABLE t_hinted (a INT) WITH ('connector'='datagen'); INSERT INTO k SELECT a FROM t_hinted",
         "'t_hinted' is what the plan calls 't' with the options of a hint", None),
    ],
)  # fmt: skip
def test_is_refused(query: str, message: str, advice: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query)
    assert caught.value.diagnostics[0].message == message
    assert advice is None or caught.value.diagnostics[0].hint == advice


def test_a_sink_takes_its_hint_where_options_are_switched_off() -> None:
    off = "SET 'table.dynamic-table-options.enabled' = 'false';"
    found = compiled(f"{off} INSERT INTO k /*+ OPTIONS('print-identifier'='x') */ SELECT a FROM t").plan
    assert found.tables["k"].options["print-identifier"] == "x"


def test_a_value_that_is_given_twice_is_not_shown() -> None:
    hint = "/*+ OPTIONS('number-of-rows'='11', 'number-of-rows'='22') */"
    found = compiled(f"INSERT INTO k SELECT a FROM t {hint}")
    assert [rows for _, rows in reads(found)] == ["22"]
    assert any("given twice" in str(f) for f in found.findings)
    assert not any("11" in f.diagnostic.message for f in found.findings)
