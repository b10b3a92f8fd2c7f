"""Group windows with early and late fire put out what their model does, with delays, and with other settings later."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.declarations.windows import Window
from hintplan.runtime.operators.fired_windows import FiredWindowsOperator
from tests.runtime.changelog import events_of
from tests.runtime.event_time.histories import millis
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import FiredWindows, Row, Windows
from tests.runtime.event_time.recorded import SIGNS
from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.event_time.window_aggregates import REPEATED, SUMS, given, operator

TUMBLE = Window(type="tumble", size="100 ms")
HOP = Window(type="hop", size="100 ms", slide="70 ms")


class Fire(NamedTuple):
    early: int | None
    late: int | None
    lateness: int = 0


FIRES = [Fire(0, None), Fire(30, None), Fire(None, 0, 200), Fire(None, 40, 200), Fire(30, 40, 100), Fire(30, 0, 200)]


def fired(window: Window, fire: Fire, *, calls=SUMS, changelog: bool = False) -> FiredWindowsOperator:
    return FiredWindowsOperator(
        windows=replace(operator(window, calls, changelog=changelog), whole=True),
        kinds=ALL_KINDS,
        early=fire.early is not None,
        late=fire.late is not None,
        early_delay=fire.early or 0,
        late_delay=fire.late or 0,
        lateness=fire.lateness,
    )


def model_of(window: Window, fire: Fire) -> FiredWindows:
    windows = Windows("hop", window.size_ms, window.step_ms)
    return FiredWindows(windows, *fire)


def batches(dice: random.Random, *, changes: bool) -> list[tuple[list[Row], int, int]]:
    """Rows, watermark and time of each batch; some batches have no rows."""
    kept: list[Row] = []
    result = []
    after, now = NEVER, 1000
    for number in range(14):
        rows = []
        for _ in range(dice.choice((0, 0, 3, 8))):
            if changes and kept and dice.random() < 0.4:
                rows.append(kept.pop(dice.randrange(len(kept)))._replace(sign=-1))
            else:
                time = 40 * number + dice.randint(-250, 60)
                rows.append(Row(time, dice.choice(["a", "b", None]), dice.randint(0, 3)))
                kept.append(rows[-1])
        after = max(after, 40 * number - 60) if dice.random() < 0.7 else after
        now += dice.choice((5, 20, 60))
        result.append((rows, after, now))
    return result


def of_batch(run: KernelRun, rows: list[Row], after: int, now: int) -> Counter:
    run.batch([given(rows, run.operator.windows)], after, now)
    events = [event for result in run.results for event in events_of(result.output)]
    shown = ((kind, (key, millis(ws), millis(we), n, s)) for kind, (key, n, s, *_, ws, we) in events)
    return Counter((SIGNS[kind], row) for kind, row in shown)


@pytest.mark.parametrize("fire", FIRES, ids=str)
@pytest.mark.parametrize("window", [TUMBLE, HOP], ids=lambda window: window.words)
def test_a_group_window_puts_out_what_its_model_does(window: Window, fire: Fire) -> None:
    for seed in range(12):
        dice = random.Random(f"{window} {fire} {seed}")
        changes = seed % 3 == 2
        made = fired(window, fire, calls=REPEATED if seed % 3 == 1 else SUMS, changelog=changes)
        run, model, before = KernelRun(made, tasks=2), model_of(window, fire), NEVER
        for rows, after, now in batches(dice, changes=changes):
            run.rescale(dice.choice((1, 1, 2, 5)))
            expected = Counter(model.batch(rows, before, after, now))
            assert of_batch(run, rows, after, now) == expected
            before = after
        assert of_batch(run, [], FOREVER, now) == Counter(model.batch([], before, FOREVER, now))
        assert run.late == model.late
        assert run.state_rows == 0


def test_other_delays_and_another_lateness_hold_from_the_next_batch_on() -> None:
    seen = Counter()
    for seed in range(20):
        dice = random.Random(f"edits {seed}")
        fires = [Fire(dice.choice((0, 30, 90)), dice.choice((0, 40)), dice.choice((0, 100, 300))) for _ in range(14)]
        run, model, before = KernelRun(fired(TUMBLE, fires[0])), model_of(TUMBLE, fires[0]), NEVER
        for fire, (rows, after, now) in zip(fires, batches(dice, changes=False), strict=True):
            run.operator = fired(TUMBLE, fire)
            model.delays, model.kept = (fire.early, fire.late), fire.lateness
            expected = Counter(model.batch(rows, before, after, now))
            assert of_batch(run, rows, after, now) == expected
            seen.update(sign for sign, _ in expected.elements())
            before = after
    assert min(seen[1], seen[-1]) > 100


def test_a_group_that_changes_and_changes_back_is_not_put_out_again() -> None:
    run = KernelRun(fired(TUMBLE, Fire(50, None), changelog=True))
    assert of_batch(run, [Row(10, "a", 1)], NEVER, 0) == Counter()
    assert of_batch(run, [], NEVER, 50) == Counter({(1, ("a", 0, 100, 1, 1)): 1})
    assert of_batch(run, [Row(20, "a", 7)], NEVER, 60) == Counter()
    assert of_batch(run, [Row(20, "a", 7, sign=-1)], NEVER, 70) == Counter()
    assert of_batch(run, [], NEVER, 110) == Counter()
    assert of_batch(run, [], FOREVER, 120) == Counter()
