"""The models put out what Flink was recorded to put out, after the same row, and the same rows for any cut."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.runtime.event_time.models_of_programs import MODELS, run
from tests.runtime.event_time.recorded import RECORDED, SIGNS, Steps, flink_late, flink_output, random_cuts
from tests.runtime.event_time.times import text
from tests.runtime.event_time.verdicts import COUNTED_OTHERWISE, FLINKS_DEFECTS

DEFECTS = [name for name in FLINKS_DEFECTS if name in MODELS]
COUNTED = [name for name in COUNTED_OTHERWISE if name in MODELS]


def shown(value: Any, kind: str) -> str | None:
    """A value as Flink writes it in a column of a type."""
    return None if value is None else text(value) if kind.startswith("TIMESTAMP") else str(value)


def output(name: str) -> Steps:
    """The rows that the model of a program puts out, by step, as Flink's recording writes them."""
    types = [column.split(" ", 1)[1] for column in RECORDED[name]["columns"]]
    result: Steps = defaultdict(Counter)
    for step, rows in run(name).results:
        for sign, row in rows:
            values = tuple(shown(value, kind) for value, kind in zip(row, types, strict=False))
            result[step]["+I" if sign > 0 else "-D", values] += 1
    return result


def by_sign(steps: Steps) -> dict[int, Counter]:
    """The rows of each step with a sign instead of a kind."""
    result: dict[int, Counter] = defaultdict(Counter)
    for step, rows in steps.items():
        for (kind, row), count in rows.items():
            result[step][SIGNS[kind], row] += count
    return {step: rows for step, rows in result.items() if rows}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in DEFECTS])
def test_a_model_puts_out_what_flink_did_after_the_same_row(name: str) -> None:
    assert by_sign(output(name)) == by_sign(flink_output(name))


@pytest.mark.parametrize("name", DEFECTS)
def test_a_model_differs_where_flink_has_a_defect(name: str) -> None:
    assert by_sign(output(name)) != by_sign(flink_output(name))


def test_windows_before_the_epoch_close_at_once() -> None:
    name = "tumble, before the epoch"
    ours, flinks = output(name), flink_output(name)
    assert sum(ours.values(), Counter()) == sum(flinks.values(), Counter())
    assert sorted(flinks) == [4]
    assert sorted(ours) == [1, 2, 4]


def test_an_hour_of_kolkata_that_flink_loses_is_put_out() -> None:
    ours = sum(output("LTZ, hours in Kolkata, watermark between").values(), Counter())
    lost = ours - sum(flink_output("LTZ, hours in Kolkata, watermark between").values(), Counter())
    assert [row[:3] for _, row in lost] == [("a", "2024-03-31T04:00", "2024-03-31T05:00")]


@pytest.mark.parametrize("name", [name for name in MODELS if name not in (*DEFECTS, *COUNTED)])
def test_a_model_counts_the_late_rows_that_flink_counted(name: str) -> None:
    assert getattr(run(name).model, "late", 0) == flink_late(name)


@pytest.mark.parametrize("name", COUNTED)
def test_late_rows_are_counted_as_rows(name: str) -> None:
    assert run(name).model.late == COUNTED_OTHERWISE[name].ours > flink_late(name)


@pytest.mark.parametrize("name", MODELS)
def test_all_cuts_leave_the_same_rows_unless_rows_are_late(name: str) -> None:
    finest, cuts = run(name), random_cuts(name, seed=5, count=20)
    for other in (run(name, cut) for cut in cuts):
        if finest.behind == 0:
            assert left_by(other) == left_by(finest)
        assert other.behind <= finest.behind


def left_by(outcome: Any) -> Counter:
    """The multiset that the results of a run leave."""
    result: Counter = Counter()
    for _, rows in outcome.results:
        for sign, row in rows:
            result[row] += sign
    return result
