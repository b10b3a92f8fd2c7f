"""A pipeline without Spark moves watermarks by the rules: hand-built plans, with models as kernels."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Operator, Union, WindowAggregate
from hintplan.plans.operators.calc import SelectItem
from hintplan.runtime.builders.bound import KERNELS
from hintplan.runtime.operator import InputSpec
from tests.runtime.event_time import compiled, models
from tests.runtime.event_time.hand_built import plan_of, window_aggregate
from tests.runtime.event_time.model_kernel import ModelKernel
from tests.runtime.event_time.models import Windows
from tests.runtime.event_time.recorded import Steps, flink_late, flink_output
from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.pipeline import Pipeline

TIME = pa.timestamp("us")
NAMES = ("k", "window_start", "window_end", "n", "s")
OUTPUT = pa.schema(
    [("k", pa.string()), ("n", pa.int64()), ("s", pa.int64()), ("window_start", TIME), ("window_end", TIME)]
)
BEGIN = datetime(2024, 1, 1)
BEGIN_MS = 1_704_067_200_000


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(operator: WindowAggregate, bound: Any) -> ModelKernel:
        spec = InputSpec(columns=bound.schemas[0], hashes=(operator.keys,), changelog=bound.changelog[0])
        windows = Windows("tumble", operator.window.size_ms)
        row, names = ("k", str(operator.aggregates[1].argument), str(operator.time)), NAMES
        return ModelKernel(spec, lambda: models.WindowAggregate(windows), OUTPUT, row=row, names=names)

    monkeypatch.setitem(KERNELS, WindowAggregate, bind)


FILTERED = Calc(
    id="filtered",
    inputs=("watermark_s",),
    filter="k <> 'x'",
    select=tuple(SelectItem(name=name) for name in ("k", "v", "ts")),
)
UNITED = Union(id="united", inputs=("watermark_a", "watermark_b"))


def with_windows(
    *between: Operator,
    tables: tuple[str, ...] = ("s",),
    delay: str = "2 s",
    idle_timeout: str = "0 ms",
    twice: bool = False,
) -> Plan:
    """A plan of counts and sums by key in windows of 5 s, over tables and the operators ``between``.

    With ``twice``, the results are counted and summed again, in windows of 10 s of the ends of windows.
    """
    below = between[-1].id if between else "watermark_s"
    above: list[Operator] = [window_aggregate(below, Window(type="tumble", size="5 s"))]
    if twice:
        again = Window(type="tumble", size="10 s")
        above.append(window_aggregate("windows", again, name="windows_of_windows", time="window_end", value="s"))
    return plan_of(*between, *above, tables=tables, delay=delay, idle_timeout=idle_timeout)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def watermark(pipeline: Pipeline, name: str = "windows") -> float:
    """The watermark of an operator, in seconds after the beginning."""
    return (pipeline.watermarks[name] - BEGIN_MS) / 1000


@pytest.mark.parametrize("name", ["tumble, one phase", "late rows, periodic watermarks", "last watermark at the end"])
def test_a_row_a_batch_puts_out_what_flink_did(name: str) -> None:
    pipeline = Pipeline(with_windows())
    assert counted(compiled.run(name, pipeline)) == counted(flink_output(name))
    assert pipeline.late_rows["windows"] == flink_late(name)


def counted(steps: Steps) -> dict[int, list[tuple[str, tuple[str, ...]]]]:
    """Rows by step, with their values sorted: the columns of plans by hand have another order."""
    return {step: sorted((kind, tuple(sorted(map(str, row)))) for kind, row in rows) for step, rows in steps.items()}


def test_a_row_that_is_filtered_moves_the_watermark() -> None:
    pipeline = Pipeline(with_windows(FILTERED))
    pipeline.batch({"s": [("a", 1, at(1)), ("x", 2, at(30))]})
    assert watermark(pipeline) == 28
    assert pipeline.result == {("a", 1, 1, at(0), at(5)): 1}


def test_the_lowest_table_of_a_union_counts() -> None:
    pipeline = Pipeline(with_windows(UNITED, tables=("a", "b")))
    pipeline.batch({"a": [("a", 1, at(30))]})
    assert pipeline.watermarks["windows"] == NEVER
    pipeline.batch({"b": [("a", 2, at(9))]})
    assert watermark(pipeline) == 7
    pipeline.batch({"b": [("a", 2, at(50))]}, ended=("a",))
    assert watermark(pipeline) == 48


def test_the_lowest_split_of_a_table_counts() -> None:
    pipeline = Pipeline(with_windows())
    pipeline.batch({"s@0": [("a", 1, at(30))], "s@1": [("a", 2, at(9))]})
    assert watermark(pipeline) == 7
    pipeline.batch({"s@1": [("a", 2, at(11))]})
    assert watermark(pipeline) == 9


def test_rows_are_judged_by_the_watermark_before_their_batch() -> None:
    pipeline = Pipeline(with_windows())
    pipeline.batch({"s": [("a", 1, at(30)), ("a", 2, at(1))]})
    assert pipeline.result == {("a", 1, 2, at(0), at(5)): 1}
    pipeline.batch({"s": [("a", 4, at(2))]})
    assert pipeline.late_rows == {"windows": 1}
    assert pipeline.result == {("a", 1, 2, at(0), at(5)): 1}


def test_two_operators_close_in_one_batch() -> None:
    pipeline = Pipeline(with_windows(twice=True))
    pipeline.batch({"s": [("a", 1, at(1)), ("a", 2, at(3)), ("a", 4, at(6)), ("a", 8, at(40))]})
    assert pipeline.watermarks["windows_of_windows"] == pipeline.watermarks["windows"]
    assert pipeline.result == {("a", 1, 3, at(0), at(10)): 1, ("a", 1, 4, at(10), at(20)): 1}
    pipeline.drain()
    assert pipeline.watermarks == {"windows": FOREVER, "windows_of_windows": FOREVER}
    assert pipeline.waiting_rows == {"windows": 0, "windows_of_windows": 0}


def test_a_silent_table_does_not_hold_back_an_operator_above_another() -> None:
    pipeline = Pipeline(with_windows(UNITED, tables=("a", "b"), idle_timeout="500 ms", twice=True))
    pipeline.batch({"a": [("a", 1, at(1))], "b": [("a", 2, at(2))]}, now=0)
    pipeline.batch({"a": [("a", 4, at(30))]}, now=400)
    assert watermark(pipeline) == 0
    pipeline.batch({}, now=500)
    assert watermark(pipeline, "windows_of_windows") == 28
    pipeline.batch({}, now=2_000)
    assert pipeline.idle == {"windows": True, "windows_of_windows": True}
    assert watermark(pipeline) == 28


def test_an_edited_delay_counts_at_once_and_reopens_nothing() -> None:
    pipeline = Pipeline(with_windows())
    pipeline.batch({"s": [("a", 1, at(1)), ("a", 2, at(12))]})
    longer = pipeline.resumed(with_windows(delay="1 min"))
    longer.batch({"s": [("a", 4, at(14))]})
    assert watermark(longer) == 10
    shorter = longer.resumed(with_windows(delay="0 ms"))
    shorter.batch({})
    assert watermark(shorter) == 14
