"""Session windows against the model: any history, cut into any batches, in any number of partitions."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window
from hintplan.plans.operators import WindowAggregate
from hintplan.runtime.operators.session import SessionOperator
from hintplan.runtime.types import to_arrow
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import cuts, history, in_buckets, in_order, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row, Sessions
from tests.runtime.event_time.times import NEVER, Zone, milliseconds

GAP = 50
CALLS = (
    AggregateCall(name="n", function="COUNT", type="BIGINT"),
    AggregateCall(name="s", function="SUM", argument="v", type="BIGINT"),
)


def operator(
    calls=CALLS, *, keys=("k",), zone: str | None = None, gap: str = f"{GAP} ms", phases="AUTO", v="BIGINT", users=None
) -> SessionOperator:
    time = to_arrow("TIMESTAMP(3)" if zone is None else "TIMESTAMP_LTZ(3)")
    return SessionOperator(
        operator="sessions",
        columns=pa.schema([("k", pa.string()), ("v", to_arrow(v)), ("u", pa.bool_()), ("at", time)]),
        keys=keys,
        time="at",
        window=Window(type="session", gap=gap, zone=zone),
        calls=calls,
        types=tuple(to_arrow(call.type) for call in calls),
        names=("ws", "we", None),
        phases=phases,
        users=users or {},
    )


def given(rows: list[Row], *, zoned: bool = False) -> list[tuple]:
    return [(row.key, row.value, row.value % 2 == 0, moment(row.time, zoned=zoned)) for row in rows]


def shown(rows: list[tuple], keys: int = 1) -> Counter:
    """Rows as the model puts them out: keys, start, end, count, sum."""
    return Counter((*row[:keys], millis(row[-2]), millis(row[-1]), *row[keys:-2]) for row in rows)


def wanted(model: Sessions, rows: list[Row], before: int, after: int) -> Counter:
    return Counter(row for _, row in model.batch(rows, before, after))


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.parametrize("phases", ["AUTO", "ONE_PHASE", "TWO_PHASE"])
@pytest.mark.parametrize("keys", [("k",), ()])
def test_sessions_are_those_of_the_model_for_any_history(hasher, phases, keys) -> None:
    rng = random.Random(f"{phases} {keys}")
    for number in range(3):
        run = KernelRun(
            operator(keys=keys, phases=phases), rng.choice([1, 2, 5]), tasks=rng.choice([1, 3]), hasher=hasher
        )
        model = Sessions(GAP, is_keyed=bool(keys))
        for rows, after in history(rng, size=rng.choice([2, 25])):
            expected = wanted(model, rows, run.before, max(after, run.before))
            assert shown(run.batch([given(rows)], after), len(keys)) == expected, number
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
            assert run.state_rows == sum(map(len, model.open.values()))
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.segments == 0


def test_the_clock_of_a_zone_counts_on_the_days_when_it_is_changed() -> None:
    rng = random.Random(4)
    for day in ("2024-10-27T00:00", "2024-03-31T00:00"):
        start, gap = milliseconds(day), 40 * 60_000
        run = KernelRun(operator(zone="Europe/Berlin", gap="40 min"), 2)
        model = Sessions(gap, Zone("Europe/Berlin"))
        for rows, after in history(rng, batches=10, size=6, span=(start, start + 6 * 3_600_000)):
            expected = wanted(model, rows, run.before, max(after, run.before))
            assert shown(run.batch([given(rows, zoned=True)], after)) == expected
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
        assert run.segments == 0


def test_a_cut_without_late_rows_does_not_change_the_sessions() -> None:
    rng = random.Random(5)
    rows = in_order(rng, size=60)
    results = []
    for cut in cuts(rng, rows):
        run = KernelRun(operator(), 2)
        results.append(Counter(row for batch, after in cut for row in run.batch([given(batch)], after)))
        assert run.late == 0
    assert all(result == results[0] for result in results)
    assert sum(row[1] * count for row, count in results[0].items()) == len(rows)


def test_a_coarser_cut_drops_no_more_rows() -> None:
    rng = random.Random(6)
    for _ in range(10):
        rows = [Row(rng.randint(0, 1500), rng.choice("ab"), 1) for _ in range(60)]
        late = []
        for cut in cuts(rng, rows):
            run = KernelRun(operator())
            for batch, after in cut:
                run.batch([given(batch)], after)
            late.append(run.late)
        assert late[0] == max(late)


def test_a_batch_that_runs_again_has_the_same_output_and_manifest() -> None:
    rng = random.Random(7)
    first, second = KernelRun(operator(), 2), KernelRun(operator(), 2)
    for rows, after in history(rng, size=25):
        outputs = [run.batch([given(rows)], after) for run in (first, second)]
        assert outputs[0] == outputs[1]
        assert [part.manifest for part in first.parts] == [part.manifest for part in second.parts]


def test_a_batch_reads_only_buckets_that_its_rows_or_the_watermark_can_reach() -> None:
    run = KernelRun(operator())
    run.batch([given([Row(time, f"{time}", 1) for time in range(0, 10_000, 100)])], NEVER)
    (part,) = run.parts
    read: list[str] = []
    original = part.store.read
    part.store.read = lambda segment: (read.append(segment), original(segment))[1]  # type: ignore[method-assign]
    run.batch([[]], 149)
    assert {name.split("/")[0] for name in read} == {"sessions@50", "sessions@150"}
    read.clear()
    run.batch([given([Row(9_900, "9900", 1)])], 149)
    assert {name.split("/")[0] for name in read} == {"sessions@9950"}


@pytest.mark.parametrize("distinct", [False, True])
def test_the_plan_says_in_one_phase_of_exactly_those_sessions_that_run_in_one(distinct: bool) -> None:
    calls = (AggregateCall(name="n", function="COUNT", argument="v", type="BIGINT", distinct=distinct),)
    planned = WindowAggregate(
        id="a", inputs=("i",), keys=("k",), time="at", window=Window(type="session", gap="1 s"), aggregates=calls,
        state=(), changelog=("+I",),
    )  # fmt: skip
    (spec,) = operator(calls).inputs
    assert (spec.presum is None) == (planned.one_phase_because(insert_only=True) is not None)
