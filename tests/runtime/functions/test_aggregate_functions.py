"""Aggregate functions of the user's in the engine: phases, cuts into batches, restarts, and what classes do wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan import compile_sql
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.compare.carryover import carried, continued
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.query_record import query_records
from hintplan.plans.errors import RunError, SqlError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.builders.bound import build_operator, users_aggregates
from hintplan.runtime.engine.process import joined
from hintplan.runtime.functions.worker import load_function
from hintplan.runtime.kernels.partial import ROWS, WEIGHT
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import delta, events_of, fold
from tests.runtime.functions import aggregates
from tests.runtime.pipeline import Pipeline

TABLES = """CREATE TABLE t (k STRING, v BIGINT, w BIGINT, f BOOLEAN, s STRING) WITH ('connector' = 'datagen');
CREATE TABLE c (k STRING, v BIGINT, w BIGINT, f BOOLEAN, s STRING)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x', 'source.changelog' = 'true');
"""
FUNCTIONS: dict[str, Any] = {
    "weighted": aggregates.WeightedAverage,
    "bag": aggregates.Bag,
    "calls": aggregates.Calls,
    "n": aggregates.Rows,
    "mode": aggregates.Mode,
    "broken": aggregates.Broken,
}


def plan_of(select: str, columns: str, config: dict[str, str] | None = None, **functions: Any) -> Plan:
    sink = f"CREATE TABLE r ({columns}) WITH ('connector' = 'print');"
    script = f"{TABLES}{sink}INSERT INTO r {select};"
    return compile_sql(script, config, functions={**FUNCTIONS, **functions})


def kernel(plan: Plan) -> AggregateOperator:
    operator = plan.operator("aggregate_t")
    columns = (output_columns(plan)[operator.inputs[0]],)
    users = users_aggregates(operator, plan.functions, RequestRun(token="t", allowed_modules=("tests",)))  # type: ignore[arg-type]
    return build_operator(operator, columns, (False,), users=users)  # type: ignore[arg-type, return-value]


ALL_OF_T = (
    "SELECT k, weighted(v, w), bag(v) FILTER (WHERE f), n(), mode(v), COUNT(*), MAX(w) FROM t GROUP BY k",
    "k STRING, a DOUBLE, b STRING, n BIGINT, m BIGINT, c BIGINT, x BIGINT",
)
SMALL = st.one_of(st.none(), st.integers(-3, 3))
ROWS_OF_T = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), SMALL, SMALL, st.sampled_from([True, False, None]), st.none()),
    max_size=20,
)


def modelled(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """What ALL_OF_T leaves of ``rows``."""
    found: Counter[tuple[Any, ...]] = Counter()
    for key in {row[0] for row in rows}:
        group = [row for row in rows if row[0] == key]
        pairs = [(v, w) for _, v, w, *_ in group if v is not None and w is not None]
        weight = sum(w for _, w in pairs)
        average = sum(v * w for v, w in pairs) / weight if weight else None
        bag = " ".join(sorted(str(row[1]) for row in group if row[3]))
        often = Counter(row[1] for row in group if row[1] is not None)
        mode = min(often, key=lambda value: (-often[value], value), default=None)
        most = max((row[2] for row in group if row[2] is not None), default=None)
        found[(key, average, bag, len(group), mode, len(group), most)] += 1
    return found


@pytest.mark.part(of=3)
@settings(deadline=None)
@given(ROWS_OF_T, st.integers(1, 4))
def test_any_cut_into_batches_leaves_what_a_model_does(rows: list[tuple[Any, ...]], size: int) -> None:
    pipeline = Pipeline(plan_of(*ALL_OF_T))
    for start in range(0, len(rows), size):
        pipeline.batch({"t": rows[start : start + size]})
    assert pipeline.result == modelled(rows)


@pytest.mark.part(of=3)
@settings(deadline=None)
@given(ROWS_OF_T, st.integers(0, 20), st.booleans())
def test_rows_summed_up_beforehand_leave_the_same(rows: list[tuple[Any, ...]], cut: int, raw: bool) -> None:
    """Two tasks send each batch: one sums its rows up, the other may find that not worth it."""
    plan = plan_of(*ALL_OF_T, {"table.optimizer.agg-phase-strategy": "TWO_PHASE"})
    operator = kernel(plan)
    presum, store, manifest = operator.inputs[0].presum, MemoryStore(), None
    assert presum is not None
    found: Counter[Any] = Counter()
    for batch in (rows[:cut], rows[cut:]):
        tasks = [delta(operator.inputs[0], [("+I", row[:4]) for row in part]) for part in (batch[::2], batch[1::2])]
        tables = [each for each in tasks if each is not None and each.num_rows]
        summed = [presum.sum_up(each) for each in tables[:1]] + [None if raw else presum.sum_up(e) for e in tables[1:]]
        sent = [table if one is None else one for table, one in zip(tables, summed, strict=True)]
        rows_in = joined(sent, presum) if sent else None
        assert rows_in is None or {WEIGHT, ROWS} <= set(rows_in.column_names)
        result = operator.process((rows_in,), manifest, store, 0)
        manifest = result.manifest
        found = fold(events_of(result.output), found)
    assert +found == modelled(rows)


@pytest.mark.part(of=3)
@settings(deadline=None)
@given(ROWS_OF_T, st.data(), st.integers(1, 5))
def test_rows_that_go_leave_what_a_model_does(rows: list[tuple[Any, ...]], data: st.DataObject, size: int) -> None:
    """Each row may go again, at any time after it came."""
    events = [("+I", *row) for row in rows]
    there = list(rows)
    for row in rows:
        if data.draw(st.booleans()):
            there.remove(row)
            came = max(place for place, event in enumerate(events) if event == ("+I", *row))
            events.insert(data.draw(st.integers(came + 1, len(events))), ("-D", *row))
    plan = plan_of(
        "SELECT k, weighted(v, w), bag(v) FILTER (WHERE f), bag(DISTINCT v), COUNT(*) FROM c GROUP BY k",
        "k STRING, a DOUBLE, b STRING, d STRING, c BIGINT",
    )
    pipeline = Pipeline(plan)
    for start in range(0, len(events), size):
        pipeline.batch({"c": events[start : start + size]})
        pipeline = pipeline.resumed()
    different = {key: " ".join(sorted({str(row[1]) for row in there if row[0] == key})) for key, *_ in there}
    wanted = Counter((key, a, b, different[key], c) for key, a, b, _, _, c, _ in modelled(there))
    assert pipeline.result == wanted


@pytest.mark.parametrize(
    ("select", "because"),
    [
        ("SELECT k, weighted(v, w), SUM(v) FROM t GROUP BY k", None),
        ("SELECT k, calls(v, w) FROM t GROUP BY k", "calls has no merge"),
        ("SELECT k, bag(DISTINCT v) FROM t GROUP BY k", "bag DISTINCT keeps every value"),
    ],
)
def test_it_is_said_why_there_is_one_phase(select: str, because: str | None) -> None:
    plan = plan_of(select, "k STRING, x STRING" if because else "k STRING, x DOUBLE, s BIGINT")
    operator: Any = plan.operator("aggregate_t")
    assert operator.one_phase_because(insert_only=True, functions=plan.functions) == because
    assert (kernel(plan).inputs[0].presum is None) == (because is not None)
    changing = operator.one_phase_because(insert_only=False, functions=plan.functions)
    assert changing == because or "takes rows of a changing input back" in (changing or "")


def test_a_group_that_lost_all_rows_begins_anew() -> None:
    pipeline = Pipeline(plan_of("SELECT k, calls(v, w) FROM c GROUP BY k", "k STRING, x STRING"))
    pipeline.batch({"c": [("+I", "a", 1, 1, True, "")]})
    gone = [("-D", "a", 1, 1, True, ""), ("+I", "a", 2, 2, True, ""), ("+I", "a", 3, 3, True, "")]
    pipeline.batch({"c": gone})
    assert pipeline.result == Counter([("a", "+2,2 +3,3")])
    pipeline.batch({"c": [("-U", "a", 3, 3, True, ""), ("+U", "a", 4, 4, True, ""), ("-D", "b", 1, 1, True, "")]})
    assert pipeline.result == Counter([("a", "+2,2 +3,3 -3,3 +4,4")])


def test_state_expires_with_its_accumulator() -> None:
    plan = plan_of("SELECT k, calls(v, w) FROM t GROUP BY k", "k STRING, x STRING", {"table.exec.state.ttl": "10 ms"})
    pipeline = Pipeline(plan)
    for now, value in ((0, 1), (5, 2), (20, 3)):
        pipeline.batch({"t": [("a", value, value, True, "")]}, now)
        pipeline = pipeline.resumed()
    assert pipeline.result == Counter([("a", "+1,1 +2,2"), ("a", "+3,3")])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("fails", "operator aggregate_t: broken('fails') failed: LookupError: of its own"),
        ("leaves a text", "accumulating with broken returned ['x'], which is no ROW<rows BIGINT>"),
        ("returns", "accumulate of broken returned [1], but an accumulator of type ROW is changed in place"),
    ],
)
def test_what_a_class_does_wrong_fails_the_query(what: str, message: str) -> None:
    pipeline = Pipeline(plan_of("SELECT k, broken(s) FROM t GROUP BY k", "k STRING, x BIGINT"))
    pipeline.batch({"t": [("a", 1, 1, True, "fine")]})
    with pytest.raises(RunError) as caught:
        pipeline.batch({"t": [("a", 1, 1, True, what)]})
    assert message in str(caught.value)


def test_rows_that_change_need_retract() -> None:
    with pytest.raises(SqlError) as caught:
        plan_of("SELECT k, mode(v) FROM c GROUP BY k", "k STRING, x BIGINT")
    (found,) = caught.value.diagnostics
    assert found.message == (
        "rows that 'mode' aggregates can change, and tests.runtime.functions.aggregates.Mode cannot take one back"
    )
    written = "CREATE TABLE r (k STRING, x BIGINT) WITH ('connector' = 'print');INSERT INTO r SELECT k, "
    assert (found.line, found.column) == (4, len(written) + 1)
    assert found.hint == "define retract(self, accumulator, ...) in the class, or aggregate rows that are only added"
    nested = "SELECT n, mode(x) FROM (SELECT k, COUNT(*) AS n, MAX(v) AS x FROM t GROUP BY k) GROUP BY n"
    with pytest.raises(SqlError, match="cannot take one back"):
        plan_of(nested, "n BIGINT, x BIGINT")
    with pytest.raises(SqlError, match="cannot take one back"):
        plan_of("SELECT k, (SELECT mode(v) FROM c WHERE c.k = t.k) FROM t", "k STRING, x BIGINT")


def test_a_plan_says_so_too() -> None:
    plan = plan_of("SELECT k, weighted(v, w) FROM c GROUP BY k", "k STRING, x DOUBLE")
    assert plan_problems(plan) == ()
    forgetful = replace(plan.functions["weighted"], methods=("merge",))
    (found,) = plan_problems(replace(plan, functions={"weighted": forgetful}))
    assert found.path == "operators.aggregate_c"
    assert found.message == "'aggregate_c' takes +I, but gets -U, +U, -D from the scan 'scan_c'"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accumulator": "ROW<total BIGINT>"}, "declares accumulator ROW<total BIGINT, weight BIGINT>, but the plan"),
        (
            {"class_name": "tests.runtime.functions.aggregates.Calls"},
            "declares result STRING, but the plan was compiled with",
        ),
        ({"arguments": ("BIGINT", "INT")}, "declares arguments BIGINT, BIGINT, but the plan was compiled with BIGINT"),
        ({"class_name": "os.path"}, "module os is not allowed"),
    ],
)
def test_a_class_that_is_not_what_was_compiled_is_refused(change: dict[str, Any], message: str) -> None:
    plan = plan_of("SELECT k, weighted(v, w) FROM t GROUP BY k", "k STRING, x DOUBLE")
    function = replace(plan.functions["weighted"], **change)
    aggregate: Any = plan.operator("aggregate_t")
    run = RequestRun(token="t", allowed_modules=("tests",))
    called = users_aggregates(aggregate, {"weighted": function}, run)["weighted"].called
    with pytest.raises(RunError) as caught:
        load_function(called)
    assert message in str(caught.value).replace("`", "")


def test_a_method_that_went_is_missed() -> None:
    plan = plan_of("SELECT k, calls(v, w) FROM t GROUP BY k", "k STRING, x STRING")
    function = replace(plan.functions["calls"], methods=("merge", "retract"))
    aggregate: Any = plan.operator("aggregate_t")
    run = RequestRun(token="t", allowed_modules=("tests",))
    with pytest.raises(RunError, match="has no merge, but the plan was compiled with one that has"):
        load_function(users_aggregates(aggregate, {"calls": function}, run)["calls"].called)


def outcomes(before: Plan, after: Plan) -> list[str]:
    recorded = query_records(before, queries(before))
    (verdict,) = carried(recorded, query_records(after, continued(after, recorded, before)))
    return [state.outcome for state in verdict.states]


def test_another_class_or_accumulator_is_another_state() -> None:
    """As check, run and diff decide it; the methods that a class has beside, and its TTL, change no state."""
    plan = plan_of("SELECT k, weighted(v, w) FROM t GROUP BY k", "k STRING, x DOUBLE")

    def changed(**facts: Any) -> Plan:
        return replace(plan, functions={"weighted": replace(plan.functions["weighted"], **facts)})

    assert outcomes(plan, plan) == outcomes(plan, changed(methods=("retract",))) == ["carries over"]
    assert outcomes(plan, changed(class_name="shop.Other")) != ["carries over"]
    assert outcomes(plan, changed(accumulator="ROW<total DOUBLE, weight BIGINT>")) != ["carries over"]
    (change,) = compare_plans(plan, changed(class_name="shop.Other"))
    assert (change.path, change.effect.level) == ("functions.weighted.class", "drop")


def test_a_result_may_be_an_array() -> None:
    plan = plan_of("SELECT k, vs(v) FROM t GROUP BY k", "k STRING, x ARRAY<STRING>", vs=aggregates.Values)
    operator, store, manifest, found = kernel(plan), MemoryStore(), None, []
    for rows in ([("a", 1, 1), ("b", None, 1)], [("a", 2, 1)]):
        table = delta(operator.inputs[0], [("+I", row[:2]) for row in rows])
        result = operator.process((table,), manifest, store, 0)
        manifest, found = result.manifest, found + events_of(result.output)
    assert sorted(found[:2]) == [("+I", ("a", ("1",))), ("+I", ("b", ("None",)))]
    assert found[2:] == [("-U", ("a", ("1",))), ("+U", ("a", ("1", "2")))]


def test_state_of_another_accumulator_is_not_read() -> None:
    plan = plan_of("SELECT k, n() FROM t GROUP BY k", "k STRING, x BIGINT")
    pipeline = Pipeline(plan)
    pipeline.batch({"t": [("a", 1, 1, True, "")]})
    other = replace(plan.functions["n"], accumulator="INT")
    with pytest.raises(RunError, match="groups"):
        pipeline.resumed(replace(plan, functions={"n": other})).batch({"t": [("a", 1, 1, True, "")]})


def test_the_state_is_the_declared_type() -> None:
    layout = kernel(plan_of(*ALL_OF_T)).accumulation.groups_layout.schema
    kinds = {field.name: field.type for field in layout if field.name.startswith("__user")}
    assert kinds == {
        "__user weighted(v, w)": pa.struct([("total", pa.int64()), ("weight", pa.int64())]),
        "__user bag(v) where f": pa.struct([("values", pa.list_(pa.string()))]),
        "__user n()": pa.int64(),
        "__user mode(v)": pa.map_(pa.int64(), pa.int64()),
    }
