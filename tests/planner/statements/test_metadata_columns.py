"""METADATA columns: which a connector has, which types they may have, and what is written of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import hintplan
from hintplan.plans.analysis.fingerprints import meaning
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.errors import SqlError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink
from hintplan.plans.show.explain import plan_tree

FILES = "WITH ('connector' = 'filesystem', 'path' = 'data/t', 'format' = 'json')"
PRINT = "WITH ('connector' = 'print')"


def read(columns: str, selected: str = "x") -> Plan:
    return hintplan.compile_sql(
        f"CREATE TABLE t ({columns}) {FILES}; CREATE TABLE s (x STRING) {PRINT};"
        f"INSERT INTO s SELECT CAST({selected} AS STRING) FROM t;"
    )


def refused(script: str) -> str:
    with pytest.raises(SqlError) as error:
        hintplan.compile_sql(script)
    return str(error.value)


def test_a_scan_reads_them_by_name_beside_physical_columns() -> None:
    plan = read("a STRING, p STRING METADATA FROM 'file.path' VIRTUAL, c AS CONCAT(p, a)", "c")
    (scan,) = [operator for operator in plan.operators if isinstance(operator, Scan)]
    assert scan.columns == ("a", "p")
    assert plan.tables["t"].columns[1] == TableColumn(name="p", type="STRING", metadata="file.path", virtual=True)
    assert not plan_problems(plan)


def test_a_plan_says_their_keys_and_is_read_back() -> None:
    plan = read("a STRING, `file.size` BIGINT METADATA, n STRING METADATA FROM 'file.name' VIRTUAL", "n")
    columns = json.loads(dumps(plan))["tables"]["t"]["columns"]
    assert columns == [
        {"name": "a", "type": "STRING"},
        {"name": "file.size", "type": "BIGINT", "metadata": "file.size"},
        {"name": "n", "type": "STRING", "metadata": "file.name", "virtual": True},
    ]
    assert loads(dumps(plan)).tables == plan.tables
    assert "1 of 3 columns" in plan_tree(plan)


def test_another_key_is_another_state() -> None:
    name, path = (read(f"a STRING, p STRING METADATA FROM '{key}'", "p") for key in ("file.name", "file.path"))
    (scan,) = [operator.id for operator in name.operators if isinstance(operator, Scan)]
    assert meaning(name, scan) != meaning(path, scan)
    assert meaning(path, scan) == meaning(read("a STRING, p STRING METADATA FROM 'file.path' VIRTUAL", "p"), scan)


@pytest.mark.parametrize(
    "column",
    [
        "p STRING NOT NULL METADATA FROM 'file.name'",
        "`file.size` BIGINT METADATA",
        "p TIMESTAMP(3) METADATA FROM 'file.modification-time'",
        "p TIMESTAMP_LTZ(6) METADATA FROM 'file.modification-time'",
    ],
)
def test_types_that_hold_every_value_are_taken(column: str) -> None:
    assert not plan_problems(read(f"a STRING, {column}", "a"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("p INT METADATA FROM 'file.size'", "METADATA column 'p' is INT, but 'file.size' is BIGINT"),
        ("p STRING METADATA FROM 'file.size'", "METADATA column 'p' is STRING, but 'file.size' is BIGINT"),
        ("p TIMESTAMP(0) METADATA FROM 'file.modification-time'",
         "METADATA column 'p' is TIMESTAMP(0), but 'file.modification-time' is TIMESTAMP_LTZ(3)"),
        ("p STRING METADATA", "the filesystem connector has no METADATA 'p'"),
        ("p STRING METADATA FROM 'file.pat'", "did you mean 'file.path'?"),
    ],
)  # fmt: skip
def test_what_the_connector_does_not_have_is_refused_at_the_column(column: str, message: str) -> None:
    declared = f"CREATE TABLE t (a STRING, {column}) {FILES}; CREATE TABLE s (x STRING) {PRINT};"
    found = refused(f"{declared} INSERT INTO s SELECT a FROM t;")
    assert message in found
    assert "line 1:27" in found
    like = f"{declared} CREATE TABLE u LIKE t (EXCLUDING METADATA); INSERT INTO s SELECT a FROM u;"
    assert "t" not in hintplan.compile_sql(like).tables


def test_connectors_without_any_say_so() -> None:
    found = refused(f"CREATE TABLE s (x STRING, p STRING METADATA) {PRINT}; INSERT INTO s VALUES ('a', 'b');")
    assert "the print connector has no METADATA" in found
    assert "remove column 'p'" in found


def test_a_sink_does_not_write_virtual_columns() -> None:
    script = f"CREATE TABLE t (p STRING METADATA FROM 'file.name' VIRTUAL, a STRING, b AS UPPER(a)) {FILES};"
    plan = hintplan.compile_sql(f"{script} INSERT INTO t VALUES ('a');")
    (sink,) = [operator for operator in plan.operators if isinstance(operator, Sink)]
    assert sink.table == "t"
    assert not plan_problems(plan)


def test_what_can_only_be_read_is_not_written() -> None:
    script = f"CREATE TABLE t (p STRING METADATA FROM 'file.name', a STRING) {FILES};"
    found = refused(f"{script} INSERT INTO t VALUES ('a', 'b');")
    assert "METADATA 'file.name' can only be read, and column 'p' is to be written" in found
    assert "declare it as STRING METADATA FROM 'file.name' VIRTUAL" in found


def test_a_table_that_is_looked_up_has_none() -> None:
    found = refused(
        f"CREATE TABLE o (id STRING, at AS PROCTIME()) {FILES};"
        f"CREATE TABLE t (id STRING, p STRING METADATA FROM 'file.name') {FILES}; CREATE TABLE s (x STRING) {PRINT};"
        "INSERT INTO s SELECT o.id FROM o JOIN t FOR SYSTEM_TIME AS OF o.at AS t ON o.id = t.id;"
    )
    assert "table 't' cannot be looked up: it has a METADATA column, 'p'" in found


TOPIC = (
    "WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json', "
    "'scan.startup.mode' = 'earliest-offset')"
)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("e INT METADATA FROM 'leader-epoch'",
         "METADATA 'leader-epoch' of the kafka connector is not supported: Spark does not provide it"),
        ("e STRING METADATA FROM 'value.source.table'",
         "METADATA 'value.source.table' of the kafka connector is not supported: the metadata of a format"),
        ("e TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'", "METADATA 'timestamp' can only be read"),
        ("h MAP<STRING, BYTES> METADATA FROM 'headers', e MAP<STRING, BYTES> METADATA FROM 'headers'",
         "METADATA 'headers' is to be written twice, also from column 'e'"),
        ("e MAP<STRING, STRING> METADATA FROM 'headers'",
         "METADATA column 'e' is MAP<STRING, STRING>, but 'headers' is MAP<STRING, BYTES>"),
    ],
)  # fmt: skip
def test_what_messages_do_not_tell_or_take_is_refused(column: str, message: str) -> None:
    query = "SELECT id, h, e FROM t" if "h MAP" in column else "SELECT id, e FROM t"
    assert message in refused(f"CREATE TABLE t (id INT, {column}) {TOPIC}; INSERT INTO t {query};")


def test_headers_are_written_and_no_virtual_column() -> None:
    columns = "id INT, `offset` BIGINT METADATA VIRTUAL, h MAP<STRING NOT NULL, BYTES> NOT NULL METADATA FROM 'headers'"
    plan = hintplan.compile_sql(
        f"CREATE TABLE t ({columns}) {TOPIC}; CREATE TABLE u WITH ('topic' = 'u') LIKE t;"
        "INSERT INTO t SELECT CAST(`offset` AS INT), h FROM u;"
    )
    assert not plan_problems(plan)


def test_like_takes_them_over_unless_told_otherwise() -> None:
    base = f"CREATE TABLE base (a STRING, p STRING METADATA FROM 'file.name') {FILES};"
    sink = f"CREATE TABLE s (x STRING) {PRINT};"
    plan = hintplan.compile_sql(f"{base}{sink} CREATE TABLE t LIKE base; INSERT INTO s SELECT p FROM t;")
    assert plan.tables["t"].columns[1].metadata == "file.name"
    without = f"{base}{sink} CREATE TABLE t LIKE base (EXCLUDING METADATA); INSERT INTO s SELECT p FROM t;"
    assert "unknown column 'p'" in refused(without)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"expression": "a", "metadata": "file.name"}, "column 'p' is computed, and a METADATA column"),
        ({"virtual": True}, "column 'p' is virtual, which only a METADATA column can be"),
        ({"metadata": "file.nam"}, "the filesystem connector has no METADATA 'file.nam'"),
    ],
)
def test_hand_edits_of_them_are_checked(column: dict[str, Any], message: str) -> None:
    plan = read("a STRING", "a")
    table = plan.tables["t"]
    edited = replace(table, columns=(*table.columns, TableColumn(name="p", type="STRING", **column)))
    problems = plan_problems(replace(plan, tables={**plan.tables, "t": edited}))
    assert [problem.message for problem in problems] == [message]
    assert problems[0].path == "tables.t.columns.p"
