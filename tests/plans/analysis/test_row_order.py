"""Which operators are read by the order of their rows."""

from __future__ import annotations

import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.row_order import ordered_by_scan, read_in_order

TABLES = """
CREATE TABLE o (k BIGINT, v STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE c (k BIGINT, n STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'c');
CREATE TABLE r (k BIGINT, x STRING) WITH ('connector' = 'print');
"""


@pytest.mark.parametrize("call", ["FIRST_VALUE(x)", "LAST_VALUE(x)", "LISTAGG(x)"])
def test_what_is_below_a_first_or_last_value_or_a_list_is_read_in_order(call: str) -> None:
    query = f"SELECT k, {call} FROM (SELECT o.k, UPPER(v) AS x FROM o JOIN c ON o.k = c.k) GROUP BY k"
    plan = compile_sql(f"{TABLES} INSERT INTO r {query};")
    assert read_in_order(plan) == {"scan_o", "scan_c", "join_o_c", "calc_r"}


def test_sums_and_extremes_do_not_read_in_order() -> None:
    query = "SELECT o.k, MAX(v) FROM o JOIN c ON o.k = c.k GROUP BY o.k"
    assert read_in_order(compile_sql(f"{TABLES} INSERT INTO r {query};")) == frozenset()


@pytest.mark.parametrize(
    ("query", "sink", "ordered"),
    [
        ("INSERT INTO {} SELECT k, UPPER(v) FROM l", "f", {"scan_l"}),
        ("INSERT INTO {} SELECT k, v FROM l UNION ALL SELECT k, v FROM o", "r", {"scan_l"}),
        ("INSERT INTO {} SELECT k, MAX(v) FROM l GROUP BY k", "f", set()),
        ("INSERT INTO {} SELECT k, v FROM o", "f", set()),
        ("INSERT INTO {} SELECT k, v FROM l", "b", set()),
        ("INSERT INTO {} SELECT k, v FROM t", "f", set()),
    ],
)
def test_scans_put_changes_in_order_that_reach_a_sink_without_state(query: str, sink: str, ordered: set[str]) -> None:
    files = "'connector' = 'filesystem', 'format' = 'json'"
    tables = f"""{TABLES}
    CREATE TABLE l (k BIGINT, v STRING) WITH ({files}, 'path' = 'l', 'source.changelog' = 'true');
    CREATE TABLE f (k BIGINT, x STRING) WITH ({files}, 'path' = 'f', 'sink.changelog' = 'true');
    CREATE TABLE b (k BIGINT, x STRING) WITH ('connector' = 'blackhole');
    CREATE TABLE t (k BIGINT, v STRING) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'debezium-json',
      'properties.bootstrap.servers' = 'h:9', 'scan.startup.mode' = 'earliest-offset');
    """
    assert ordered_by_scan(compile_sql(f"{tables} {query.format(sink)};")) == ordered
