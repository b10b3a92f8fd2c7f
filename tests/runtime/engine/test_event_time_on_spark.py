"""Watermarks through whole plans on Spark: each window leaves the query in the very batch that moved W past it.

The models count in plain Python (:mod:`tests.runtime.engine.tumbling`); no expected value is of the code under test.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan.planner.compile import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.read import read_state
from hintplan.runtime.operator import NEVER
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.runtime.engine.tumbling import Model, Row
from tests.spark.timed_plan import add_events, moment, timed_plan

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
DELAY = 3_000
Counted = tuple[int, int, datetime]
"""A key, a number, and the end of a window."""


class Seen:
    """The rows that each batch has put out, by table."""

    def __init__(self, *tables: str) -> None:
        self.batches: dict[str, dict[int, list[Counted]]] = {table: {} for table in tables or ("r",)}

    def function(self, table: str) -> Any:
        def write(rows: DataFrame, batch: int) -> None:
            self.batches[table][batch] = sorted(tuple(row.values()) for row in rows.toArrow().to_pylist())

        return write

    def run(self, plan: Plan, spark: SparkSession, **options: Any) -> Execution:
        functions = {table: self.function(table) for table in self.batches}
        execution = execute(plan, spark, sinks=functions, **{"once": True, **options})
        assert isinstance(execution, Execution)
        assert execution.await_termination(DEADLINE_SECONDS)
        return execution

    def of(self, table: str = "r") -> list[list[Counted]]:
        return [rows for _, rows in sorted(self.batches[table].items())]


def events(rng: random.Random, disorder: int, number: int = 60) -> list[Row]:
    clock, rows = 100_000, []
    for _ in range(number):
        clock += rng.randint(0, 1_400)
        rows.append((rng.randint(1, 5), clock - rng.randint(0, disorder)))
    return rows


def cut(rows: Sequence[Row], rng: random.Random) -> Iterator[list[Row]]:
    at = 0
    while at < len(rows):
        size = rng.randint(1, max(2, len(rows) // 4))
        yield list(rows[at : at + size])
        at += size


def counted(rows: Sequence[tuple[int, int, int]]) -> list[Counted]:
    """Rows of the model: a key, the last ms of a window, a number."""
    return sorted((key, number, moment(last + 1)) for key, last, number in rows)  # type: ignore[misc]


def two_windows(
    batches: Sequence[Sequence[Row]], keep: Any = lambda k: True, key: Any = lambda k: k
) -> list[list[Counted]]:
    """The output of the plan: rows that ``keep`` refuses move the watermark, and ``key`` is the calc's between."""
    first = Model(size=2_000, delay=DELAY).counts([{"o": batch} for batch in batches], ["o"])
    windows: dict[tuple[int, int], int] = {}
    output, at = [], NEVER
    for batch, closed in zip(batches, first, strict=True):
        at = max([at, *(ts - DELAY for _, ts in batch)])
        for k, last, _ in closed:
            if keep(k):
                place = key(k), last // 10_000 * 10_000 + 9_999
                windows[place] = windows.get(place, 0) + 1
        due = [(k, last, n) for (k, last), n in windows.items() if last <= at]
        windows = {place: n for place, n in windows.items() if place[1] > at}
        output.append(counted(due))
    return output


CASES: dict[str, dict[str, Any]] = {
    "in Arrow": {"form": "parquet", "partitions": 2, "condition": "k <> 3"},
    "by Spark": {"form": "json", "partitions": 1, "condition": "k <> 3 AND 12 / (k - 3) < 100"},
    "by Spark between": {
        "form": "parquet",
        "partitions": 3,
        "condition": "k <> 3",
        "between": {"filter": "k <> 4 AND 12 / (k - 4) < 100", "k": "CAST(k * 10 + 0 / (k - 4) AS BIGINT)"},
    },
    "five partitions": {"form": "json", "partitions": 5, "condition": "k <> 3", "between": {"k": "k * 10"}},
}


@pytest.mark.parametrize("case", CASES)
def test_each_window_is_put_out_in_the_batch_that_closed_it(spark: SparkSession, tmp_path: Path, case: str) -> None:
    options = CASES[case]
    between = options.get("between")
    rng = random.Random(case)
    batches = [*cut(events(rng, rng.choice([DELAY, 2 * DELAY])), rng)]
    for batch in batches:
        add_events(tmp_path, "o", batch, options["form"])
    seen = Seen()
    execution = seen.run(timed_plan(tmp_path, **options), spark, checkpoint=str(tmp_path / "checkpoint"))

    def keep(k: int) -> bool:
        return k != 3 and not (between and "filter" in between and k == 4)

    assert seen.of() == two_windows(batches, keep, (lambda k: k * 10) if between else (lambda k: k))
    progress = execution.progress["sink_r"].operators["window_b"].event_time
    assert progress is not None
    assert (progress.watermark, progress.held_by) == (
        max(ts for batch in batches for _, ts in batch) - DELAY,
        "window_a",
    )


def test_rows_that_a_filter_drops_move_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    for form in ("parquet", "json"):
        directory = tmp_path / form
        for batch in ([(1, 1_000)], [(9, 30_000)]):
            add_events(directory, "o", batch, form)
        seen = Seen()
        seen.run(timed_plan(directory, form=form, condition="k <> 9"), spark, checkpoint=str(directory / "checkpoint"))
        assert seen.of() == [[], [(1, 1, moment(10_000))]]


def test_of_two_tables_the_lower_watermark_counts_and_one_without_rows_holds_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    for k, ts in ((1, 4_000), (1, 33_000), (1, 43_000)):
        add_events(tmp_path, "o", [(k, ts)])
    plan = timed_plan(tmp_path, sources=("o", "p"))
    checkpoint = str(tmp_path / "checkpoint")
    seen = Seen()
    execution = seen.run(plan, spark, checkpoint=checkpoint)
    assert seen.of() == [[], [], []]
    held = execution.progress["sink_r"].operators["window_a"].event_time
    assert held is not None
    assert (held.watermark, held.held_by, held.waiting_rows) == (None, "watermark_p", 3)
    add_events(tmp_path, "p", [(2, 13_000)])
    seen.run(plan, spark, checkpoint=checkpoint)
    assert seen.of() == [[], [], [], [(1, 1, moment(10_000))]]


REPLACING = """CREATE TABLE upserts (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND,
PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{folder}/u', 'format' = 'json',
'source.changelog' = 'upsert');
CREATE TABLE o (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{folder}/o', 'format' = 'parquet');
CREATE VIEW last_rows AS SELECT k, v, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM o) WHERE n = 1;
CREATE VIEW both AS SELECT * FROM upserts UNION ALL SELECT * FROM last_rows;
CREATE TABLE r (k BIGINT, n BIGINT, ending TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO r SELECT k, COUNT(*), window_end FROM TABLE(TUMBLE(TABLE both, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY k, window_start, window_end;
"""


def test_rows_that_are_replaced_move_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    add_events(tmp_path, "u", [(1, 9_000), (1, 1_000)], "json")  # the second row replaces the first
    add_events(tmp_path, "o", [(2, 2_000), (3, 3_000), (3, 9_000)])
    plan = compile_sql(REPLACING.replace("{folder}", str(tmp_path)))
    result = replace(plan.tables["r"], options={"connector": "dataframe"})
    seen = Seen()
    execution = seen.run(
        replace(plan, tables={**plan.tables, "r": result}), spark, checkpoint=str(tmp_path / "checkpoint")
    )
    assert seen.of() == [[(1, 1, moment(5_000)), (2, 1, moment(5_000))]]
    times = execution.progress["sink_r"].operators["window_r"].event_time
    assert times is not None
    assert times.watermark == 7_000


def test_a_batch_that_runs_again_without_its_commit_puts_out_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    batches = [*cut(events(rng, 2 * DELAY), rng)]
    for batch in batches:
        add_events(tmp_path, "o", batch)
    plan, seen, again = timed_plan(tmp_path), Seen(), Seen()
    seen.run(plan, spark, checkpoint=str(tmp_path / "checkpoint"))
    commits = tmp_path / "checkpoint" / "sink_r" / "commits"
    last = len(batches) - 1
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)
    again.run(plan, spark, checkpoint=str(tmp_path / "checkpoint"))
    assert again.batches["r"] == {last: seen.batches["r"][last]}


def test_runs_with_other_partitions_and_an_edited_delay_go_on_with_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(6)
    batches = [*cut(events(rng, 2 * DELAY), rng)]
    seen = Seen()
    for number, batch in enumerate(batches):
        add_events(tmp_path, "o", batch)
        if number % 2 or number == len(batches) - 1:
            plan = timed_plan(tmp_path, partitions=rng.choice([1, 2, 3, 5]))
            seen.run(plan, spark, checkpoint=str(tmp_path / "checkpoint"))
    assert seen.of() == two_windows(batches)
    edited = set_value(timed_plan(tmp_path, partitions=2), "watermark_o.delay", "0 ms")[0]
    add_events(tmp_path, "o", [(1, max(ts for batch in batches for _, ts in batch))])
    execution = seen.run(edited, spark, checkpoint=str(tmp_path / "checkpoint"))
    times = execution.progress["sink_r"].operators["window_a"].event_time
    assert times is not None
    assert times.watermark == max(ts for batch in batches for _, ts in batch)


def test_what_several_operators_read_carries_marks_to_each(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[list[Row]] = [[(1, 1_000), (2, 2_500)], [(1, 14_000)], [(2, 27_000)]]
    for batch in batches:
        add_events(tmp_path, "o", batch)
    plan = timed_plan(tmp_path, sinks={"r": "window_b", "early": "window_a"})
    seen = Seen("r", "early")
    seen.run(plan, spark, checkpoint=str(tmp_path / "checkpoint"))
    assert seen.of("early") == [
        [],
        [(1, 1, moment(2_000)), (2, 1, moment(4_000))],
        [(1, 1, moment(16_000))],
    ]
    assert seen.of() == [[], [(1, 1, moment(10_000)), (2, 1, moment(10_000))], [(1, 1, moment(20_000))]]


def test_a_checkpoint_leaves_windows_open_until_it_is_drained_and_is_refused_then(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_events(tmp_path, "o", [(1, 1_000), (2, 2_500)])
    plan, checkpoint, seen = timed_plan(tmp_path), str(tmp_path / "checkpoint"), Seen()
    execution = seen.run(plan, spark, checkpoint=checkpoint)
    assert seen.of() == [[]]
    left = execution.progress["sink_r"].operators["window_a"].event_time
    assert left is not None
    assert (left.watermark, left.waiting_rows) == (2_500 - DELAY, 2)
    (query,) = read_state(plan, checkpoint).queries
    stored = {operator.id: operator.watermark for operator in query.operators}
    assert [watermark and (watermark.after, watermark.held_by) for watermark in stored.values()] == [
        (2_500 - DELAY, "window_a"), (2_500 - DELAY, "watermark_o"),
    ]  # fmt: skip
    add_events(tmp_path, "o", [(1, 3_000)])
    execution = seen.run(plan, spark, checkpoint=checkpoint, once=False, drain=True)
    assert seen.of() == [[], [], [(1, 2, moment(10_000)), (2, 1, moment(10_000))]]
    assert execution.progress["sink_r"].operators["window_b"].state_rows == 0
    for options in ({"once": True}, {"once": False, "drain": True}):
        with pytest.raises(RunError, match="was drained: all windows of sink_r are closed"):
            seen.run(plan, spark, checkpoint=checkpoint, **options)


def test_a_drain_that_was_killed_is_finished_by_the_next_one(spark: SparkSession, tmp_path: Path) -> None:
    add_events(tmp_path, "o", [(1, 1_000), (2, 2_500)])
    plan, checkpoint, seen = timed_plan(tmp_path), str(tmp_path / "checkpoint"), Seen()
    seen.run(plan, spark, checkpoint=checkpoint, drain=True)
    commits = tmp_path / "checkpoint" / "sink_r" / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)
    with pytest.raises(RunError, match="is being drained"):
        seen.run(plan, spark, checkpoint=checkpoint)
    again = Seen()
    again.run(plan, spark, checkpoint=checkpoint, drain=True)
    assert again.batches["r"] == {last: seen.batches["r"][last]}
    assert seen.batches["r"][last] == [(1, 1, moment(10_000)), (2, 1, moment(10_000))]


def test_a_drain_that_was_killed_before_its_batch_began_is_finished_by_the_next_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_events(tmp_path, "o", [(1, 1_000), (2, 2_500)])
    plan, checkpoint, seen = timed_plan(tmp_path), str(tmp_path / "checkpoint"), Seen()
    seen.run(plan, spark, checkpoint=checkpoint)
    query = tmp_path / "checkpoint" / "sink_r"
    (query / "ending").mkdir()
    (query / "ending" / "1").write_text("\n")
    entry = {"path": (query / "ending" / "1").as_uri(), "timestamp": 1_700_000_000_000, "batchId": 0}
    (query / "sources" / "1").mkdir(parents=True, exist_ok=True)
    (query / "sources" / "1" / "0").write_text(f"v1\n{json.dumps(entry)}")
    with pytest.raises(RunError, match="is being drained"):
        seen.run(plan, spark, checkpoint=checkpoint)
    seen.run(plan, spark, checkpoint=checkpoint, drain=True, policy={"paths": [str(tmp_path)]})
    assert seen.of() == [[], [(1, 1, moment(10_000)), (2, 1, moment(10_000))]]


def test_a_run_without_a_checkpoint_closes_all_windows_at_the_end(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(8)
    rows = events(rng, DELAY, 30)
    for batch in cut(rows, rng):
        add_events(tmp_path, "o", batch)
    seen = Seen()
    seen.run(timed_plan(tmp_path), spark, policy={"paths": [str(tmp_path)]})  # without the directory of its checkpoint
    windows = {(k, ts // 2_000) for k, ts in rows}
    assert sum(n for batch in seen.of() for _, n, _ in batch) == len(windows)


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_null_in_the_rowtime_fails_the_run_with_the_operator_and_what_to_do(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    add_events(tmp_path, "o", [(1, 1_000), (9, None)], form)
    with pytest.raises(RunError, match="operator watermark_o: 'ts' is the rowtime, and a row has NULL in it") as caught:
        Seen().run(timed_plan(tmp_path, form=form, condition="k <> 9"), spark)
    assert "COALESCE(ts" in (caught.value.diagnostics[0].hint or "")


@pytest.mark.parametrize("base", ["ts", "ts - INTERVAL '1' SECOND", "if(k = 1, ts, NULL)"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_base_of_a_watermark_may_be_any_expression_and_times_have_no_zone(
    spark: SparkSession, tmp_path: Path, base: str, zone: str
) -> None:
    if zone == "UTC" and base == "ts":
        pytest.skip("every other test")
    # 2024-03-10 02:30 does not exist in New York, and in a TIMESTAMP it does.
    gap = 1_710_037_800_000
    for batch in ([(1, gap), (2, gap + 5_000)], [(2, gap + 60_000)], [(1, gap + 70_000)]):
        add_events(tmp_path, "o", batch, "json")
    plan = timed_plan(tmp_path, form="json", base=base, delay="0 ms")
    plan = replace(plan, config={**plan.config, "table.local-time-zone": zone})
    seen = Seen()
    execution = seen.run(plan, spark, checkpoint=str(tmp_path / "checkpoint"))
    marks: Mapping[str, list[int]] = {
        "ts": [gap + 5_000, gap + 60_000, gap + 70_000],
        "ts - INTERVAL '1' SECOND": [gap + 4_000, gap + 59_000, gap + 69_000],
        "if(k = 1, ts, NULL)": [gap, gap, gap + 70_000],
    }
    batches = [batch.operators["window_a"].event_time for batch in execution.new_batches()]
    assert [times and times.watermark for times in batches] == marks[base]
