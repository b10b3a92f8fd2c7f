"""LIKE, AS, ALTER and OR REPLACE give the plan that the declarations give when they are written out."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.planner.execute_statement import execute_statement
from hintplan.planner.session import CompileSession
from hintplan.plans.client import actions
from hintplan.plans.errors import SqlError
from hintplan.plans.files.codec import dumps

FILES = "'connector' = 'filesystem', 'format' = 'json'"
TABLES = f"""
CREATE TABLE orders (id BIGINT, customer BIGINT, total DOUBLE, double AS total * 2)
  WITH ({FILES}, 'path' = 'orders');
CREATE TABLE sums (customer BIGINT, total DOUBLE) WITH ('connector' = 'print');
"""
SUMS = "INSERT INTO sums SELECT customer, SUM(total) FROM {} GROUP BY customer;"

SAME = {
    "LIKE with another path": (
        f"CREATE TABLE old WITH ('path' = 'old') LIKE orders; {SUMS.format('old')}",
        f"CREATE TABLE old (id BIGINT, customer BIGINT, total DOUBLE, double AS total * 2) WITH ({FILES}, "
        f"'path' = 'old'); {SUMS.format('old')}",
    ),
    "LIKE a table without a connector": (
        f"CREATE TABLE shape (customer BIGINT, total DOUBLE); CREATE TABLE old WITH ({FILES}, 'path' = 'old') "
        f"LIKE shape; {SUMS.format('old')}",
        f"CREATE TABLE old (customer BIGINT, total DOUBLE) WITH ({FILES}, 'path' = 'old'); {SUMS.format('old')}",
    ),
    "AS": (
        "CREATE TABLE big WITH ('connector' = 'print') AS SELECT id, total * 2 AS t FROM orders WHERE total > 9;",
        "CREATE TABLE big (id BIGINT, t DOUBLE) WITH ('connector' = 'print'); "
        "INSERT INTO big SELECT id, total * 2 AS t FROM orders WHERE total > 9;",
    ),
    "AS with columns of its own": (
        "CREATE TABLE big (note STRING, id DECIMAL(20, 0)) WITH ('connector' = 'print') AS SELECT id, total "
        "FROM orders;",
        "CREATE TABLE big (note STRING, id DECIMAL(20, 0), total DOUBLE) WITH ('connector' = 'print'); "
        "INSERT INTO big (id, total) SELECT id, total FROM orders;",
    ),
    "AS in another order": (
        "CREATE TABLE big (total, id) WITH ('connector' = 'print') AS SELECT id, total FROM orders;",
        "CREATE TABLE big (total DOUBLE, id BIGINT) WITH ('connector' = 'print'); "
        "INSERT INTO big (id, total) SELECT id, total FROM orders;",
    ),
    "AS IF NOT EXISTS of a table that is there": (
        "CREATE TABLE IF NOT EXISTS sums WITH ('connector' = 'blackhole') AS SELECT id, total FROM orders;",
        "INSERT INTO sums SELECT id, total FROM orders;",
    ),
    "ALTER TABLE": (
        "ALTER TABLE orders SET ('path' = 'new'); ALTER TABLE orders DROP double; "
        "ALTER TABLE orders RENAME customer TO c; ALTER TABLE orders MODIFY total FLOAT; "
        "INSERT INTO sums SELECT c, total FROM orders;",
        f"DROP TABLE orders; CREATE TABLE orders (id BIGINT, c BIGINT, total FLOAT) WITH ({FILES}, 'path' = 'new'); "
        "INSERT INTO sums SELECT c, total FROM orders;",
    ),
    "ALTER VIEW": (
        f"CREATE VIEW v AS SELECT * FROM orders; ALTER VIEW v AS SELECT * FROM orders WHERE id > 1; {SUMS.format('v')}",
        f"CREATE VIEW v AS SELECT * FROM orders WHERE id > 1; {SUMS.format('v')}",
    ),
    "CREATE OR REPLACE VIEW": (
        f"CREATE VIEW v AS SELECT id FROM orders; CREATE OR REPLACE VIEW v AS SELECT * FROM orders; {SUMS.format('v')}",
        f"CREATE VIEW v AS SELECT * FROM orders; {SUMS.format('v')}",
    ),
}


@pytest.mark.parametrize(("short", "written_out"), [pytest.param(*pair, id=name) for name, pair in SAME.items()])
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_the_plan_is_that_of_the_declarations_written_out(short: str, written_out: str, mode: str) -> None:
    config = {"execution.runtime-mode": mode}
    assert dumps(compile_sql(f"{TABLES}{short}", config)) == dumps(compile_sql(f"{TABLES}{written_out}", config))


@pytest.mark.parametrize(
    ("statements", "place", "message"),
    [
        ("CREATE TABLE t (name STRING, id INT) LIKE orders;", "5:30", "'orders' has a column 'id' already"),
        ("CREATE TABLE t LIKE order;", "5:21", "there is no table 'order'"),
        ("CREATE TABLE shape (a INT); INSERT INTO sums SELECT id, total FROM orders;", "5:14", "names no connector"),
        ("CREATE TABLE shape (a INT); INSERT INTO sums SELECT a, 2e0 FROM shape;", "5:14", "names no connector"),
        ("CREATE TEMPORARY TABLE t WITH ('connector' = 'print') AS SELECT 1 AS a;", "5:24", "TEMPORARY TABLE ... AS"),
        ("CREATE TABLE t (a) WITH ('connector' = 'print') AS SELECT id FROM orders;", "5:17", "no column 'a'"),
        (
            "CREATE TABLE t (a, b INT) WITH ('connector' = 'print') AS SELECT id AS a FROM orders;",
            "5:17",
            "a list of names",
        ),
        ("CREATE TABLE t (a) WITH ('connector' = 'print');", "5:17", "column 'a' has no type"),
        ("ALTER TABLE orders DROP total;", "5:25", "the computed column 'double' of table 'orders' depends on"),
        ("ALTER TABLE orders ADD total INT;", "5:24", "has a column 'total' already"),
        ("ALTER TABLE orders RENAME TO sums;", "5:30", "'sums' is declared already"),
        ("ALTER TABLE orders COMPACT;", "5:20", "expected SET, RESET, ADD, MODIFY, DROP or RENAME"),
        (
            "CREATE VIEW v AS SELECT id FROM orders; CREATE OR REPLACE VIEW v AS SELECT id FROM v;",
            "5:84",
            "unknown table",
        ),
        ("CREATE OR REPLACE TABLE t WITH ('connector' = 'print') AS SELECT 1 AS a;", "5:1", "for views only"),
        ("CREATE MATERIALIZED TABLE t AS SELECT id FROM orders;", "5:1", "CREATE MATERIALIZED is not supported"),
        ("CREATE DATABASE d;", "5:1", "CREATE DATABASE is not supported"),
        ("CREATE CATALOG c WITH ('type' = 'generic_in_memory');", "5:1", "CREATE CATALOG is not supported"),
        ("CREATE MODEL m WITH ('provider' = 'x');", "5:1", "CREATE MODEL is not supported"),
        ("REPLACE TABLE t WITH ('connector' = 'print') AS SELECT 1 AS a;", "5:1", "REPLACE is not a supported"),
    ],
)
def test_what_cannot_be_derived_is_refused_where_it_stands(statements: str, place: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{TABLES}{statements}")
    (found,) = caught.value.diagnostics
    assert f"{found.line}:{found.column}" == place
    assert message in found.message
    assert found.hint


def test_an_insert_before_alter_and_one_after_it_are_not_one_plan() -> None:
    with pytest.raises(SqlError, match="'orders' was declared again after another INSERT of this plan used it"):
        compile_sql(f"{TABLES}{SUMS.format('orders')} ALTER TABLE orders SET ('path' = 'x'); {SUMS.format('orders')}")


def test_a_client_declares_alters_and_fills() -> None:
    session = CompileSession.open()
    text = (
        f"{TABLES} ALTER TABLE orders ADD note STRING; ALTER TABLE IF EXISTS none SET ('a' = 'b');"
        "CREATE TABLE big WITH ('connector' = 'print') AS SELECT note FROM orders; SELECT note FROM orders"
    )
    done = [execute_statement(session, unit).action for unit in session.feed(text)]
    said = [action.text for action in done if isinstance(action, actions.Told)]
    assert said[2:] == ["table orders altered", "there is no table none"]
    assert [type(action) for action in done[4:]] == [actions.RunInsert, actions.RunSelect]
    assert "big" in session.context.catalog.tables
