"""Scenarios on plans that Arrow computes: clocks, TTLs, states, changelogs, windows; and the words of each failure.

None of these tests may start Spark.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan.plans.errors import RunError
from hintplan.runtime.rehearsal.rehearsal import Rehearsal
from tests.runtime.rehearsal.rehearsed import FILES, compiled, failures, no_spark, outcomes

IN_TIME = """
tests:
  a payment within three hours finds its order:
    - at: 2026-03-01 10:00
      orders: [{id: 1, total: 20.50}]
      state: {join_o_p.leftState: 1}
    - at: 2026-03-01 12:59
      payments: [{order_id: 1, method: card}]
      expect: {paid: [{id: 1, total: 20.50, method: card}]}
  and after three hours it does not:
    - at: 2026-03-01 10:00
      orders: [{id: 1, total: 20.50}]
    - after: 3 h 1 min
      payments: [{order_id: 1, method: card}]
      expect: {paid: []}
      state: {join_o_p.leftState: 0, join_o_p.rightState: 1}
"""
FLINK: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "flink" / "event_time.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("slices", [1, 3])
def test_a_ttl_decides_what_a_payment_finds(slices: int) -> None:
    assert failures(compiled(), IN_TIME, slices=slices) == []


@pytest.mark.parametrize(
    ("ttl", "name"),
    [("2 h", "a payment within three hours finds its order"), ("4 h", "and after three hours it does not")],
)
def test_another_ttl_fails_the_test_that_names_it(ttl: str, name: str) -> None:
    edited = hintplan.set(compiled(), "join_o_p.state.leftState.ttl", ttl, reason="a test")
    found = {test: said for test, said in outcomes(edited, IN_TIME).items() if said}
    assert list(found) == [name]
    assert "'paid' has other rows than expected" in found[name][0]


def test_a_difference_is_a_table() -> None:
    tests = """
tests:
  one:
    - orders: [{id: 1, total: 20.50}, {id: 2, total: 3}]
      payments: [{order_id: 1, method: card}, {order_id: 2, method: ~}]
      expect: {paid: [{id: 1, total: 20.50, method: cash}, {id: 2, total: 3.00, method: ~}]}
"""
    (failed,) = failures(compiled(), tests)
    assert failed.splitlines() == [
        "p.test.yaml:7:16: 'paid' has other rows than expected",
        "     id  total  method",
        "  -  1   20.50  cash",
        "  +  1   20.50  card",
        "  - expected and missing: 1 · + came and not expected: 1 · as expected: 1",
    ]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("order: [{id: 1}]", "4:7: the plan has no source 'order'\n  hint: did you mean 'orders'?"),
        ("paid: [{id: 1}]", "4:7: 'paid' is a sink, not a source\n  hint: write expect: {paid: [...]}"),
        ("expekt: []", "4:7: the plan has no source 'expekt'\n  hint: did you mean 'expect:'?"),
        ("expect: {pad: []}", "4:16: the plan has no sink 'pad'\n  hint: did you mean 'paid'?"),
        ("orders: [{id: 1, totl: 2}]", "4:24: there is no column 'totl' in 'orders'\n  hint: did you mean 'total'?"),
        ("orders: [{id: one}]", "4:21: column 'id': 'one' is no BIGINT\n  hint: the column is BIGINT"),
        ("orders: [{id: 1.5}]", "4:21: column 'id': '1.5' is no BIGINT"),
        (
            "orders: [{id: 9223372036854775808}]",
            "4:21: column 'id': 9223372036854775808 is out of the range of BIGINT",
        ),
        ("orders: [{total: 0.125}]", "4:24: column 'total': 0.125 has more than 2 digits behind the point"),
        ("orders: [{total: 123456789}]", "4:24: column 'total': 123456789 has more than 8 digits before the point"),
        ("orders: [{id: [1]}]", "4:21: column 'id': expected a number, found a list"),
        ("orders: [{op: -D}]", "4:17: 'orders' only adds rows, so a row has no op"),
        ("at: yesterday", "4:11: 'yesterday' is no time\n  hint: write at: 2026-03-01 10:00, or at: 10:00"),
        ("at: 2026-02-30 10:00", "4:11: '2026-02-30 10:00' is no time"),
        ("state: {join_o_p.lefState: 1}", "4:34: there is no state 'join_o_p.lefState'\n  hint: did you mean"),
        ("lookups: {orders: []}", "4:17: the plan looks nothing up in 'orders'"),
    ],
)
def test_a_mistake_is_named_with_its_place(step: str, said: str) -> None:
    (failed,) = failures(compiled(), f"tests:\n  one:\n    - {step}\n")
    assert failed.startswith(f"p.test.yaml:{said}"), failed


def test_time_does_not_go_backwards() -> None:
    (failed,) = failures(compiled(), "tests:\n  one:\n    - at: 2026-03-01 10:00\n    - at: 09:59\n")
    assert failed == (
        "p.test.yaml:5:11: time goes backwards: the step before is at 2026-03-01 10:00:00\n"
        "  hint: sort the steps by time, or write after: 1 h"
    )


SUMS = f"""
CREATE TABLE sales (shop STRING, amount INT) WITH ({FILES}'sales'{{changes}});
CREATE TABLE sums (shop STRING, total INT, PRIMARY KEY (shop) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO sums SELECT shop, SUM(amount) FROM sales GROUP BY shop;
"""


def test_a_changelog_has_its_row_kinds_and_a_table_its_last_rows() -> None:
    tests = """
tests:
  one:
    - sales: [{shop: a, amount: 1}]
    - sales: [{shop: a, amount: 2}, {shop: b, amount: 5}]
      expect:
        sums:
          added: [{shop: a, total: 3}, {shop: b, total: 5}]
          changelog: [{op: -U, shop: a, total: 1}, {op: +U, shop: a, total: 3}, {op: +I, shop: b, total: 5}]
      state: {aggregate_sales.groupAggregateState: 2}
    - expect: {sums: [{shop: a, total: 3}, {shop: b, total: 5}]}
    - expect: {sums: [{shop: a}, {shop: b}]}
"""
    plan = compiled(SUMS.format(changes=""))
    assert failures(plan, tests, slices=2) == []
    wrong = tests.replace("{op: -U, shop: a, total: 1}, ", "")
    assert "'sums' has other changes than expected" in failures(plan, wrong)[0]


def test_a_source_of_changes_takes_rows_back() -> None:
    plan = compiled(SUMS.format(changes=", 'source.changelog' = 'true'"))
    tests = """
tests:
  one:
    - sales: [{op: +I, shop: a, amount: 1}, {shop: a, amount: 2}]
    - sales: [{op: -D, shop: a, amount: 2}]
      expect: {sums: [{shop: a, total: 1}]}
    - sales: [{op: -X, shop: a, amount: 2}]
"""
    (failed,) = failures(plan, tests)
    assert failed.startswith("p.test.yaml:8:20: '-X' is no row kind of 'sales'\n  hint: row kinds: +I, -U, +U, -D")


def test_windows_close_as_the_rows_of_flink_closed_them() -> None:
    recorded = FLINK["tumble, boundaries"]
    sql = f"""
CREATE TABLE s ({recorded["tables"]["s"]}) WITH ({FILES}'s');
CREATE TABLE sink WITH ('connector' = 'print') AS {recorded["query"]};
"""
    names = ("k", "v", "ts")
    steps = []
    for number, step in enumerate(recorded["steps"], 1):
        _, table, _, _, *values = step.split()
        closed = [row[2:] for row in recorded["output"] if row[0] < number]
        columns = ("k", "window_start", "window_end", "n", "s")
        rows = [dict(zip(columns, row, strict=True)) for row in closed]
        steps.append({table: [dict(zip(names, values, strict=True))], "expect": {"sink": rows}})
    last = [dict(zip(columns, row[2:], strict=True)) for row in recorded["output"]]
    steps.append({"ends": "true", "expect": {"sink": last}})
    tests = "tests: " + json.dumps({"flink": steps}).replace('"true"', "true")
    assert failures(compiled(sql), tests) == []


def test_rows_in_another_time_zone_are_the_same_instants() -> None:
    sql = f"""
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE a (t TIMESTAMP_LTZ(3)) WITH ({FILES}'a');
CREATE TABLE b (t TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
INSERT INTO b SELECT t FROM a;
"""
    tests = """
tests:
  one:
    - a: [{t: 2026-03-01 10:00}, {t: 2026-03-01T09:00:00Z}, {t: 2026-03-01 04:00:00 -05:00}]
      expect: {b: [{t: 2026-03-01 10:00:00}, {t: 2026-03-01 10:00:00}, {t: 2026-03-01 09:00:00Z}]}
"""
    assert failures(compiled(sql), tests) == []


def test_values_of_all_types_come_back() -> None:
    row = {
        "a": "true", "b": "-128", "c": "1.5", "d": "NaN", "e": "12.30", "f": "NO", "g": "0x0aff", "h": "2026-03-01",
        "i": "10:30", "j": "2026-03-01 10:00:00.123", "k": ["1", None], "l": {"x": "1"}, "m": {"y": "2", "z": ["q"]},
    }  # fmt: skip
    types = (
        "a BOOLEAN, b TINYINT, c FLOAT, d DOUBLE, e DECIMAL(5, 2), f STRING, g BYTES, h DATE, i TIME, j TIMESTAMP(3), "
        "k ARRAY<INT>, l MAP<STRING, INT>, m ROW<y BIGINT, z ARRAY<STRING>>"
    )
    sql = f"""
CREATE TABLE a ({types}) WITH ({FILES}'a');
CREATE TABLE b ({types}) WITH ('connector' = 'print');
INSERT INTO b SELECT * FROM a;
"""
    tests = "tests: " + json.dumps({"all": [{"a": [row, {}], "expect": {"b": [row, {}]}}]})
    assert failures(compiled(sql), tests) == []


def test_a_batch_plan_has_no_steps() -> None:
    plan = replace(compiled(), mode="batch")
    with pytest.raises(RunError, match="runs in batch mode, which has no time"):
        Rehearsal(plan, session=no_spark)


def test_a_program_says_the_same_as_a_file() -> None:
    test = hintplan.test(compiled())
    test.at("2026-03-01 10:00").rows("orders", [{"id": 1, "total": "20.50"}])
    test.after("2 h 59 min").rows("payments", [{"order_id": 1, "method": "card"}])
    test.expect("paid", [{"id": 1, "total": 20.5, "method": "card"}])
    test.expect("paid", [{"op": "+I", "id": 1}], part="changelog").expect_state("join_o_p.leftState", 1)
    with pytest.raises(AssertionError, match="came and not expected: 1"):
        test.expect("paid", [])
    with pytest.raises(hintplan.HintplanError, match="time goes backwards"):
        test.at("10:00").expect("paid", [])


CLOCK = f"""
CREATE TABLE clicks (k STRING, proc AS PROCTIME()) WITH ({FILES}'clicks');
CREATE TABLE counts (k STRING, ending TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT k, window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(proc), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
"""


@pytest.mark.parametrize("slices", [1, 2])
def test_windows_of_processing_time_close_when_the_clock_of_the_test_has_passed_them(slices: int) -> None:
    tests = """
tests:
  two windows:
    - at: 2026-03-01 10:00:01
      clicks: [{k: a}, {k: a}, {k: b}]
    - at: 2026-03-01 10:00:09
      clicks: [{k: a}]
      expect: {counts: []}
      state: {window_clicks.windowAggregateState: 2}
    - at: 2026-03-01 10:00:10
      expect: {counts: [{k: a, ending: 2026-03-01 10:00:10, n: 3}, {k: b, ending: 2026-03-01 10:00:10, n: 1}]}
      state: {window_clicks.windowAggregateState: 0}
    - clicks: [{k: c}]
    - after: 1 h
      clicks: [{k: d}]
      expect: {counts: {added: [{k: c, ending: 2026-03-01 10:00:20, n: 1}]}}
    - ends: true
      expect: {counts: {added: [{k: d, ending: 2026-03-01 11:00:20, n: 1}]}}
"""
    assert failures(compiled(CLOCK), tests, slices=slices) == []


IDLE = f"""
CREATE TABLE a (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({FILES}'a');
CREATE TABLE b (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ({FILES}'b', 'scan.watermark.idle-timeout' = '1 min');
CREATE VIEW united AS SELECT * FROM a UNION ALL SELECT * FROM b;
CREATE TABLE counts (ending TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE united, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
"""


def test_an_idle_table_lets_windows_close_though_no_row_comes() -> None:
    tests = """
tests:
  table b is silent:
    - at: 2026-03-01 10:00
      a: [{k: x, ts: 2026-03-01 09:00:25}]
      b: [{k: y, ts: 2026-03-01 09:00:03}]
    - after: 59 s
      expect: {counts: []}
    - after: 1 s
      expect: {counts: [{ending: 2026-03-01 09:00:10, n: 1}]}
"""
    assert failures(compiled(IDLE), tests) == []
