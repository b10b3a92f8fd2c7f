"""What Flink has of event time is refused by its name, at its place, with what to write instead; some of it is not."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.operators import IntervalJoin

TABLES = """CREATE TABLE t (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP(3), pt AS PROCTIME(),
 WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json');
CREATE TABLE d (k BIGINT, rate BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 'd');
CREATE TABLE r (a BIGINT, b BIGINT) WITH ('connector' = 'print');
INSERT INTO r
"""

PARTS = "is not supported: it belongs to a window in GROUP BY"
MATCHING = "write GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), and TUMBLE_START with the same arguments in SELECT"
NEW = "write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end"
OVER = "OVER is not supported in a stream, by Flink neither: "
NO_WATERMARK = "is not supported: an expression does not know the watermark"
HOUR = "INTERVAL '1' HOUR"
MINUTES = "INTERVAL '5' MINUTE"

# A query with a '^' before the place that is named, the message, and the hint.
REFUSED = {
    "groups of CUMULATE": (
        f"SELECT k, SUM(v) FROM t\nGROUP BY k, ^CUMULATE(ts, {MINUTES}, {HOUR})",
        "CUMULATE is not supported: it is a window, which only FROM has",
        NEW,
    ),
    "a column SESSION": (
        f"SELECT k, SUM(v) FROM t\nGROUP BY k HAVING ^SESSION(ts, {MINUTES}) > 1",
        "SESSION is not supported: it is a window, which FROM or GROUP BY has",
        NEW,
    ),
    "the start of a window": (
        f"SELECT k, EXTRACT(HOUR FROM ^TUMBLE_START(ts, {HOUR})) FROM t GROUP BY k",
        f"TUMBLE_START {PARTS}",
        MATCHING,
    ),
    "the rowtime of a window": (
        f"SELECT k, EXTRACT(HOUR FROM ^HOP_ROWTIME(ts, {MINUTES}, {HOUR})) FROM t GROUP BY k",
        f"HOP_ROWTIME {PARTS}",
        MATCHING,
    ),
    "a table at a rowtime": (
        "SELECT t.k, d.rate FROM t\nJOIN d FOR SYSTEM_TIME AS OF ^t.ts ON t.k = d.k",
        "'ts' is not a processing time: a lookup reads the table at the time when a row is processed",
        "declare a column proc_time AS PROCTIME() in the table, and write FOR SYSTEM_TIME AS OF o.proc_time",
    ),
    "OVER a range": (
        f"SELECT k, ^SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN CURRENT ROW AND {HOUR} FOLLOWING) FROM t",
        f"SUM() {OVER}the frame must end with the current row",
        "write AND CURRENT ROW, or run it in batch mode",
    ),
    "OVER rows": (
        "SELECT k,\n  ^COUNT(*) OVER (PARTITION BY k ORDER BY pt DESC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
        f"COUNT() {OVER}the order must be ascending",
        "leave out DESC, or run it in batch mode",
    ),
    "LEAD": (
        "SELECT k, ^LEAD(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
        f"LEAD() {OVER}LEAD needs all rows",
        "use LAG or GROUP BY, or run it in batch mode",
    ),
    "a named window": (
        "SELECT k, ^SUM(v) OVER w FROM t\nWINDOW w AS (PARTITION BY k ORDER BY ts, k)",
        f"SUM() {OVER}the rows must be ordered by one column",
        "write ORDER BY and one column, or run it in batch mode",
    ),
    "MATCH_RECOGNIZE": (
        "SELECT k, v FROM t\n^MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS v PATTERN (A B) "
        "DEFINE B AS B.v > A.v) AS m",
        "MATCH_RECOGNIZE is not supported",
        "join the table with itself, or aggregate the rows of a key",
    ),
    "$rowtime": (
        "SELECT k, v FROM t WHERE ^$rowtime > TIMESTAMP '2024-01-01 00:00:00'",
        "'$rowtime' is not supported: a table has only the columns that it declares",
        "declare a column with the time of a row, such as ts TIMESTAMP(3)",
    ),
    "$rowtime in quotes": (
        "SELECT k, v FROM t\n WHERE t.id > 0 AND ^t.`$rowtime` > TIMESTAMP '2024-01-01 00:00:00'",
        "'$rowtime' is not supported: a table has only the columns that it declares",
        "declare a column with the time of a row, such as ts TIMESTAMP(3)",
    ),
    "CURRENT_WATERMARK": (
        "SELECT k, v FROM t WHERE ts <= ^CURRENT_WATERMARK(ts)",
        f"CURRENT_WATERMARK {NO_WATERMARK}",
        "to keep late rows, name a table in the option late-rows.target of the table with the WATERMARK",
    ),
    "SOURCE_WATERMARK": (
        "SELECT k, v FROM t WHERE ^SOURCE_WATERMARK() IS NULL",
        "SOURCE_WATERMARK is not supported: no source has a watermark of its own",
        "declare WATERMARK FOR ts AS ts in the table",
    ),
    "an order of time": (
        "SELECT k, v FROM t\n^ORDER BY ts DESC",
        "ORDER BY is not supported in streaming by descending time, by Flink neither: the last row may always "
        "come later",
        "write ORDER BY ts, or add LIMIT",
    ),
    "the last rows that change as they come": (
        "SELECT k, n FROM (SELECT k, ^ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS n "
        "FROM (SELECT k, COUNT(*) AS c, PROCTIME() AS pt FROM t GROUP BY k)) WHERE n <= 2",
        "the latest row by processing time needs insert-only rows, but these rows can change",
        "order by a column with the time of a row",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_event_time_is_refused_by_name_and_place(name: str) -> None:
    marked, message, hint = REFUSED[name]
    before, _, after = (TABLES + marked).partition("^")
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{before}{after};")
    (found,) = caught.value.diagnostics
    assert (found.message, found.hint) == (message, hint)
    assert (found.line, found.column) == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


def test_a_join_that_bounds_rowtimes_is_an_interval_join() -> None:
    query = "SELECT x.k, y.v FROM t AS x JOIN t AS y\nON x.k = y.k AND x.ts BETWEEN y.ts - INTERVAL '1' HOUR AND y.ts"
    warnings: list[Diagnostic] = []
    plan = compile_sql(f"{TABLES}{query};", on_warning=warnings.append)
    assert [(o.lower, o.upper) for o in plan.operators if isinstance(o, IntervalJoin)] == [("-1 h", "0 ms")]
    assert warnings == []


def test_names_of_windows_may_be_those_of_inputs() -> None:
    plan = compile_sql(f"{TABLES}SELECT t.k, hop.x FROM t JOIN (VALUES (1, 2)) AS hop(x, y) ON t.k = hop.y;")
    assert plan.operators
