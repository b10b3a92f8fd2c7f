"""Every stateful operator's entries have stored tables that can be counted, and state is found by what it means."""

from __future__ import annotations

from dataclasses import replace

from hintplan import compile_sql
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import KINDS, Stateful
from hintplan.runtime.inspect.entries import entries_of, fits
from hintplan.runtime.inspect.state_owner import owned_states
from hintplan.runtime.state.manifest import SegmentEntry, StateTable, write_manifest
from hintplan.runtime.storage.manifest import Manifest

SCRIPT = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE u (id BIGINT, g BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH
  ('connector' = 'filesystem', 'path' = 'u', 'format' = 'json', 'source.changelog' = 'upsert');
CREATE TABLE o (g BIGINT, w DOUBLE) WITH ('connector' = 'datagen');
CREATE TABLE by_v (v STRING, w DOUBLE, PRIMARY KEY (v) NOT ENFORCED) WITH
  ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 'by_v');
CREATE TABLE firsts (g BIGINT, w DOUBLE) WITH ('connector' = 'print');
CREATE TABLE sums (g BIGINT, n BIGINT, d BIGINT) WITH ('connector' = 'print');
INSERT INTO by_v SELECT v, w FROM u LEFT JOIN o ON u.g = o.g;
INSERT INTO sums SELECT g, COUNT(*), COUNT(DISTINCT v) FROM u GROUP BY g;
INSERT INTO firsts SELECT g, w FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY at) AS n FROM (SELECT *, PROCTIME() AS at FROM o)
) WHERE n = 1;
INSERT INTO firsts SELECT g, w FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY w) AS n FROM o) WHERE n <= 3;
"""
TIMED = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE o (g BIGINT, w BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE sums (g BIGINT, n BIGINT, d BIGINT) WITH ('connector' = 'print');
CREATE VIEW t AS SELECT * FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '5' SECOND));
CREATE VIEW s AS SELECT * FROM TABLE(SESSION(TABLE o PARTITION BY g, DESCRIPTOR(ts), INTERVAL '5' SECOND));
INSERT INTO sums SELECT g, COUNT(*), COUNT(DISTINCT w) FROM t GROUP BY g, window_start, window_end;
INSERT INTO sums SELECT g, w, w FROM s;
INSERT INTO sums SELECT a.g, a.w, b.w FROM t AS a JOIN t AS b
  ON a.g = b.g AND a.window_start = b.window_start AND a.window_end = b.window_end;
INSERT INTO sums SELECT g, w, w FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY g, window_start, window_end ORDER BY w) AS n FROM t) WHERE n <= 3;
INSERT INTO sums SELECT g, w, w FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY g, window_start, window_end ORDER BY ts DESC) AS n FROM t) WHERE n = 1;
INSERT INTO sums SELECT a.g, a.w, b.w FROM o AS a JOIN o AS b ON a.g = b.g AND a.ts = b.ts;
INSERT INTO sums SELECT g, w, w FROM o ORDER BY ts;
"""
MIXED = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE o (g BIGINT, w BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE sums (g BIGINT, w BIGINT) WITH ('connector' = 'print');
CREATE VIEW v AS SELECT g, w, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY ts DESC) AS n FROM o)
WHERE n = 1;
INSERT INTO sums SELECT a.g, b.w FROM o AS a JOIN v FOR SYSTEM_TIME AS OF a.ts AS b ON a.w = b.g;
"""
OVER = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE o (g BIGINT, w BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE sums (g BIGINT, w BIGINT) WITH ('connector' = 'print');
INSERT INTO sums SELECT g, SUM(w) OVER (PARTITION BY g ORDER BY ts {}) FROM o;
"""


def tables_of(plan: Plan, edited: Plan | None) -> dict[str, tuple]:
    """For each kind of operator of a plan, its entries with the names of their tables and their keys."""
    return {
        plan.operator(name).op: tuple((e.name, [layout.name for layout in e.layouts], e.keys) for e in entries)
        for name, entries in entries_of(plan, edited).items()
    }


def test_each_state_entry_of_each_stateful_operator_has_tables_keys_and_both_ttls() -> None:
    plan = compile_sql(SCRIPT)
    edited, _ = set_value(plan, "config.table.exec.state.ttl", "2 h")
    assert tables_of(plan, edited) == {
        "changelog-normalize": (("changelogNormalizeState", ["rows"], ("id",)),),
        "join": (("leftState", ["left"], ("g",)), ("rightState", ["right"], ("g",))),
        "sink-materialize": (("sinkMaterializeState", ["rows"], ("v",)),),
        "aggregate": (("groupAggregateState", ["groups", "values(v)"], ("g",)),),
        "deduplicate": (("deduplicateState", ["rows"], ("g",)),),
        "rank": (("rankState", ["first"], ("g",)),),
    }
    ttls = {(entry.ttl, entry.edited) for entries in entries_of(plan, edited).values() for entry in entries}
    assert ttls == {("1 h", "2 h")}
    assert {entry.edited for entries in entries_of(plan, plan).values() for entry in entries} == {None}


def test_entries_that_go_by_the_watermark_have_tables_by_time_and_no_ttl() -> None:
    plan = compile_sql(TIMED)
    edited, _ = set_value(plan, "config.table.exec.state.ttl", "2 h")
    entries = [entry for entries in entries_of(plan, edited).values() for entry in entries]
    assert {(entry.ttl, entry.edited) for entry in entries} == {(None, None)}
    assert all(layout.by_time for entry in entries for layout in entry.layouts)
    groups = ("windowAggregateState", ["groups", "values(w)"], ("g",))
    assert tables_of(plan, None)["window-aggregate"] == (groups,)
    scripts = (TIMED, SCRIPT, MIXED, OVER.format(""))
    kinds = {kind for script in scripts for kind in tables_of(compile_sql(script), None)}
    assert kinds == {kind.op for kind in KINDS if issubclass(kind, Stateful)}, "a stateful operator is missing here"


def test_of_a_join_in_time_only_versions_have_a_ttl() -> None:
    plan = compile_sql(MIXED)
    edited, _ = set_value(plan, "config.table.exec.state.ttl", "2 h")
    (entries,) = entries_of(plan, edited).values()
    assert [(entry.ttl, entry.edited) for entry in entries] == [(None, None), ("1 h", "2 h")]
    of_left, of_right = ("leftState", ["left"], ("w",)), ("rightState", ["right", "versions"], ("g",))
    assert tables_of(plan, None)["temporal-join"] == (of_left, of_right)


def test_of_over_only_the_sums_of_keys_have_a_ttl() -> None:
    waiting = ("waitingState", ["waiting"], ("g",))
    for frame, table, ttls in (
        ("", "keys", ("1 h", "2 h")),
        ("RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW", "recent", (None, None)),
    ):
        plan = compile_sql(OVER.format(frame))
        edited, _ = set_value(plan, "config.table.exec.state.ttl", "2 h")
        (entries,) = entries_of(plan, edited).values()
        assert [(entry.ttl, entry.edited) for entry in entries] == [(None, None), ttls]
        assert tables_of(plan, None)["over-aggregate"] == (waiting, ("overState", [table], ("g",)))


def join_plan(query: str) -> Plan:
    return compile_sql(
        "CREATE TABLE l (k BIGINT, a STRING) WITH ('connector' = 'datagen');"
        "CREATE TABLE r (k BIGINT, b STRING) WITH ('connector' = 'datagen');"
        f"CREATE TABLE o (a STRING, n BIGINT) WITH ('connector' = 'blackhole'); INSERT INTO o {query};"
    )


def owners(before: Plan, plan: Plan) -> list[tuple[str, str, str | None]]:
    """Whose the states are that a run of ``before`` has left, if ``plan`` looks at them."""
    record = record_after(continuation(None, before), None, before, partitions=2, spark="4.3.0")
    assert record is not None
    return [(state.operator, state.status, state.was) for state in owned_states(plan, record)]


def test_state_belongs_to_the_operator_for_which_it_means_the_same() -> None:
    before = join_plan("SELECT a, l.k FROM l JOIN r ON l.k = r.k")
    assert owners(before, before) == [("join_l_r", "read", None)]
    renamed = join_plan("SELECT a, x.k FROM l AS x JOIN r ON x.k = r.k")
    assert owners(before, renamed) == [("join_x_r", "read", "join_l_r")]
    outer = join_plan("SELECT a, l.k FROM l LEFT JOIN r ON l.k = r.k")
    assert owners(before, outer) == [("join_l_r", "other-meaning", None)]
    assert owners(before, join_plan("SELECT a, k FROM l")) == [("join_l_r", "orphan", None)]


def test_state_of_a_query_that_the_plan_has_not_belongs_to_nobody() -> None:
    before = join_plan("SELECT a, l.k FROM l JOIN r ON l.k = r.k")
    other = compile_sql(
        "CREATE TABLE l (k BIGINT, a STRING) WITH ('connector' = 'datagen');"
        "CREATE TABLE r (k BIGINT, b STRING) WITH ('connector' = 'datagen');"
        "CREATE TABLE p (a STRING, n BIGINT) WITH ('connector' = 'blackhole');"
        "INSERT INTO p SELECT a, l.k FROM l JOIN r ON l.k = r.k;"
    )
    assert owners(before, other) == [("join_l_r", "orphan", None)]


def test_what_another_version_has_stored_otherwise_does_not_fit() -> None:
    plan = join_plan("SELECT a, l.k FROM l JOIN r ON l.k = r.k")
    (entries,) = entries_of(plan, None).values()
    right = {layout.name: StateTable(fingerprint=layout.fingerprint) for each in entries for layout in each.layouts}
    segment = SegmentEntry("left/1", 1, 1, 0, 0, False)
    other = {**right, "left": StateTable(fingerprint="0", rows=1, segments=(segment,))}
    same = {**right, "left": replace(right["left"], rows=1, segments=(segment,))}
    of = {
        name: Manifest(operator="j", batch=1, run=1, tables=write_manifest(found))
        for name, found in {"same": same, "other": other, "none": right}.items()
    }
    assert {name: fits(entries, [manifest]) for name, manifest in of.items()} == {
        "same": True, "other": False, "none": True
    }  # fmt: skip
