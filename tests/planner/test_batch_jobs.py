"""What a batch compilation records beside the operators: places, layers, what is shared, and that it stays the same."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.planner.compile import compile_script, compile_sql
from hintplan.planner.syntax.source import Source
from hintplan.plans.analysis.fingerprints import meaning
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import SqlError

TABLES = """
CREATE TABLE orders (id BIGINT, customer BIGINT, total DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE customers (id BIGINT, country STRING) WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
CREATE TABLE s (a BIGINT, b STRING) WITH ('connector' = 'print');
CREATE TABLE t (a BIGINT, b STRING) WITH ('connector' = 'print');
"""
BATCH = {"execution.runtime-mode": "batch"}
JOIN = "SELECT o.id AS a, c.country AS b FROM orders o JOIN customers c ON o.customer = c.id"


def test_the_command_line_makes_any_script_a_batch_job() -> None:
    script = f"{TABLES} INSERT INTO s {JOIN};"
    assert compile_sql(script).mode == "streaming"
    plan = compile_sql(script, BATCH)
    assert plan.mode == "batch"
    assert plan_problems(plan) == ()
    assert hintplan.loads(hintplan.dumps(plan)) == plan


def test_the_same_script_gives_the_same_bytes_in_a_batch() -> None:
    config = BATCH | {"table.exec.cached-results.enabled": "true"}
    inserts = "INSERT INTO s SELECT a, b FROM v WHERE a > 1; INSERT INTO t SELECT a, b FROM v"
    script = f"{TABLES} CREATE VIEW v AS {JOIN}; {inserts}"
    assert hintplan.dumps(compile_sql(script, config)) == hintplan.dumps(compile_sql(script, config))


def test_every_layer_of_a_cached_result_has_its_place_in_the_script() -> None:
    script = (
        "SET 'execution.runtime-mode' = 'batch';\nSET 'table.exec.cached-results.storage-level' = 'MEMORY_ONLY';\n"
        "CREATE VIEW v AS SELECT /*+ CACHED('storage-level'='OFF_HEAP') */ id AS a, 'x' AS b FROM orders;\n"
        "CACHE TABLE v OPTIONS('storageLevel' = 'DISK_ONLY');\nINSERT INTO s SELECT a, b FROM v"
    )
    done = compile_script(TABLES.replace("\n", " ") + "\n" + script)
    (kept,) = [o.id for o in done.plan.operators if o.cached is not None]
    found = {
        (path, layer): (place.line, place.column)
        for (operator, path, layer), place in done.positions.items()
        if operator == kept
    }
    assert found == {
        ("cached.enabled", "hint"): (4, 29),
        ("cached.enabled", "statement"): (5, 1),
        ("cached.storage-level", "config"): (3, 5),
        ("cached.storage-level", "hint"): (4, 36),
        ("cached.storage-level", "statement"): (5, 15),
    }


@pytest.mark.parametrize("config", [{}, BATCH])
def test_what_two_inserts_compute_alike_is_one_operator(config: dict[str, str]) -> None:
    once = compile_sql(f"{TABLES} INSERT INTO s {JOIN};", config)
    twice = compile_sql(f"{TABLES} INSERT INTO s {JOIN}; INSERT INTO t {JOIN};", config)
    assert [o.id for o in twice.operators] == [*(o.id for o in once.operators), "sink_t"]
    assert [o.inputs for o in twice.operators[-2:]] == [("join_o_c",), ("join_o_c",)]


def test_a_cached_view_means_the_same_in_every_script_that_has_it() -> None:
    view = f"CACHE TABLE v AS {JOIN};"
    one = compile_sql(f"{TABLES} {view} INSERT INTO s SELECT a, b FROM v WHERE a > 3;", BATCH)
    two = compile_sql(f"{TABLES} {view.replace('v', 'w')} INSERT INTO t SELECT MAX(a), b FROM w x GROUP BY b;", BATCH)
    assert meaning(one, "join_o_c") == meaning(two, "join_o_c")
    other = compile_sql(f"{TABLES} {view.replace('id;', 'id AND o.id > 1;')} INSERT INTO s SELECT a, b FROM v;", BATCH)
    assert meaning(other, "join_o_c") != meaning(one, "join_o_c")


def test_an_edit_of_a_compiled_cached_result_is_shown_over_the_statement() -> None:
    plan = compile_sql(f"{TABLES} CACHE TABLE v AS {JOIN}; INSERT INTO s SELECT a, b FROM v;", BATCH)
    edited, (change,) = set_value(plan, "join_o_c.cached.enabled", "false")
    assert change.note == "edit over statement true"
    assert set_value(edited, "join_o_c.cached.enabled", "true")[0] == plan


def test_a_dropped_view_is_forgotten_with_what_was_said_of_it() -> None:
    again = f"DROP TEMPORARY VIEW v; CREATE VIEW v AS {JOIN}; INSERT INTO s SELECT a, b FROM v"
    script = f"{TABLES} CACHE TABLE v AS {JOIN}; {again}"
    assert all(o.cached is None for o in compile_sql(script, BATCH).operators)


def test_inserts_after_a_view_is_redeclared_do_not_share_it_with_those_before() -> None:
    # All INSERTs are compiled again when the second place that reads v is found; each with the catalog of its own.
    config = BATCH | {"table.exec.cached-results.enabled": "true"}
    script = (
        f"{TABLES} CREATE VIEW v AS {JOIN}; INSERT INTO s SELECT a, b FROM v; DROP VIEW v;"
        "CREATE VIEW v AS SELECT id AS a, country AS b FROM customers; INSERT INTO t SELECT a, b FROM v;"
    )
    plan = compile_sql(script, config)
    assert [(o.id, o.inputs) for o in plan.operators if o.inputs] == [
        ("join_o_c", ("scan_orders", "scan_customers")),
        ("sink_s", ("join_o_c",)),
        ("calc_customers", ("scan_customers",)),
        ("sink_t", ("calc_customers",)),
    ]


def test_the_place_of_a_refused_cache_in_a_stream_is_that_of_the_statement() -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{TABLES}CACHE TABLE orders; INSERT INTO s SELECT id, 'x' FROM orders")
    (found,) = caught.value.diagnostics
    assert Source(text=TABLES + " ").place(len(TABLES)) == (found.line, found.column)
