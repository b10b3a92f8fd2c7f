"""Temporal joins put out what their model does, batch by batch, over random rows of which some are late.

The assigners of both tables compute the watermarks. test_histories.py has the same for windows.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.edit.edit import set_value
from hintplan.plans.operators.temporal_join import Versions
from tests.operator_kinds import compiled
from tests.runtime.event_time.hand_built import plan_of, temporal_join
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.models_of_rows import TemporalJoin
from tests.runtime.event_time.test_histories import Case, batches_of, given, history, taken
from tests.runtime.event_time.test_invariants import PARTITIONS, Twice, in_order, run
from tests.runtime.event_time.times import NEVER
from tests.runtime.inspect.test_snapshots import one
from tests.runtime.partitioned import Partitioned


def case(kind: JoinType, versions: Versions = "all", *, changes: bool = False) -> Case:
    plan = plan_of(temporal_join(kind, versions, changelog=changes), tables=("a", "b"), delay="3 s", changelog=changes)
    model = partial(TemporalJoin, is_outer=kind == "left", ascending=versions == "ascending", key=lambda row: row.key)
    return Case(plan, model, (0, 1, 2, 3, 4), changes=changes)


CASES = {
    "inner": case("inner"),
    "left": case("left"),
    "left, of a view": case("left", "ascending"),
    "left, of changes": case("left", changes=True),
}


def rows_of(dice: random.Random, case: Case) -> list[Row]:
    """Random rows. A row that the watermark may have passed is not deleted: its version may be gone."""
    rows: list[Row] = []
    for row in history(dice, case):
        highest = max((each.time for each in rows), default=NEVER)
        if row.sign > 0 or row.time > highest - 3_000:
            rows.append(row)
    return rows


@pytest.mark.part(of=50)
@pytest.mark.parametrize("seed", range(250))
@pytest.mark.parametrize("name", CASES)
def test_a_join_puts_out_what_its_model_does(name: str, seed: int) -> None:
    case, dice = CASES[name], random.Random(f"{name} {seed}")
    model, pipeline, before = case.model(), Partitioned(case.plan, 1), NEVER
    for rows in batches_of(dice, rows_of(dice, case)):
        pipeline = pipeline.rescaled(dice.choice((1, 1, 2, 5)))
        pipeline.batch(given(case, rows))
        after = pipeline.watermarks["join"]
        expected = model.batch(sorted(rows, key=lambda row: row.side), before, after)
        assert taken(case, pipeline) == Counter(expected)
        before = after
    pipeline.drain()
    assert taken(case, pipeline) == Counter(model.batch([], before, pipeline.watermarks["join"]))
    assert pipeline.late_rows["join"] == pipeline.waiting_rows["join"] == 0


@pytest.mark.parametrize("name", CASES)
def test_without_rows_behind_the_watermark_all_cuts_leave_the_same_rows(name: str) -> None:
    case, dice = CASES[name], random.Random(f"cuts {name}")
    rows = in_order(dice, case)
    finest = run(case, [[row] for row in rows]).end()
    assert finest.rows
    for partitions in PARTITIONS:
        assert run(case, batches_of(dice, rows), (partitions,)).end().rows == finest.rows


@pytest.mark.parametrize("name", CASES)
def test_partitions_and_batches_that_run_twice_change_nothing(name: str) -> None:
    case, dice = CASES[name], random.Random(f"partitions {name}")
    batches = batches_of(dice, rows_of(dice, case)[:80])
    one = run(case, batches).end()
    for partitions in ((5,), (1, 5, 2, 3)):
        assert run(case, batches, partitions).end().outputs == one.outputs
    assert run(case, batches, (2,), Twice).end().outputs == one.outputs


@pytest.mark.parametrize(("ttl", "version"), [(None, 1), ("12 h", 1), ("1 h", None)])
def test_an_edited_ttl_counts_from_the_next_batch_of_a_checkpoint(
    ttl: str | None, version: int | None, tmp_path: Path
) -> None:
    plan, hour = compiled(tmp_path, "temporal-join"), 3_600_000
    (join,) = (operator.id for operator in plan.operators if operator.op == "temporal-join")
    one(plan, tmp_path / "checkpoint").batch({"t": [(1, 1, 5, datetime(2026, 1, 1, 0, 0, 1))]}, 0)
    edited = plan if ttl is None else set_value(plan, f"{join}.rightState.ttl", ttl)[0]
    assert state_lineages(edited) == state_lineages(plan)
    query = one(edited, tmp_path / "checkpoint")
    query.batch({"t": [(7, 1, 4, datetime(2026, 1, 1, 0, 0, 9))]}, 2 * hour)
    assert query.events == [("+I", (7, version))]
