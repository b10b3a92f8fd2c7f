"""Joins that bound the times of their sides: what becomes an interval join, as in Flink, and what is warned of.

Flink 2.3 makes the same of the bounds of processing times, as its EXPLAIN says.
"""

from __future__ import annotations

import pytest

from hintplan.planner.compile import Compilation, compile_script
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import IntervalJoin

FILES = "WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json')"
TABLES = f"""
CREATE TABLE a (k BIGINT, pt AS PROCTIME(), ts TIMESTAMP(3), plain TIMESTAMP(3), WATERMARK FOR ts AS ts) {FILES};
CREATE TABLE b (k BIGINT, pt AS PROCTIME(), ts TIMESTAMP(3), plain TIMESTAMP(3), WATERMARK FOR ts AS ts) {FILES};
CREATE TABLE z (k BIGINT, ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR at AS at) {FILES};
CREATE TABLE micros (k BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts) {FILES};
CREATE TABLE changing (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json', 'source.changelog' = 'true');
CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');
"""
TUMBLE = (
    "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR({}), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"
)
HOUR = "a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts"


def compiled(query: str, config: str = "", mode: str = "streaming", *, strict: bool = True) -> Compilation:
    text = f"SET 'execution.runtime-mode' = '{mode}';{TABLES}{config}INSERT INTO r\n{query};"
    return compile_script(text, file="job", strict_hints=strict)


def joins(query: str, **more: str) -> list[IntervalJoin]:
    """The interval joins of a query that compiles without a warning."""
    result = compiled(query, **more)
    assert result.findings == ()
    assert plan_problems(result.plan) == ()
    return [operator for operator in result.plan.operators if isinstance(operator, IntervalJoin)]


BOUNDS = {
    HOUR: ("-1 h", "0 ms"),
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL '2' HOUR": ("-2 h", "0 ms"),
    "a.ts >= b.ts - INTERVAL '90' MINUTE AND a.ts < b.ts": ("-90 min", "-1 ms"),
    "a.ts > b.ts - INTERVAL '3' SECOND AND a.ts < b.ts": ("-2999 ms", "-1 ms"),
    "b.ts - INTERVAL '1' HOUR <= a.ts AND b.ts + INTERVAL '2' DAY > a.ts": ("-1 h", "172799999 ms"),
    "a.ts + INTERVAL '1.5' SECOND > b.ts AND a.ts <= b.ts": ("-1499 ms", "0 ms"),
    "a.ts + INTERVAL '1' SECOND >= b.ts - INTERVAL '1' SECOND AND a.ts - INTERVAL '1' SECOND <= b.ts": ("-2 s", "1 s"),
    "a.ts BETWEEN b.ts + INTERVAL '3' SECOND AND b.ts": ("3 s", "0 ms"),
    "a.ts BETWEEN CAST(b.ts AS TIMESTAMP(6)) - INTERVAL '3' SECOND AND b.ts": ("-3 s", "0 ms"),
    "a.ts = b.ts": ("0 ms", "0 ms"),
    "a.ts = b.ts - INTERVAL '5' SECOND": ("-5 s", "-5 s"),
}
"""Conditions on the times of ``a`` and ``b``, and the least and the greatest difference of ``a.ts`` minus ``b.ts``."""
FORMS = (
    "SELECT a.k FROM a JOIN b ON a.k = b.k AND {}",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {}",
    "SELECT a.k FROM a FULL JOIN b ON a.k = b.k AND {}",
    "SELECT a.k FROM a, b WHERE a.k = b.k AND {}",
    "SELECT a.k FROM (SELECT k, ts FROM a WHERE k > 0) a JOIN b ON a.k = b.k WHERE {}",
)


@pytest.mark.parametrize(("bounds", "difference"), BOUNDS.items())
@pytest.mark.parametrize("form", FORMS)
def test_bounds_in_both_directions_make_an_interval_join(form: str, bounds: str, difference: tuple[str, str]) -> None:
    (join,) = joins(form.format(bounds))
    assert (join.lower, join.upper) == difference
    assert (join.left_time, join.right_time) == ("ts", "ts")
    assert [(key.left, key.right) for key in join.keys] == [("k", "k")]
    assert join.condition is None
    assert all(entry.ttl is None for entry in join.state)


OF_PLAIN_TIMES = "a.ts BETWEEN CAST(b.ts AS TIMESTAMP(6)) - INTERVAL '3' SECOND AND b.ts"
OF_CLOCKS = {bounds.replace(".ts", ".pt"): wanted for bounds, wanted in BOUNDS.items() if bounds != OF_PLAIN_TIMES}


@pytest.mark.parametrize(("bounds", "difference"), OF_CLOCKS.items())
@pytest.mark.parametrize("form", [form.replace("k, ts", "k, pt") for form in FORMS])
def test_bounds_of_processing_times_make_an_interval_join_by_the_clock(
    form: str, bounds: str, difference: tuple[str, str]
) -> None:
    (join,) = joins(form.format(bounds))
    assert (join.lower, join.upper) == difference
    assert (join.processing_time, join.times, join.condition) == (True, None, None)
    assert [(key.left, key.right) for key in join.keys] == [("k", "k")]
    plan = compiled(form.format(bounds)).plan
    assert "watermark-assigner" not in [operator.op for operator in plan.operators]
    assert not any("PROCTIME" in (text or "") for operator in plan.operators for _, text in operator.expressions())


CLOCK_HOUR = "a.pt BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt"


def test_a_batch_job_has_the_same_join() -> None:
    (join,) = joins(FORMS[1].format(HOUR), mode="batch")
    assert (join.join_type, join.lower, join.upper) == ("left", "-1 h", "0 ms")


@pytest.mark.parametrize(
    ("bounds", "lower", "kept"),
    [
        ("a.ts BETWEEN b.ts - INTERVAL '2' MONTH AND b.ts", "-62 d", "INTERVAL '2' MONTH"),
        ("a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND a.plain AND a.ts <= b.ts", "-3 s", "plain"),
    ],
)
def test_a_condition_that_bounds_do_not_express_remains(bounds: str, lower: str, kept: str) -> None:
    (join,) = joins(FORMS[0].format(bounds))
    assert join.lower == lower
    plan = compiled(FORMS[0].format(bounds)).plan
    texts = [text for operator in plan.operators for _, text in operator.expressions() if text is not None]
    assert any(kept in text for text in texts)


def test_the_rest_of_the_condition_is_the_condition_of_the_join() -> None:
    (join,) = joins(FORMS[1].format(f"{HOUR} AND a.plain < b.plain"))
    assert join.condition == "l.plain < r.plain"


def test_both_times_are_rowtimes_above_the_join() -> None:
    view = "CREATE VIEW q AS SELECT a.k, a.ts AS ats, b.ts AS bts FROM a LEFT JOIN b ON a.k = b.k AND " + HOUR
    for time in ("ats", "bts"):
        ops = [operator.op for operator in compiled(TUMBLE.format(time), config=f"{view};").plan.operators]
        assert ops.index("interval-join") < ops.index("window-aggregate")


def test_the_times_of_conditions_in_where_are_rowtimes_above_the_join_too() -> None:
    view = f"CREATE VIEW q AS SELECT a.k, a.ts AS t FROM a, b WHERE a.k = b.k AND {HOUR}"
    assert "window-aggregate" in [o.op for o in compiled(TUMBLE.format("t"), config=f"{view};").plan.operators]


def test_interval_joins_of_interval_joins_and_of_windows() -> None:
    (first, second) = joins(
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {HOUR} JOIN b AS c ON a.k = c.k AND a.ts BETWEEN c.ts AND c.ts"
    )
    assert second.inputs[0] == first.id
    of_windows = (
        "SELECT l.k FROM {0} AS l JOIN {0} AS r ON l.k = r.k "
        "AND l.window_time BETWEEN r.window_time - INTERVAL '1' HOUR AND r.window_time"
    ).format(
        "(SELECT k, window_time FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        "GROUP BY k, window_start, window_end, window_time)"
    )
    (join,) = joins(of_windows)
    assert (join.left_time, join.right_time) == ("window_time", "window_time")


def test_a_join_without_an_equality_is_warned_of_and_has_no_keys() -> None:
    result = compiled(f"SELECT a.k FROM a JOIN b ON {HOUR}")
    (warning,) = result.findings
    assert (
        warning.diagnostic.message == "this interval join of a and b has no equality: all its rows are in one partition"
    )
    (join,) = (operator for operator in result.plan.operators if isinstance(operator, IntervalJoin))
    assert join.keys == ()


def test_a_ttl_hint_has_no_effect_and_a_configured_ttl_neither() -> None:
    query = FORMS[0].format(HOUR).replace("SELECT", "SELECT /*+ STATE_TTL('a' = '1 h') */")
    with pytest.raises(SqlError, match="STATE_TTL key 'a' has no effect"):
        compiled(query)
    (warning,) = compiled(query, strict=False).findings
    reason = "its rows are kept until the watermark has passed all times that they can meet"
    assert warning.diagnostic.message == f"STATE_TTL key 'a' has no effect: {reason}"
    (join,) = joins(FORMS[0].format(HOUR), config="SET 'table.exec.state.ttl' = '36 h';")
    assert all(entry.ttl is None for entry in join.state)


REFUSED = {
    "SELECT a.k FROM a JOIN z ON a.k = z.k AND a.ts BETWEEN z.at - INTERVAL '1' HOUR AND z.at": (
        "an interval join goes by rowtimes of one type, but 'ts' is TIMESTAMP(3), and 'at' is TIMESTAMP_LTZ(3)"
    ),
    "SELECT a.k FROM a JOIN micros AS m ON a.k = m.k AND a.ts BETWEEN m.ts - INTERVAL '1' HOUR AND m.ts": (
        "a rowtime has at most 3 digits of a second, but 'ts' is TIMESTAMP(6)"
    ),
    "SELECT a.k FROM a JOIN changing AS c ON a.k = c.k AND a.ts BETWEEN c.ts - INTERVAL '1' HOUR AND c.ts": (
        "an interval join takes rows that are only added, but rows of 'c' can change"
    ),
    "SELECT n.k FROM (SELECT k, PROCTIME() AS pt FROM (SELECT k, COUNT(*) FROM a GROUP BY k)) AS n JOIN b "
    "ON n.k = b.k AND n.pt BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt": (
        "an interval join takes rows that are only added, but rows of 'n' can change"
    ),
}


@pytest.mark.parametrize(("query", "message"), REFUSED.items())
def test_what_flink_refuses_is_refused_with_a_place_and_advice(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query)
    (found,) = caught.value.diagnostics
    assert found.message == message
    assert found.hint
    assert found.line is not None
    assert compiled(query.replace("changing", "b"), mode="batch").plan.operators


_TTL = "write SELECT /*+ STATE_TTL('a' = '1 h', 'b' = '1 h') */, or longer times for rows that come late"
REGULAR = {
    "a.ts > b.ts": (
        "this join compares 'ts' with 'ts', but not with one lower and one upper bound",
        "write both bounds",
    ),
    f"{HOUR} AND a.ts > b.ts": (
        "this join compares 'ts' with 'ts', but not with one lower and one upper bound",
        "write both bounds once",
    ),
    "a.pt > b.pt - INTERVAL '1' HOUR": (
        "this join compares 'pt' with 'pt', but not with one lower and one upper bound",
        "write both bounds",
    ),
}


@pytest.mark.parametrize(("condition", "expected"), REGULAR.items())
def test_other_comparisons_of_times_are_a_regular_join_with_a_warning(
    condition: str, expected: tuple[str, str]
) -> None:
    query = FORMS[0].format(condition)
    (found,) = compiled(query).findings
    assert found.severity == "warning"
    assert found.diagnostic.message == f"{expected[0]}: it is a regular join, and its state never expires"
    assert (found.diagnostic.hint or "").startswith(expected[1])
    assert found.diagnostic.line is not None
    (found,) = compiled(query, config="SET 'table.exec.state.ttl' = '36 h';").findings
    assert found.diagnostic.message.endswith("its state is kept for 36 h of processing time")
    hinted = query.replace("SELECT", "SELECT /*+ STATE_TTL('a' = '1 h', 'b' = '1 h') */")
    assert compiled(hinted).findings == ()
    assert compiled(query, mode="batch").findings == ()


def test_rows_above_an_interval_join_by_the_clock_are_only_added_and_have_its_time() -> None:
    view = f"CREATE VIEW q AS SELECT a.k, a.pt AS t FROM a LEFT JOIN b ON a.k = b.k AND {CLOCK_HOUR}"
    plan = compiled(TUMBLE.format("t"), config=f"{view};").plan
    (window,) = (operator for operator in plan.operators if operator.op == "window-aggregate")
    assert window.goes_by_clock
    view = f"CREATE VIEW q AS SELECT a.k, PROCTIME() AS pt FROM a LEFT JOIN b ON a.k = b.k AND {CLOCK_HOUR}"
    (join, again) = joins(
        "SELECT q.k FROM q FULL JOIN b ON q.k = b.k AND q.pt BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt",
        config=f"{view};",
    )
    assert again.inputs[0] == join.id


def test_rowtimes_do_not_pass_an_interval_join_by_the_clock() -> None:
    view = f"CREATE VIEW q AS SELECT a.k, a.ts AS t FROM a JOIN b ON a.k = b.k AND {CLOCK_HOUR}"
    with pytest.raises(SqlError, match="'t' is none: it has passed a join, whose rows may come at any time"):
        compiled(TUMBLE.format("t"), config=f"{view};")


def test_a_month_of_the_clock_keeps_rows_long_enough_and_remains_a_condition() -> None:
    (join,) = joins(FORMS[1].format("a.pt BETWEEN b.pt - INTERVAL '1' MONTH AND b.pt"))
    assert (join.lower, join.processing_time) == ("-31 d", True)
    assert join.condition == "l.pt BETWEEN r.expr0 AND r.pt"
    plan = compiled(FORMS[1].format("a.pt BETWEEN b.pt - INTERVAL '1' MONTH AND b.pt")).plan
    assert "- INTERVAL '1' MONTH" in str(plan.by_id[join.inputs[1]])


def test_a_ttl_hint_on_a_join_by_the_clock_has_no_effect() -> None:
    query = FORMS[0].format(CLOCK_HOUR).replace("SELECT", "SELECT /*+ STATE_TTL('a' = '1 h') */")
    (warning,) = compiled(query, strict=False).findings
    reason = "its rows are kept until they can meet no other row"
    assert warning.diagnostic.message == f"STATE_TTL key 'a' has no effect: {reason}"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {CLOCK_HOUR}",
        f"SELECT a.k FROM a FULL JOIN b ON a.k = b.k AND {CLOCK_HOUR}",
    ],
)
def test_in_batch_mode_bounds_of_processing_times_are_a_condition(query: str) -> None:
    assert joins(query, mode="batch") == []


REGULAR_BY_THE_CLOCK = (
    "SELECT k FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k AND a.pt BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt)",
    "SELECT a.k FROM a JOIN z ON a.k = z.k AND a.pt BETWEEN z.at - INTERVAL '1' HOUR AND z.at",
    "SELECT m.k FROM (SELECT k, MAX(pt) AS pt FROM a GROUP BY k) AS m JOIN b ON m.k = b.k "
    "AND m.pt BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt",
    "SELECT a.k FROM a JOIN b ON a.k = b.k AND PROCTIME() BETWEEN b.pt - INTERVAL '1' HOUR AND b.pt",
)


@pytest.mark.parametrize("query", REGULAR_BY_THE_CLOCK)
def test_what_flink_joins_regularly_is_a_regular_join(query: str) -> None:
    plan = compiled(query, strict=False).plan
    assert "join" in [operator.op for operator in plan.operators]
    assert not any(isinstance(operator, IntervalJoin) for operator in plan.operators)


def test_a_time_that_has_passed_a_regular_join_is_no_rowtime() -> None:
    query = (
        "SELECT c.k FROM (SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k) AS c JOIN b ON c.k = b.k "
        "AND c.ts BETWEEN b.ts AND b.ts + INTERVAL '1' DAY"
    )
    (found,) = compiled(query).findings
    assert found.diagnostic.message.startswith(
        "this join bounds the time between 'ts' and 'ts', but 'ts' is no rowtime: it has passed a join, whose rows may "
        "come at any time: it is a regular join"
    )
    assert found.diagnostic.hint is not None


@pytest.mark.parametrize(
    "condition",
    [
        "a.plain BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts",
        "a.ts BETWEEN a.plain AND a.plain + INTERVAL '1' HOUR",
        "a.ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2025-01-01 00:00:00'",
    ],
)
def test_other_conditions_on_time_are_a_regular_join(condition: str) -> None:
    assert joins(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {condition}") == []


def test_exists_with_bounds_is_a_regular_join_as_in_flink() -> None:
    assert joins(f"SELECT k FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k AND {HOUR})") == []
