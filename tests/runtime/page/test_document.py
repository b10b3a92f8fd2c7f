"""The numbers on the page of a run, from recorded batches; expected values are counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hintplan
from hintplan.plans.show.live_rows import live_rows
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.page.lines import Line
from hintplan.runtime.progress import BatchProgress, EventTimeProgress, JobProgress, OperatorProgress
from hintplan.runtime.running import RunningBatch, RunningStage
from hintplan.runtime.sources import SourceProgress
from tests.runtime.page.recorded import NO_LOOKUPS, Recorded


@pytest.fixture
def run() -> Recorded:
    run = Recorded()
    run.begin()
    return run


def line(run: Recorded, operator: str, name: str) -> Line:
    return Line(**run.page.document()["operators"][operator]["lines"][name])


def query(run: Recorded, name: str) -> dict:
    (found,) = [each for each in run.page.document()["queries"] if each["query"] == name]
    return found


def test_every_line_of_the_plan_is_filled_in_before_the_first_batch(run: Recorded) -> None:
    operators = run.page.document()["operators"]
    for operator, names in live_rows(run.plan).items():
        assert tuple(operators[operator]["lines"]) == names
        assert {each["level"] for each in operators[operator]["lines"].values()} == {""}


def test_rates_are_those_of_the_last_minute(run: Recorded) -> None:
    join = OperatorProgress(rows_in=600, rows_out=60)
    for number in range(1, 31):  # 5 minutes with a batch every ten seconds
        run.seconds = number * 10.0
        run.batch("sink_paid", number, rows_in=600, rows_out=60, operators={"join_o_p": join})
    assert line(run, "join_o_p", "rows").text == "60/s → 6.0/s"
    assert line(run, "sink_paid", "rows").text == "6.0/s"
    assert query(run, "sink_paid")["rows_in_per_second"] == 60
    run.seconds += 30  # no batch: the batches of 30 s count for the minute
    assert query(run, "sink_paid")["rows_in_per_second"] == 600 * 3 / 60
    run.seconds += 600
    assert query(run, "sink_paid")["rows_in_per_second"] == 0


def test_rates_of_batches_that_take_longer_than_a_minute_do_not_jump(run: Recorded) -> None:
    for number in range(1, 4):
        run.seconds = number * 90.0
        run.batch("sink_paid", number, rows_in=900, duration_ms=90_000)
    # The last minute began within the last batch, which began 90 s ago.
    assert query(run, "sink_paid")["rows_in_per_second"] == 10
    run.seconds += 30  # the batch before began 120 s ago
    assert query(run, "sink_paid")["rows_in_per_second"] == 900 / 120


def test_state_and_totals_are_as_the_last_batch_left_them(run: Recorded) -> None:
    run.seconds = 10
    for rows in (7, 8):
        joined = OperatorProgress(
            rows_in=9, rows_out=4, state_rows=rows, state_bytes=2048, oldest_write=1_700_000_000_500
        )
        run.batch("sink_paid", rows, operators={"join_o_p": joined})
    assert line(run, "join_o_p", "state") == Line("8 · 2.0 KiB")
    document = run.page.document()["operators"]["join_o_p"]
    values = document["values"]
    assert (values["operator.rows_in"], values["operator.state_rows"], values["operator.state_size"]) == (18, 8, 2048)
    assert values["operator.state_ttl"] == {"leftState": 86_400, "rightState": 10_800}
    details = {name: text for name, text, _ in document["details"]}
    assert details["rows in"] == "18 · 1.8/s"
    assert details["state oldest write time"] == "2023-11-14 22:13:20 UTC"


@pytest.mark.parametrize(
    ("size", "other", "level"), [(200 << 20, 90 << 20, "warn"), (200 << 20, 300 << 20, ""), (4096, 0, "")]
)
def test_a_state_is_large_that_is_most_of_all_state_and_not_small(
    run: Recorded, size: int, other: int, level: str
) -> None:
    run.batch("sink_paid", 1, operators={"join_o_p": OperatorProgress(state_rows=5, state_bytes=size)})
    run.batch("sink_by_plane", 1, operators={"aggregate_by_plane": OperatorProgress(state_rows=5, state_bytes=other)})
    assert line(run, "join_o_p", "state").level == level


def test_a_source_is_behind_after_three_batches_in_a_row(run: Recorded) -> None:
    def batch(number: int, files: int) -> None:
        metrics = {"numFilesOutstanding": str(files), "numBytesOutstanding": "2048"}
        source = SourceProgress(source="FileStreamSource[o]", operator="scan_orders", rows_in=5, metrics=metrics)
        run.batch("sink_paid", number, sources=(source,))

    for number in range(2):
        batch(number, 1_200)
    assert line(run, "scan_orders", "lag") == Line("1,200 files · 2.0 KiB")
    batch(2, 1_200)
    behind = "in three batches in a row: scan_orders is behind: 1,200 files, 2.0 KiB"
    assert line(run, "scan_orders", "lag") == Line("1,200 files · 2.0 KiB", "warn", behind)
    batch(3, 0)
    assert line(run, "scan_orders", "lag").level == ""


def test_the_source_that_holds_a_watermark_back_is_marked(run: Recorded) -> None:
    run.seconds = 100
    run.batch("sink_minutes", 1, operators=run.windows(late=False))
    assert line(run, "join_o_p_in_minutes", "watermark") == Line("1 min 15 s behind")
    reason = "holds the watermark of join_o_p_in_minutes back"
    assert line(run, "window_payments", "watermark") == Line("1 min 15 s behind", "hold", reason)
    assert line(run, "window_orders", "watermark") == Line("6.0 s behind")
    # A window over one table always follows that one.
    assert line(run, "watermark_payments", "watermark") == Line("the only source")


def test_the_partition_that_holds_a_watermark_back_is_named(run: Recorded) -> None:
    time = EventTimeProgress(watermark=0, held_by="watermark_orders", split="orders/3")
    run.batch("sink_minutes", 1, operators={"window_orders": OperatorProgress(event_time=time)})
    reason = "holds the watermark of window_orders back, by its partition orders/3"
    assert line(run, "watermark_orders", "watermark") == Line("the slowest", "hold", reason)


def test_a_watermark_that_stands_still_while_rows_come_needs_attention(run: Recorded) -> None:
    time = EventTimeProgress(watermark=int(run.now() * 1000), held_by="watermark_orders")
    for number in range(20):
        run.seconds += 5
        run.batch("sink_minutes", number, operators={"window_orders": OperatorProgress(rows_in=5, event_time=time)})
    stands = "it stood still for a minute, while rows came: watermark_orders holds it back"
    assert line(run, "window_orders", "watermark") == Line("1 min 40 s behind", "warn", stands)
    run.seconds += 70  # no rows come
    assert line(run, "window_orders", "watermark").level == ""
    ended = OperatorProgress(event_time=replace(time, watermark=FOREVER))
    run.batch("sink_minutes", 30, operators={"window_orders": ended})
    assert line(run, "window_orders", "watermark").text == "ended"


def test_late_rows_need_attention_for_a_minute(run: Recorded) -> None:
    run.seconds = 10
    run.batch("sink_minutes", 1, operators=run.windows(late=True))
    assert line(run, "window_payments", "late") == Line("3, +3", "warn", "3 within the last minute")
    run.seconds = 80
    run.batch("sink_minutes", 2, operators=run.windows(late=False))
    run.seconds = 141
    assert line(run, "window_payments", "late") == Line("3")


def test_lookups_have_their_hits_and_their_failures(run: Recorded) -> None:
    run.seconds = 10
    run.batch("sink_by_plane", 1, lookups={"lookup_p": NO_LOOKUPS | {"lookups": 100, "hitCount": 75, "missCount": 25}})
    assert line(run, "lookup_p", "lookups") == Line("10/s · 75% hits")
    run.batch("sink_by_plane", 2, lookups={"lookup_p": NO_LOOKUPS | {"numLoadFailures": 2, "timeouts": 1}})
    failed = "2 failed and 1 timed out within the last minute"
    assert line(run, "lookup_p", "lookups") == Line("10/s · 75% hits · 2 failed", "bad", failed)


def test_a_batch_is_slow_compared_with_those_before(run: Recorded) -> None:
    for number, duration in enumerate((900, 1_100, 1_000)):
        run.batch("sink_paid", number, duration_ms=duration)
    assert line(run, "sink_paid", "batch") == Line("1.0 s")  # two before are too few to compare with
    run.batch("sink_paid", 3, duration_ms=1_000)
    assert line(run, "sink_paid", "batch") == Line("1.0 s, usually 1.0 s")
    run.batch("sink_paid", 4, duration_ms=4_000)  # four times as long, but short
    assert line(run, "sink_paid", "batch").level == ""
    run.batch("sink_paid", 5, duration_ms=6_000)
    assert line(run, "sink_paid", "batch") == Line(
        "6.0 s, usually 1.0 s", "warn", "the last batch was slower than usual"
    )
    assert query(run, "sink_paid")["durations_ms"] == [900, 1_100, 1_000, 1_000, 4_000, 6_000]


@pytest.mark.parametrize(("seconds", "level"), [(4, ""), (30, "warn"), (61, "bad")])
def test_a_batch_at_work_is_slow_and_then_stuck(run: Recorded, seconds: int, level: str) -> None:
    from hintplan.runtime.metrics import table

    for number in range(5):
        run.batch("sink_paid", number)
    run.metrics.measurements.set(table.BATCH_RUNNING, seconds, "paid", "sink_paid")
    stages = (
        RunningStage(stage=3, operators=("join_o_p",), tasks=4, done=1, failed=0, rows_read=0, waiting=()),
        RunningStage(stage=2, operators=(), tasks=2, done=2, failed=0, rows_read=0, waiting=()),
    )
    run.followed.working("sink_paid", RunningBatch(sinks=("sink_paid",), batch=5, running_ms=1, stages=stages))
    assert line(run, "sink_paid", "batch").level == level
    assert query(run, "sink_paid")["at_work"] == "join_o_p: 1 of 4 tasks"
    run.batch("sink_paid", 5)
    assert query(run, "sink_paid")["at_work"] is None  # the batch of the report has ended, and another one is at work


def test_several_sinks_of_a_query_have_their_own_rows_and_its_batches() -> None:
    run = Recorded(queries={"join_o_p": ("sink_paid", "sink_by_plane"), "sink_minutes": ("sink_minutes",)})
    run.begin()
    run.seconds = 10
    run.batch("sink_paid", 1, rows_in=50, rows_out=20)
    run.batch("sink_by_plane", 1, rows_out=30)
    assert [line(run, sink, "rows").text for sink in ("sink_paid", "sink_by_plane")] == ["2.0/s", "3.0/s"]
    assert [line(run, sink, "batch").text for sink in ("sink_paid", "sink_by_plane")] == ["1.0 s", "1.0 s"]
    assert query(run, "join_o_p")["rows_out_per_second"] == 5


def test_jobs_of_a_batch_plan_have_their_rows_and_their_time() -> None:
    plan = hintplan.compile_sql(
        """SET 'execution.runtime-mode' = 'batch';
        CREATE TABLE o (a BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
        CREATE TABLE s (a BIGINT) WITH ('connector' = 'blackhole');
        INSERT INTO s SELECT COUNT(*) FROM o;"""
    )
    run = Recorded(plan=plan, queries={"sink_s": ("sink_s",)})
    run.begin()
    assert line(run, "sink_s", "job").text == "not ended"
    job = JobProgress(
        sink="sink_s", timestamp="", rows_out=12_345, duration_ms=3_210, lookups={}, functions={}, cached={}
    )
    run.followed.told(job)
    assert (line(run, "sink_s", "rows").text, line(run, "sink_s", "job").text) == ("12,345", "3.2 s")


def test_a_run_that_starts_again_begins_with_rates_of_its_own(run: Recorded) -> None:
    run.an_hour(batches=3)
    assert isinstance(run.followed.recent.last["sink_paid"], BatchProgress)
    run.begin()
    document = run.page.document()
    assert (document["restarts"], document["queries"][0]["durations_ms"]) == (1, [])
    assert document["operators"]["join_o_p"]["values"]["operator.rows_in"] == 3 * 3_500
    assert line(run, "join_o_p", "rows").text == "0/s → 0/s"
