"""What batches say of the state of operators, as Spark's progress has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hintplan.runtime.engine.process import split_number
from hintplan.runtime.operator import NEVER
from hintplan.runtime.progress import BatchProgress, EventTimeProgress, OperatorProgress, batch_progress
from hintplan.runtime.run.report import open_report
from hintplan.runtime.sources import Behind, lag_text

PARTITIONS = 2


class Observed:
    def __init__(self, **metrics: int) -> None:
        self._metrics = metrics

    def asDict(self) -> dict[str, int]:
        return self._metrics


TIMES = {"watermark": 5_000, "held_by": 1, "held_split": split_number("t/2"), "late_rows": 3, "waiting_rows": 2}


def operators(
    before: dict[str, OperatorProgress], *sources: SimpleNamespace, **metrics: int
) -> dict[str, OperatorProgress]:
    none = dict.fromkeys(
        ("rows_in", "rows_out", "state_rows", "state_bytes", "state_rows_delta", "state_bytes_delta", "oldest_write"), 0
    )
    progress = SimpleNamespace(
        numInputRows=0,
        sources=sources,
        batchId=7,
        timestamp="t",
        durationMs={},
        observedMetrics={"join_o_c": Observed(**{**none, **metrics})},
    )
    times = {"join_o_c": ("watermark_o", "watermark_c")}
    return dict(batch_progress("sink_r", progress, before, PARTITIONS, time_sources=times).operators)


def test_without_data_since_the_start_of_a_run_nothing_is_said_of_state_that_is_there() -> None:
    assert operators({}, reports=0) == {}
    assert operators({}, reports=1, state_rows=3, state_rows_delta=-1) == {}


def test_all_partitions_say_what_is_there_and_fewer_what_has_changed() -> None:
    whole = operators({}, reports=PARTITIONS, state_rows=9, state_bytes=90, rows_in=2)
    assert whole == {"join_o_c": OperatorProgress(rows_in=2, rows_out=0, state_rows=9, state_bytes=90)}
    part = operators(whole, reports=1, state_rows=1, state_rows_delta=-4, state_bytes_delta=-40, rows_out=1)
    assert part == {"join_o_c": OperatorProgress(rows_in=0, rows_out=1, state_rows=5, state_bytes=50)}


def test_the_oldest_write_is_that_of_all_partitions_and_never_later_than_what_fewer_say() -> None:
    whole = operators({}, reports=PARTITIONS, state_rows=9, oldest_write=1_700)
    assert whole["join_o_c"].oldest_write == 1_700
    # The partition that is silent may be the one with the row of 1,700.
    assert operators(whole, reports=1, state_rows=3, oldest_write=1_900)["join_o_c"].oldest_write == 1_700
    assert operators(whole, reports=PARTITIONS, state_rows=5, oldest_write=1_900)["join_o_c"].oldest_write == 1_900


def test_state_without_rows_has_no_oldest_write() -> None:
    whole = operators({}, reports=PARTITIONS, state_rows=9, oldest_write=1_700)
    assert operators(whole, reports=PARTITIONS)["join_o_c"].oldest_write is None
    assert operators(whole, reports=1, state_rows_delta=-9)["join_o_c"].oldest_write is None


def test_an_operator_that_is_not_observed_keeps_its_state_and_had_no_rows() -> None:
    whole = operators({}, reports=PARTITIONS, rows_in=5, rows_out=4, state_rows=9, state_bytes=90, rows_passed_over=2)
    silent = SimpleNamespace(numInputRows=0, sources=(), batchId=8, timestamp="t", durationMs={}, observedMetrics={})
    found = batch_progress("sink_r", silent, whole, PARTITIONS).operators["join_o_c"]
    assert found == OperatorProgress(state_rows=9, state_bytes=90, counts={"rows_passed_over": 0})


def test_what_a_kind_of_operators_counts_besides_stands_apart() -> None:
    (found,) = operators({}, reports=PARTITIONS, state_rows=9, rows_passed_over=4).values()
    assert found == OperatorProgress(state_rows=9, counts={"rows_passed_over": 4})


def test_an_operator_that_goes_by_event_time_says_its_watermark_and_who_holds_it_back() -> None:
    (found,) = operators({}, reports=PARTITIONS, **TIMES).values()
    assert found.counts == {}
    assert found.event_time == EventTimeProgress(watermark=5_000, held_by="watermark_c", late_rows=3, waiting_rows=2)
    silent = SimpleNamespace(numInputRows=0, sources=(), batchId=8, timestamp="t", durationMs={}, observedMetrics={})
    after = batch_progress("sink_r", silent, {"join_o_c": found}, PARTITIONS).operators["join_o_c"]
    assert after.event_time == replace(found.event_time, late_rows=0)


@pytest.mark.parametrize("notation", [json.dumps, str], ids=["PySpark 4.2", "PySpark 4.0"])
@pytest.mark.parametrize(("splits", "named"), [({"t": {"0": 9, "2": 4}}, "t/2"), ({"other": {"2": 4}}, None)])
def test_the_split_that_holds_the_watermark_back_is_named_if_a_source_has_it(
    splits: dict[str, dict[str, int]], named: str | None, notation: Callable[[object], str]
) -> None:
    topic = SimpleNamespace(
        description="KafkaV2[Subscribe[t]]",
        numInputRows=3,
        inputRowsPerSecond=1.0,
        processedRowsPerSecond=1.0,
        endOffset=notation(splits),
        latestOffset=None,
        metrics={},
    )
    (found,) = operators({}, topic, reports=PARTITIONS, **TIMES).values()
    assert found.event_time is not None
    assert (found.event_time.held_by, found.event_time.split) == ("watermark_c", named)


def test_before_the_first_watermark_there_is_none_and_nobody_holds_it_back_if_all_are_idle() -> None:
    (found,) = operators({}, reports=PARTITIONS, **{**TIMES, "watermark": NEVER, "held_by": -1}).values()
    assert found.event_time == EventTimeProgress(late_rows=3, waiting_rows=2)


def test_the_row_that_values_are_made_of_is_not_read() -> None:
    def source(description: str, rows: int, end: str) -> SimpleNamespace:
        return SimpleNamespace(
            description=description,
            numInputRows=rows,
            inputRowsPerSecond=1.0,
            processedRowsPerSecond=1.0,
            endOffset=end,
            latestOffset=None,
            metrics={},
        )

    in_python = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@2c63f7a1"
    progress = SimpleNamespace(
        numInputRows=10,
        sources=(
            source("FileStreamSource[file:/in]", 3, '{"logOffset": 0}'),
            source(in_python, 1, '{"row": 1}'),
            source(in_python, 1, "{'row': 1}"),
            source(in_python, 5, '{"row": 1, "time": 17}'),
        ),
        batchId=0,
        timestamp="t",
        durationMs={},
        observedMetrics={},
    )
    readers = ("scan_t", "values_a", "values_b", "scan_g")
    found = batch_progress("sink_r", progress, {}, PARTITIONS, scans=readers)
    assert found.rows_in == 8
    assert [(each.operator, each.rows_in) for each in found.sources] == [("scan_t", 3), ("scan_g", 5)]
    unknown = batch_progress("sink_r", progress, {}, PARTITIONS)
    assert [each.operator for each in unknown.sources] == [None, None]


def of_files(scans: tuple[str, ...] = ("scan_t", "scan_u"), **rates: float) -> BatchProgress:
    """A batch that read 2 files of 1,000 rows each, which Spark counts as 2 rows, and 5 rows of another source."""

    def source(description: str, rows: int) -> SimpleNamespace:
        found = {"inputRowsPerSecond": 1.0, "processedRowsPerSecond": 0.4} | rates
        return SimpleNamespace(
            description=description, numInputRows=rows, endOffset=None, latestOffset=None, metrics={}, **found
        )

    progress = SimpleNamespace(
        numInputRows=7,
        sources=(source("FileStreamSource[file:/in]", 2), source("KafkaV2[Subscribe[u]]", 5)),
        batchId=0,
        timestamp="t",
        durationMs={},
        observedMetrics={"read by join_t_u/0": Observed(**{"uncounted scan_t": 1998})},
    )
    return batch_progress("sink_r", progress, {}, PARTITIONS, scans=scans)


def test_rows_of_files_that_tasks_read_themselves_are_counted_and_not_the_files() -> None:
    found = of_files()
    assert found.rows_in == 2005
    files, topic = found.sources
    assert (files.rows_in, files.rows_in_per_second, files.rows_processed_per_second) == (2000, 1000.0, 400.0)
    assert (topic.rows_in, topic.rows_in_per_second, topic.rows_processed_per_second) == (5, 1.0, 0.4)
    assert lag_text(files) == "scan_t falls behind: 1,000 rows a second come, 400 are processed"
    assert lag_text(topic) == "scan_u falls behind: 1.0 rows a second come, 0.4 are processed"


def test_nobody_tells_how_fast_rows_came_if_files_may_have_been_counted() -> None:
    assert [lag_text(source) for source in of_files(()).sources] == ["", ""]
    assert of_files(()).rows_in == 2005


def test_a_run_says_what_is_behind_from_the_third_batch_in_a_row_and_never_if_it_runs_once() -> None:
    slow = of_files().sources
    quick = tuple(replace(source, rows_processed_per_second=9_999.0) for source in slow)
    waiting = (replace(slow[0], metrics={"numFilesOutstanding": "3"}), slow[1])
    told = Behind(once=False)
    assert [told("sink_r", batch) for batch in (slow, waiting, quick, slow, slow)] == [[]] * 5
    assert told("sink_s", slow) == []
    assert told("sink_r", waiting) == ["scan_t is behind: 3 files", lag_text(slow[1])]
    assert told("sink_r", quick) == []
    once = Behind(once=True)
    assert [once("sink_r", waiting) for _ in range(5)] == [[]] * 5


def test_sources_that_read_the_same_are_behind_once() -> None:
    told = Behind(once=False)
    source = replace(of_files().sources[0], operator=None, source="org.apache.X$Stream@7b7fa78a")
    assert [told("sink_r", (source, source, source)) for _ in range(3)][-1] == [
        "Stream falls behind: 1,000 rows a second come, 400 are processed"
    ]


def test_a_report_of_a_run_once_tells_nothing_of_falling_behind(capsys: pytest.CaptureFixture[str]) -> None:
    for once in (False, True):
        with open_report(as_json=False, once=once) as report:
            for _ in range(3):
                report.batch(of_files())
        assert ("falls behind" in capsys.readouterr().err) is not once
