"""Compiled programs put out what Flink put out after the same row, and the same in the end for any cut and partitions.

Every recorded program is in one of the lists of tests/runtime/event_time/verdicts.py, or its output equals Flink's.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hintplan.plans.errors import RunError, SqlError
from hintplan.plans.operators import Operator, Stateful
from tests.runtime.event_time import models_of_programs
from tests.runtime.event_time.compiled import (
    COMPUTED,
    compile_with_warnings,
    inputs_of,
    left_by,
    plan_of,
    run,
    run_rescaled,
)
from tests.runtime.event_time.models_of_programs import MODELS
from tests.runtime.event_time.recorded import RECORDED, Steps, flink_late, flink_output, random_cuts, rows_behind
from tests.runtime.event_time.test_models import by_sign, shown
from tests.runtime.event_time.verdicts import (
    COMPILED,
    COUNTED_OTHERWISE,
    FAILS,
    FLINKS_DEFECTS,
    NETTED,
    NOT_BUILT,
    OF_PROCESSING_TIME,
    OPEN_AT_THE_END,
    OURS,
    REFUSED,
    REFUSED_BY_OURS,
    SAME_IN_THE_END,
    TAKEN,
    WARNED,
    WITHOUT_TIME,
)
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline

LISTS = (
    *(COMPILED, FAILS, FLINKS_DEFECTS, OURS, NOT_BUILT),
    *(REFUSED, REFUSED_BY_OURS, SAME_IN_THE_END, TAKEN, WARNED, WITHOUT_TIME),
)
LISTED = {name for names in LISTS for name in names}
EQUAL = [name for name in RECORDED if name not in LISTED]
"""Programs whose output equals Flink's, step by step."""
ANY_CUT = [name for name in EQUAL if name not in OF_PROCESSING_TIME]
WAYS = ((1,), (2,), (5,), (1, 5, 2))
"""Numbers of partitions, from batch to batch."""


def test_every_program_has_one_verdict() -> None:
    assert {name: count for name, count in Counter(n for names in LISTS for n in names).items() if count > 1} == {}
    assert RECORDED.keys() >= LISTED
    assert len(EQUAL) > 50


def test_flink_refuses_what_is_listed_as_refused_and_nothing_else() -> None:
    refused = {name for name, answer in RECORDED.items() if "error" in answer}
    assert refused == {*REFUSED, *FAILS, *TAKEN, *WARNED}


@pytest.mark.parametrize("name", EQUAL)
def test_a_program_puts_out_what_flink_did_after_the_same_row(name: str) -> None:
    pipeline = Pipeline(plan_of(name), computed=COMPUTED)
    steps, expected = run(name, pipeline), flink_output(name)
    if name in OPEN_AT_THE_END:
        assert steps.pop(len(RECORDED[name]["steps"]))
    assert (netted(steps) == netted(expected)) if name in NETTED else (steps == expected)
    late = COUNTED_OTHERWISE[name].ours if name in COUNTED_OTHERWISE else flink_late(name)
    assert sum(pipeline.late_rows.values()) == late


def netted(steps: Steps) -> dict[int, Counter]:
    """The change that the output of each step makes."""
    return {step: left_by({step: rows}) for step, rows in steps.items()}


@pytest.mark.parametrize("name", [name for name in ANY_CUT if name in MODELS])
def test_a_program_puts_out_what_its_model_does_in_any_cut(name: str) -> None:
    for number, cut in enumerate(random_cuts(name, seed=11, count=4)):
        steps, pipeline = run_rescaled(name, cut, WAYS[number], tasks=number)
        expected = models_of_programs.run(name, cut)
        assert by_sign(steps) == by_sign(output_of_model(name, expected.results)), cut
        assert sum(pipeline.late_rows.values()) == expected.model.late, cut


@pytest.mark.parametrize("name", [name for name in ANY_CUT if name not in MODELS and rows_behind(name) == 0])
def test_any_cut_leaves_the_same_rows_if_none_is_behind_the_watermark(name: str) -> None:
    for number, cut in enumerate(random_cuts(name, seed=7, count=4)):
        steps, pipeline = run_rescaled(name, cut, WAYS[number], tasks=number)
        assert left_by(steps) == left_by(flink_output(name)), cut
        assert sum(pipeline.late_rows.values()) == 0


@pytest.mark.parametrize("name", [name for name in ANY_CUT if name not in MODELS and rows_behind(name) != 0])
def test_partitions_change_nothing_and_a_coarser_cut_drops_no_more(name: str) -> None:
    _, finest = run_rescaled(name, None, (1,))
    for number, cut in enumerate(random_cuts(name, seed=7, count=4)):
        one, whole = run_rescaled(name, cut, (1,))
        steps, pipeline = run_rescaled(name, cut, WAYS[number], tasks=number)
        assert steps == one, cut
        assert pipeline.late_rows == whole.late_rows
        assert whole.late_rows <= finest.late_rows


def output_of_model(name: str, results: list) -> Steps:
    types = [column.split(" ", 1)[1] for column in RECORDED[name]["columns"]]
    steps: Steps = {}
    for step, rows in results:
        shown_rows = [(sign, tuple(map(shown, row, types))) for sign, row in rows]
        steps.setdefault(step, Counter()).update(("+I" if sign > 0 else "-D", row) for sign, row in shown_rows)
    return steps


@pytest.mark.parametrize("name", ANY_CUT)
def test_no_state_is_left_at_the_end(name: str) -> None:
    _, pipeline = run_rescaled(name, None, (2,))
    assert set(pipeline.waiting_rows.values()) <= {0}
    by_time = [operator for operator in pipeline.watermarks if not has_ttl(pipeline.plan.operator(operator))]
    assert {part.state_rows for operator in by_time for part in pipeline.parts[operator]} <= {0}


def has_ttl(operator: Operator) -> bool:
    """True if a state of the operator lasts for a TTL."""
    return isinstance(operator, Stateful) and any(map(operator.has_ttl, operator.state_names))


@pytest.mark.parametrize("name", FLINKS_DEFECTS)
def test_ours_has_the_rows_that_a_defect_of_flink_loses_or_delays(name: str) -> None:
    steps = run(name, Pipeline(plan_of(name), computed=COMPUTED))
    assert steps != flink_output(name)
    lost = left_by(steps) - left_by(flink_output(name))
    assert left_by(flink_output(name)) - left_by(steps) == Counter()
    assert tuple(sorted(lost)) == FLINKS_DEFECTS[name].lost


@pytest.mark.parametrize("name", OURS)
def test_ours_differs_where_it_is_said_to(name: str) -> None:
    steps = run(name, Pipeline(plan_of(name), computed=COMPUTED))
    assert steps != flink_output(name)
    ours, flinks = left_by(steps), left_by(flink_output(name))
    assert tuple(sorted(ours - flinks)) == OURS[name].only_ours
    assert tuple(sorted(flinks - ours)) == OURS[name].only_flinks
    assert tuple(sorted(steps)) == OURS[name].steps


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_BY_OURS, *NOT_BUILT])
def test_a_refusal_has_a_place_and_advice(name: str) -> None:
    said = {**REFUSED, **REFUSED_BY_OURS, **NOT_BUILT}[name]
    with pytest.raises(SqlError) as caught:
        plan_of(name)
    for refusal in caught.value.diagnostics:
        assert refusal.line is not None
        assert refusal.column is not None
        assert refusal.hint
    assert said in caught.value.diagnostics[0].message


@pytest.mark.parametrize("name", WARNED)
def test_a_hint_without_effect_is_a_warning(name: str) -> None:
    (warning,) = compile_with_warnings(name)
    assert WARNED[name] in warning.message
    assert warning.line is not None


@pytest.mark.parametrize("name", TAKEN)
def test_a_cast_to_the_type_of_a_rowtime_changes_nothing(name: str) -> None:
    kinds = [type(operator) for operator in plan_of("tumble").operators]
    assert [type(operator) for operator in plan_of(name).operators] == kinds


@pytest.mark.parametrize("name", FAILS)
def test_a_null_in_the_rowtime_fails_the_run(name: str) -> None:
    assert "RowTime field should not be null" in RECORDED[name]["error"]
    with pytest.raises(RunError, match="ts") as caught:
        run(name, Pipeline(plan_of(name), computed=COMPUTED))
    assert "COALESCE" in str(caught.value)


@pytest.mark.parametrize("name", SAME_IN_THE_END)
def test_a_query_that_does_not_go_by_time_leaves_the_rows_that_flink_left(name: str) -> None:
    for cut in (None, *random_cuts(name, seed=7, count=4)):
        key = len(RECORDED[name].get("sink", {}).get("key", ()))
        steps = run(name, Pipeline(plan_of(name), computed=COMPUTED), cut)
        assert left_by(steps, key) == left_by(flink_output(name), key)


@pytest.mark.parametrize("name", [*SAME_IN_THE_END, *WITHOUT_TIME])
def test_a_query_that_does_not_go_by_time_has_no_operator_that_does(name: str) -> None:
    assert not any(operator.goes_by_time for operator in plan_of(name).operators)


@pytest.mark.parametrize("name", COMPILED)
def test_a_program_that_flink_only_compiled_compiles(name: str) -> None:
    kinds = {operator.op for operator in plan_of(name).operators}
    assert COMPILED[name] <= kinds


def test_partitions_are_used() -> None:
    pipeline = Partitioned(plan_of("tumble"), 5)
    for _, batches in inputs_of("tumble", pipeline.plan):
        for batch in batches:
            pipeline.batch(batch.rows, batch.now)
        kept = [part.state_rows > 0 for parts in pipeline.parts.values() for part in parts]
        if sum(kept) > 1:
            return
    pytest.fail("one partition had all rows")
