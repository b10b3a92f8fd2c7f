"""What `hintplan check` says of a change is what a restart with it does: a matrix of changes, judged by results.

Each change runs twice: a first batch with the old plan, a second one with the new plan on the states of the first.
SQLite says what must be left: if all state carries over, what the new query makes of all rows; if it starts empty, what
it makes of the rows of the second batch; if some of it does, what a query says that is written for that case, in which
``b`` is the batch of a row.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan.plans.analysis.changelog import with_changelogs
from hintplan.plans.checkpoint.continuation import Continuation, continuation, record_after, record_of_begun, refuse
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.declarations.tables import Table
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate
from tests.runtime.restarted import Restartable, of_sink

O_COLUMNS = {"id": "BIGINT", "k": "BIGINT", "v": "BIGINT", "s": "STRING"}
C_COLUMNS = {"k": "BIGINT", "name": "STRING", "w": "BIGINT"}
FIRST = {
    "o": [(1, 1, 2, "x"), (2, 1, 5, "y"), (3, 2, 1, "x"), (4, 3, 4, "y"), (5, 2, 1, "x")],
    "c": [(1, "p", 3), (2, "q", 1)],
}
SECOND = {
    "o": [(6, 1, 7, "x"), (7, 2, 3, "y"), (8, 3, 2, "x"), (9, 1, 2, "y")],
    "c": [(3, "p", 2), (1, "r", 9)],
}

CARRIES, EMPTY, NEW, LEFT, UNREAD = "carries over", "starts empty", "new", "left behind", "cannot be read"
RANKED = (
    "SELECT k, n, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM o) AS r "
    "WHERE n <= 2"
)
GROUPED = "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM o GROUP BY k"
JOINED = "SELECT o.v, c.name FROM o JOIN c ON o.k = c.k"
PADDED = "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k = c.k AND o.v <= c.w"
TOTALS = "SELECT c.name, SUM(o.v) AS t FROM o JOIN c ON o.k = c.k GROUP BY c.name"
COUNTED = "SELECT k, COUNT(*) AS n FROM o GROUP BY k"
FILTERED = "SELECT k, COUNT(*) AS n FROM o WHERE v > 1 GROUP BY k"
NESTED = "SELECT t.n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM o GROUP BY k) AS t GROUP BY t.n"


def compiled(*queries: str, o: Mapping[str, str] = O_COLUMNS, connector: str = "blackhole", prefix: str = "a") -> Plan:
    """The plan of ``queries``, the first into r, the second into r2, with state that is kept for a day."""

    def files(name: str, columns: Mapping[str, str]) -> str:
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        return (
            f"CREATE TABLE {name} ({listed}) WITH ('connector' = 'filesystem', 'path' = '{name}', 'format' = 'json');"
        )

    script = "SET 'table.exec.state.ttl' = '1 d';" + files("o", o) + files("c", C_COLUMNS)
    for sink, query in zip(("r", "r2"), queries, strict=False):
        columns = ", ".join(f"{prefix}{n} {kind}" for n, kind in enumerate(kinds_of(query)))
        script += f"CREATE TABLE {sink} ({columns}) WITH ('connector' = '{connector}'); INSERT INTO {sink} {query};"
    return hintplan.compile_sql(script, name="q")


def kinds_of(query: str) -> list[str]:
    """The types of the result: SQLite tells how many columns there are, and which are text."""
    database = database_of({"o": FIRST["o"] + SECOND["o"], "c": FIRST["c"] + SECOND["c"]})
    rows = database.execute(query).fetchall()
    return ["STRING" if any(isinstance(row[n], str) for row in rows) else "BIGINT" for n in range(len(rows[0]))]


def database_of(rows: Mapping[str, list], batch: int = 1) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k, v, s, b)")
    database.execute("CREATE TABLE c (k, name, w, b)")
    add(database, rows, batch)
    return database


def add(database: sqlite3.Connection, rows: Mapping[str, list], batch: int) -> None:
    for table, found in rows.items():
        for row in found:
            database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(row) + 1))})", (*row, batch))


def by_sqlite(query: str, *batches: Mapping[str, list]) -> Counter:
    database = database_of({})
    for number, rows in enumerate(batches, start=1):
        add(database, rows, number)
    return Counter(database.execute(query).fetchall())


@dataclass(frozen=True, kw_only=True)
class Case:
    """``after`` is a query or an edit; ``states`` what becomes of each operator of the new plan, or of the old one's if
    it is left behind; ``oracle`` what is left if some states begin empty. ``on_connect`` is why Spark Connect refuses
    it."""

    before: str
    after: str | Callable[[Plan], Plan]
    states: Mapping[str, str]
    oracle: str | None = None
    on_connect: str = ""
    now: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


def setting(path: str, value: str) -> Callable[[Plan], Plan]:
    return lambda plan: set_value(plan, path, value)[0]


def with_table(name: str, **facts: object) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, tables={**plan.tables, name: replace(plan.tables[name], **facts)})


def with_options(name: str, **options: str) -> Callable[[Plan], Plan]:
    def edit(plan: Plan) -> Plan:
        table: Table = plan.tables[name]
        return replace(plan, tables={**plan.tables, name: replace(table, options={**table.options, **options})})

    return edit


def again(plan: Plan) -> Plan:
    """The same plan, written in another layout."""
    return hintplan.loads(json.dumps(json.loads(hintplan.dumps(plan)), sort_keys=True))


CASES = {
    # TTLs
    "a longer TTL": Case(
        before=GROUPED, after=setting("aggregate_o.groupAggregateState.ttl", "9 d"), states={"aggregate_o": CARRIES}
    ),
    "a TTL that is taken away": Case(
        before=JOINED, after=setting("join_o_c.leftState.ttl", "0 ms"), states={"join_o_c": CARRIES}
    ),
    "a TTL that has passed already": Case(
        before=GROUPED, after=setting("aggregate_o.groupAggregateState.ttl", "1 s"), states={"aggregate_o": CARRIES},
        now=60_000, oracle="SELECT k, COUNT(*), SUM(v) FROM o WHERE b = 2 GROUP BY k",
    ),
    "a TTL for all states": Case(
        before=TOTALS, after=setting("config.table.exec.state.ttl", "7 d"),
        states={"aggregate_r": CARRIES, "join_o_c": CARRIES},
    ),
    # aggregates
    "an aggregate call more": Case(
        before=GROUPED, after=GROUPED.replace("SUM(v) AS t", "SUM(v) AS t, MAX(v) AS x"),
        states={"aggregate_o": EMPTY},
    ),
    "an aggregate call less": Case(
        before=GROUPED, after="SELECT k, SUM(v) AS t FROM o GROUP BY k", states={"aggregate_o": EMPTY}
    ),
    "aggregate calls in another order": Case(
        before="SELECT k, MIN(v) AS a, SUM(v) AS t FROM o GROUP BY k",
        after="SELECT k, SUM(v) AS t, MIN(v) AS a FROM o GROUP BY k", states={"aggregate_o": EMPTY},
    ),
    "another aggregate function": Case(
        before="SELECT k, MIN(v) AS a FROM o GROUP BY k", after="SELECT k, MAX(v) AS a FROM o GROUP BY k",
        states={"aggregate_o": EMPTY},
    ),
    "an aggregate of distinct values": Case(
        before="SELECT k, COUNT(v) AS a FROM o GROUP BY k", after="SELECT k, COUNT(DISTINCT v) AS a FROM o GROUP BY k",
        states={"aggregate_o": EMPTY},
    ),
    "another name for an aggregate": Case(
        before=GROUPED, after=GROUPED.replace("AS t", "AS total"), states={"aggregate_o": CARRIES}
    ),
    "a group key more": Case(
        before=GROUPED, after="SELECT k, s, COUNT(*) AS n, SUM(v) AS t FROM o GROUP BY k, s",
        states={"aggregate_o": EMPTY},
    ),
    "another group key": Case(
        before=GROUPED, after="SELECT s, COUNT(*) AS n, SUM(v) AS t FROM o GROUP BY s", states={"aggregate_o": EMPTY}
    ),
    "an aggregate above another is changed": Case(
        before=NESTED, after=NESTED.replace("COUNT(*) AS m", "SUM(t.k) AS m"),
        states={"aggregate_t": EMPTY, "aggregate_o": CARRIES},
        oracle="SELECT n, SUM(k) FROM (SELECT k, COUNT(*) AS n FROM o WHERE k IN (SELECT k FROM o WHERE b = 2) "
        "GROUP BY k) GROUP BY n",
    ),
    # the first rows of each key
    "a TTL of first rows": Case(
        before=RANKED, after=setting("rank_o.rankState.ttl", "9 d"), states={"rank_o": CARRIES}
    ),
    "first rows filtered above": Case(
        before=RANKED, after=RANKED + " AND id > 2", states={"rank_o": CARRIES}
    ),
    "another name for the number": Case(
        before=RANKED, after=RANKED.replace("AS n ", "AS m ").replace("k, n,", "k, m,").replace("n <=", "m <="),
        states={"rank_o": CARRIES},
    ),
    "more first rows": Case(before=RANKED, after=RANKED.replace("<= 2", "<= 3"), states={"rank_o": EMPTY}),
    "as many first rows as the key says": Case(
        before=RANKED, after=RANKED.replace("<= 2", "<= k"), states={"rank_o": EMPTY}
    ),
    "as many first rows as the key says, filtered above": Case(
        before=RANKED.replace("<= 2", "<= k"), after=RANKED.replace("<= 2", "<= k") + " AND id > 2",
        states={"rank_o": CARRIES},
    ),
    "first rows in another order": Case(
        before=RANKED, after=RANKED.replace("v DESC", "v"), states={"rank_o": EMPTY}
    ),
    "first rows without their numbers": Case(
        before=RANKED, after=RANKED.replace("k, n,", "k,"), states={"rank_o": EMPTY}
    ),
    # filters and expressions
    "a filter below": Case(
        before=GROUPED, after=GROUPED.replace("FROM o", "FROM o WHERE v > 1"), states={"aggregate_o": EMPTY}
    ),
    "another filter below": Case(
        before=GROUPED.replace("FROM o", "FROM o WHERE v > 1"), after=GROUPED.replace("FROM o", "FROM o WHERE v > 2"),
        states={"aggregate_o": EMPTY},
    ),
    "a filter above": Case(
        before=GROUPED, after=GROUPED + " HAVING COUNT(*) > 1", states={"aggregate_o": CARRIES}
    ),
    "an expression above": Case(
        before=GROUPED, after=GROUPED.replace("SELECT k,", "SELECT k + 1 AS k1,"), states={"aggregate_o": CARRIES}
    ),
    "an expression below": Case(
        before=GROUPED, after=GROUPED.replace("SUM(v)", "SUM(v + 1)"), states={"aggregate_o": EMPTY}
    ),
    "a filter below one side of a join": Case(
        before=TOTALS, after=TOTALS.replace("JOIN c ON", "JOIN (SELECT * FROM c WHERE w > 1) AS c ON"),
        states={"aggregate_r": EMPTY, "join_o_c": EMPTY},
    ),
    "rows summed up before they are sent": Case(
        before=GROUPED, after=setting("aggregate_o.agg-phase-strategy", "TWO_PHASE"), states={"aggregate_o": CARRIES}
    ),
    # joins
    "another join type": Case(
        before=JOINED, after=JOINED.replace("JOIN", "LEFT JOIN"), states={"join_o_c": EMPTY}
    ),
    "another join key": Case(
        before="SELECT o.v, c.k, o.k AS j, c.w FROM o JOIN c ON o.k = c.k",
        after="SELECT o.v, c.k, o.k AS j, c.w FROM o JOIN c ON o.k = c.w", states={"join_o_c": EMPTY},
    ),
    "another condition of an outer join": Case(
        before=PADDED, after=PADDED.replace("o.v <= c.w", "o.v < c.w"), states={"join_o_c": EMPTY}
    ),
    "another condition of an inner join": Case(
        before="SELECT o.v, c.name, c.w FROM o JOIN c ON o.k = c.k AND o.v <= c.w",
        after="SELECT o.v, c.name, c.w FROM o JOIN c ON o.k = c.k AND o.v > c.w", states={"join_o_c": CARRIES},
    ),
    "another condition of an inner join below an aggregate": Case(
        before="SELECT c.name, SUM(o.v) AS t, MAX(c.w) AS w FROM o JOIN c ON o.k = c.k AND o.v <= c.w GROUP BY c.name",
        after="SELECT c.name, SUM(o.v) AS t, MAX(c.w) AS w FROM o JOIN c ON o.k = c.k AND o.v > c.w GROUP BY c.name",
        states={"aggregate_r": EMPTY, "join_o_c": CARRIES},
        oracle="SELECT c.name, SUM(o.v), MAX(c.w) FROM o JOIN c ON o.k = c.k AND o.v > c.w "
        "WHERE o.b = 2 OR c.b = 2 GROUP BY c.name",
    ),
    "an aggregate above a join is changed": Case(
        before=TOTALS, after=TOTALS.replace("SUM(o.v)", "COUNT(o.v)"),
        states={"aggregate_r": EMPTY, "join_o_c": CARRIES},
        oracle="SELECT c.name, COUNT(o.v) FROM o JOIN c ON o.k = c.k WHERE o.b = 2 OR c.b = 2 GROUP BY c.name",
    ),
    "columns of a join in another order": Case(
        before=JOINED, after="SELECT c.name, o.v FROM o JOIN c ON o.k = c.k", states={"join_o_c": CARRIES}
    ),
    "a column more through a join": Case(
        before=JOINED, after="SELECT o.v, c.name, c.w FROM o JOIN c ON o.k = c.k", states={"join_o_c": EMPTY}
    ),
    "a type of a column": Case(
        before=GROUPED, after=GROUPED, settings={"o": {**O_COLUMNS, "v": "INT"}}, states={"aggregate_o": EMPTY}
    ),
    "a column that nobody reads": Case(
        before=GROUPED, after=GROUPED, settings={"o": {**O_COLUMNS, "extra": "STRING"}}, states={"aggregate_o": CARRIES}
    ),
    # names
    "other aliases": Case(
        before=TOTALS, after="SELECT y.name, SUM(x.v) AS t FROM o AS x JOIN c AS y ON x.k = y.k GROUP BY y.name",
        states={"aggregate_r": CARRIES, "join_x_y": CARRIES},
    ),
    "another name of the job": Case(
        before=GROUPED, after=lambda p: replace(p, name="z"), states={"aggregate_o": CARRIES}
    ),
    "another layout of the file": Case(
        before=TOTALS, after=again, states={"aggregate_r": CARRIES, "join_o_c": CARRIES}
    ),
    "a reason": Case(
        before=GROUPED,
        after=lambda p: set_value(p, "aggregate_o.groupAggregateState.ttl", "2 d", reason="RFC 12")[0],
        states={"aggregate_o": CARRIES},
    ),
    # settings
    "another parallelism": Case(
        before=GROUPED, after=setting("config.parallelism.default", "9"), states={"aggregate_o": CARRIES}
    ),
    "another time zone": Case(
        before=GROUPED, after=setting("config.table.local-time-zone", "Asia/Tokyo"), states={"aggregate_o": CARRIES}
    ),
    "another path of a source": Case(
        before=GROUPED, after=setting("tables.o.options.path", "elsewhere"), states={"aggregate_o": CARRIES}
    ),
    "another option of a source": Case(
        before=GROUPED, after=with_options("o", **{"json.ignore-parse-errors": "true"}), states={"aggregate_o": CARRIES}
    ),
    "a comment on a source": Case(
        before=GROUPED, after=with_table("o", comment="by id"), states={"aggregate_o": CARRIES}
    ),
    # sinks
    "another connector of the sink": Case(
        before=GROUPED, after=GROUPED, settings={"connector": "print"}, states={"aggregate_o": CARRIES}
    ),
    "another column name of the sink": Case(
        before=GROUPED, after=GROUPED, settings={"prefix": "z"}, states={"aggregate_o": CARRIES}
    ),
    # sources, which get other numbers
    "a source less": Case(
        before=TOTALS, after="SELECT s, SUM(v) AS t FROM o GROUP BY s",
        states={"aggregate_o": EMPTY, "aggregate_r": LEFT, "join_o_c": LEFT},
        on_connect=r"it no longer reads c \(filesystem\)",
    ),
    "a source more": Case(
        before=GROUPED,
        after="SELECT u.k, COUNT(*) AS n, SUM(u.v) AS t FROM (SELECT k, v FROM o UNION ALL SELECT k, w FROM c) AS u "
        "GROUP BY u.k",
        states={"aggregate_u": EMPTY, "aggregate_o": LEFT}, on_connect=r"it also reads c \(filesystem\)",
    ),
    "sources in another order": Case(
        before=JOINED, after="SELECT o.v, c.name FROM c JOIN o ON o.k = c.k",
        states={"join_c_o": EMPTY, "join_o_c": LEFT}, on_connect="it reads its sources in another order",
    ),
    "a sub-query that is read once more": Case(
        before=COUNTED, after=f"SELECT k, n FROM ({COUNTED}) AS a UNION ALL SELECT k + 10, n FROM ({COUNTED}) AS b",
        states={"aggregate_o": CARRIES},
        on_connect=r"it reads o \(filesystem\) in 2 places instead of 1",
    ),
    # operators with state that come and go
    "a stateful operator above": Case(
        before=JOINED, after=TOTALS, states={"aggregate_r": EMPTY, "join_o_c": CARRIES},
        oracle="SELECT c.name, SUM(o.v) FROM o JOIN c ON o.k = c.k WHERE o.b = 2 OR c.b = 2 GROUP BY c.name",
    ),
    "a stateful operator less above": Case(
        before=TOTALS, after="SELECT c.name, o.v FROM o JOIN c ON o.k = c.k",
        states={"join_o_c": CARRIES, "aggregate_r": LEFT},
        oracle="SELECT c.name, o.v FROM o JOIN c ON o.k = c.k WHERE o.b = 2 OR c.b = 2",
    ),
    "a stateful operator below": Case(
        before=JOINED, after="SELECT d.v, c.name FROM (SELECT DISTINCT k, v FROM o) AS d JOIN c ON d.k = c.k",
        states={"aggregate_o": EMPTY, "join_d_c": EMPTY, "join_o_c": LEFT},
    ),
    "a stateful operator below one that keeps its name": Case(
        before="SELECT k, SUM(v) AS t FROM o AS x GROUP BY k",
        after="SELECT k, SUM(v) AS t FROM (SELECT DISTINCT k, v FROM o) AS x GROUP BY k",
        states={"aggregate_o": EMPTY, "aggregate_x": EMPTY},
    ),
    "a stateful operator less below one that keeps its name": Case(
        before="SELECT k, SUM(v) AS t FROM (SELECT DISTINCT k, v FROM o) AS x GROUP BY k",
        after="SELECT k, SUM(v) AS t FROM o AS x GROUP BY k",
        states={"aggregate_x": EMPTY, "aggregate_o": LEFT},
    ),
    "a stateful operator moved from below another to above it": Case(
        before="SELECT d.v, c.name FROM (SELECT DISTINCT k, v FROM o) AS d JOIN c ON d.k = c.k",
        after="SELECT DISTINCT o.v, c.name FROM o JOIN c ON o.k = c.k",
        states={"aggregate_r": EMPTY, "join_o_c": EMPTY, "aggregate_o": LEFT, "join_d_c": LEFT},
    ),
    "the inner one of two aggregates alone": Case(
        before=NESTED, after=COUNTED, states={"aggregate_o": CARRIES, "aggregate_t": LEFT},
    ),
    "an aggregate more above another": Case(
        before=COUNTED, after=NESTED.replace("COUNT(*) AS m", "SUM(t.k) AS m"),
        states={"aggregate_t": EMPTY, "aggregate_o": CARRIES},
        oracle="SELECT n, SUM(k) FROM (SELECT k, COUNT(*) AS n FROM o WHERE k IN (SELECT k FROM o WHERE b = 2) "
        "GROUP BY k) GROUP BY n",
    ),
    # a sub-query that is read twice has one state
    "one above a sub-query that is read twice": Case(
        before=f"SELECT k, n FROM ({COUNTED}) AS a UNION ALL SELECT k + 10, n FROM ({COUNTED}) AS b",
        after=f"SELECT k, n FROM ({COUNTED}) AS a WHERE n > 1 UNION ALL SELECT k + 10, n FROM ({COUNTED}) AS b",
        states={"aggregate_o": CARRIES},
    ),
    "a sub-query that is read twice has a filter": Case(
        before=f"SELECT a.k, a.n + b.n AS s FROM ({COUNTED}) AS a JOIN ({COUNTED}) AS b ON a.k = b.k",
        after=f"SELECT a.k, a.n + b.n AS s FROM ({FILTERED}) AS a JOIN ({FILTERED}) AS b ON a.k = b.k",
        states={"aggregate_o": EMPTY, "join_a_b": EMPTY},
    ),
}  # fmt: skip


def written_by(plan: Plan) -> CheckpointRecord | None:
    record = record_after(continuation(None, plan), None, plan, partitions=1, spark="4.3.0")
    assert record is not None
    return parse_record([record_line(record)], "checkpoint")


def outcomes(found: Continuation) -> dict[str, str]:
    return {state.operator: state.outcome for verdict in found.verdicts for state in verdict.states}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_verdict_on_a_change_is_what_a_restart_does(case: Case, tmp_path: Path) -> None:
    old = compiled(case.before)
    query = case.after if isinstance(case.after, str) else case.before
    new = compiled(query, **case.settings) if isinstance(case.after, str) else case.after(old)
    found = continuation(written_by(old), new)
    assert outcomes(found) == case.states

    job = Restartable(old, tmp_path)
    job.batch(FIRST)
    assert job.result == by_sqlite(case.before, FIRST)
    lost, anew = (bool({*which} & {*case.states.values()}) for which in ([EMPTY, LEFT], [EMPTY]))
    assert found.loses == lost
    refuse(found, "checkpoint", allow_drop=lost)
    whole, rest = by_sqlite(query, FIRST, SECOND), by_sqlite(query, SECOND)
    assert whole != rest, "or else this case shows nothing"
    expected = by_sqlite(case.oracle, FIRST, SECOND) if case.oracle else rest if anew else whole
    again = job.restarted(new, Counter() if anew or case.oracle else by_sqlite(query, FIRST))
    again.batch(SECOND, case.now)
    assert again.result == expected
    if lost:
        with pytest.raises(hintplan.RunError, match=r"starts? empty|(is|are) left behind"):
            refuse(found, "checkpoint", allow_drop=False)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_spark_connect_refuses_what_needs_other_numbers_of_sources(case: Case) -> None:
    old = compiled(case.before)
    new = compiled(case.after, **case.settings) if isinstance(case.after, str) else case.after(old)
    record = written_by(old)
    assert record is not None
    before = record_of_begun(record)
    found = continuation(before, new, share=False)
    if not case.on_connect:
        assert outcomes(found) == case.states
        return
    assert {state.outcome for verdict in found.verdicts for state in verdict.states} == {UNREAD}
    with pytest.raises(hintplan.RunError, match=case.on_connect):
        refuse(found, "checkpoint", allow_drop=True)


def test_the_matrix_has_every_verdict() -> None:
    assert len(CASES) >= 25
    assert {outcome for case in CASES.values() for outcome in case.states.values()} == {
        CARRIES, EMPTY, LEFT,
    }  # fmt: skip
    assert sum(bool(case.on_connect) for case in CASES.values()) == 4


def test_another_insert_begins_and_the_one_that_is_there_goes_on(tmp_path: Path) -> None:
    other = "SELECT s, COUNT(*) AS n FROM o GROUP BY s"
    old, both = compiled(TOTALS), compiled(TOTALS, other)
    found = continuation(written_by(old), both)
    assert {verdict.query: verdict.outcome for verdict in found.verdicts} == {"sink_r": "continues", "sink_r2": "new"}
    assert outcomes(found) == {"aggregate_r": CARRIES, "join_o_c": CARRIES, "aggregate_o": NEW}
    refuse(found, "checkpoint", allow_drop=False)

    job = Restartable(old, tmp_path)
    job.batch(FIRST)
    job = job.restarted(of_sink(both, "sink_r"), job.result)
    job.batch(SECOND)
    assert job.result == by_sqlite(TOTALS, FIRST, SECOND)


def test_an_insert_with_nothing_in_common_that_is_gone_goes_on_when_it_is_back(tmp_path: Path) -> None:
    other = "SELECT name, SUM(w) AS n FROM c GROUP BY name"
    both, one = compiled(GROUPED, other), compiled(GROUPED)
    record = written_by(both)
    found = continuation(record, one)
    assert outcomes(found) == {"aggregate_o": CARRIES, "aggregate_c": LEFT}
    with pytest.raises(hintplan.RunError, match="sink_r2 is left behind, because the plan no longer writes sink_r2"):
        refuse(found, "checkpoint", allow_drop=False)
    refuse(found, "checkpoint", allow_drop=True)

    # What was agreed to is recorded: nothing is asked again, and the query is there to be taken up.
    record = record_after(found, record, one, partitions=1, spark="4.3.0")
    assert not continuation(record, one).loses
    back = continuation(record, both)
    assert outcomes(back) == {"aggregate_o": CARRIES, "aggregate_c": CARRIES}

    left = Restartable(of_sink(both, "sink_r2"), tmp_path)
    left.batch(FIRST)
    left = left.restarted(of_sink(both, "sink_r2"), left.result)
    left.batch(SECOND)  # of its sources, it has read nothing in the meantime
    assert left.result == by_sqlite(other, FIRST, SECOND)


def test_an_insert_that_shares_a_state_and_is_gone_begins_anew_when_it_is_back() -> None:
    both, one = compiled(TOTALS, TOTALS.replace("SUM", "MAX")), compiled(TOTALS)
    record = written_by(both)
    found = continuation(record, one)
    (verdict,) = found.verdicts
    assert (verdict.outcome, verdict.sinks) == ("continues", ("sink_r2",))
    assert outcomes(found) == {"aggregate_r": CARRIES, "join_o_c": CARRIES, "aggregate_r2": LEFT}
    with pytest.raises(hintplan.RunError, match="sink_r2 is left behind, because the plan no longer writes it"):
        refuse(found, "checkpoint", allow_drop=False)
    record = record_after(found, record, one, partitions=1, spark="4.3.0")
    assert not continuation(record, one).loses
    back = {each.query: each for each in continuation(record, both).verdicts}
    assert {name: each.outcome for name, each in back.items()} == {verdict.query: "continues", "sink_r2": "new"}
    states = {name: {state.operator: state.outcome for state in each.states} for name, each in back.items()}
    assert states == {
        verdict.query: {"aggregate_r": CARRIES, "join_o_c": CARRIES},
        "sink_r2": {"aggregate_r2": NEW, "join_o_c": NEW},
    }


def test_a_sink_of_files_that_is_back_does_not_write_where_its_former_query_has() -> None:
    def with_files(*tables: str) -> Plan:
        files = "'connector' = 'filesystem', 'path' = '{}', 'format' = 'json'"
        script = f"CREATE TABLE o (k BIGINT) WITH ({files.format('o')});"
        for name in tables:
            script += f"CREATE TABLE {name} (k BIGINT) WITH ({files.format(name)}); INSERT INTO {name} SELECT k FROM o;"
        return hintplan.compile_sql(script)

    record = written_by(with_files("r", "s"))
    found = continuation(record, with_files("r"))
    record = record_after(found, record, with_files("r"), partitions=1, spark="4.3.0")
    back = {verdict.query: verdict for verdict in continuation(record, with_files("r", "s")).verdicts}
    assert {name: verdict.outcome for name, verdict in back.items()} == {"scan_o": "continues", "sink_s": "refused"}
    assert "would write files to s, where scan_o has written" in back["sink_s"].because


def test_a_source_that_turns_into_a_changelog_starts_empty(tmp_path: Path) -> None:
    query = "SELECT k, MAX(v) AS x FROM o GROUP BY k"
    old = compiled(query)
    assert isinstance(old.operator("aggregate_o"), Aggregate)
    options = {**old.tables["o"].options, "source.changelog": "true"}
    script_like = replace(old, tables={**old.tables, "o": replace(old.tables["o"], options=options)})
    new = with_changelogs(script_like)
    found = continuation(written_by(old), new)
    assert outcomes(found) == {"aggregate_o": EMPTY}
    job = Restartable(old, tmp_path)
    job.batch(FIRST)
    job = job.restarted(new, Counter())
    job.batch({"o": [("+I", *row) for row in SECOND["o"]] + [("-D", *SECOND["o"][0])]})
    assert job.result == by_sqlite(query, {"o": SECOND["o"][1:]})


def test_a_new_query_does_not_write_files_where_another_has() -> None:
    def into_files(table: str, path: str) -> Plan:
        return hintplan.compile_sql(
            "CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');"
            f"CREATE TABLE {table} (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');"
            f"INSERT INTO {table} SELECT k FROM o;"
        )

    record = written_by(into_files("r", "out"))
    renamed = continuation(record, into_files("z", "out/"))
    with pytest.raises(hintplan.RunError, match="sink_z: it is new and would write files to out, where sink_r has"):
        refuse(renamed, "checkpoint", allow_drop=True)
    refuse(continuation(record, into_files("z", "elsewhere")), "checkpoint", allow_drop=True)


def test_a_query_that_has_written_files_does_not_go_on_in_another_directory() -> None:
    def into_files(path: str) -> Plan:
        return hintplan.compile_sql(
            "CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');"
            f"CREATE TABLE r (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');"
            "INSERT INTO r SELECT k FROM o;"
        )

    old, same, other = map(into_files, ("out", "out/", "elsewhere"))
    record = record_of_begun(written_by(old))
    refuse(continuation(record, same), "checkpoint", allow_drop=False)
    with pytest.raises(hintplan.RunError, match="sink_r: it has written files to out, and not to elsewhere"):
        refuse(continuation(record, other), "checkpoint", allow_drop=True)
    refuse(continuation(written_by(old), other), "checkpoint", allow_drop=False)  # never begun
    assert [change.effect.level for change in compare_plans(old, other)] == ["incompatible"]
    assert [change.effect.level for change in compare_plans(old, same)] == ["restart"]


def test_what_was_dropped_does_not_come_back_with_the_old_plan(tmp_path: Path) -> None:
    old, new = compiled("SELECT k, MIN(v) AS a FROM o GROUP BY k"), compiled("SELECT k, MAX(v) AS a FROM o GROUP BY k")
    job = Restartable(old, tmp_path)
    job.batch(FIRST)
    job = job.restarted(new, Counter())
    job.batch(SECOND)
    job = job.restarted(old, Counter())
    job.batch(SECOND)
    assert job.result == by_sqlite("SELECT k, MIN(v) FROM o GROUP BY k", SECOND)
