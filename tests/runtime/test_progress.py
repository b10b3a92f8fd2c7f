"""What batches say of the state of operators, as Spark's progress has it."""

from __future__ import annotations

from types import SimpleNamespace

from runtime.progress import OperatorProgress, batch_progress

PARTITIONS = 2


class Observed:
    def __init__(self, **metrics: int) -> None:
        self._metrics = metrics

    def asDict(self) -> dict[str, int]:
        return self._metrics


def operators(before: dict[str, OperatorProgress], **metrics: int) -> dict[str, OperatorProgress]:
    none = dict.fromkeys(
        ("rows_in", "rows_out", "state_rows", "state_bytes", "state_rows_delta", "state_bytes_delta"), 0
    )
    progress = SimpleNamespace(
        numInputRows=0,
        sources=(),
        batchId=7,
        timestamp="t",
        durationMs={},
        observedMetrics={"join_o_c": Observed(**{**none, **metrics})},
    )
    return dict(batch_progress("sink_r", progress, before, PARTITIONS).operators)


def test_without_data_since_the_start_of_a_run_nothing_is_said_of_state_that_is_there() -> None:
    assert operators({}, reports=0) == {}
    assert operators({}, reports=1, state_rows=3, state_rows_delta=-1) == {}


def test_all_partitions_say_what_is_there_and_fewer_what_has_changed() -> None:
    whole = operators({}, reports=PARTITIONS, state_rows=9, state_bytes=90, rows_in=2)
    assert whole == {"join_o_c": OperatorProgress(rows_in=2, rows_out=0, state_rows=9, state_bytes=90)}
    part = operators(whole, reports=1, state_rows=1, state_rows_delta=-4, state_bytes_delta=-40, rows_out=1)
    assert part == {"join_o_c": OperatorProgress(rows_in=0, rows_out=1, state_rows=5, state_bytes=50)}


def test_what_a_kind_of_operators_counts_besides_stands_apart() -> None:
    (found,) = operators({}, reports=PARTITIONS, state_rows=9, rows_passed_over=4).values()
    assert found == OperatorProgress(state_rows=9, counts={"rows_passed_over": 4})
