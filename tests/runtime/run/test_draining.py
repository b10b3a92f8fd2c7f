"""Which checkpoints were drained, as Spark's logs say, and which runs are refused then."""

from __future__ import annotations

import json

import pytest

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.run.draining import Drained, drained_queries, refuse_drained
from hintplan.runtime.spark.ending import EndingReader

RECORD = CheckpointRecord(
    plan="p", partitions=2, queries=tuple(QueryRecord(id=name, sinks=(name,), sources=(), states=()) for name in "ab")
)
RUNNING = tuple(Query(id=name, sinks=(name,)) for name in "ab")


def offsets(ended: int) -> bytes:
    """A batch in Spark's log: the version, the metadata, a file source, and the source that ends event time."""
    return "\n".join(
        ["v1", '{"batchWatermarkMs":0}', '{"logOffset":3}', json.dumps({"event_time_ended": ended})]
    ).encode()


def files(**logs: tuple[int, int, int]) -> CheckpointFiles:
    """A checkpoint: the last batch that each query has begun, the last that it has committed, and if it was drained."""
    content = {}
    for query, (began, committed, ended) in logs.items():
        content |= {f"{query}/offsets/{n}": offsets(ended if n == began else 0) for n in range(began + 1)}
        content |= {f"{query}/commits/{n}": b"v1\n{}" for n in range(committed + 1)}
    return CheckpointFiles(
        sizes={path: len(data) for path, data in content.items()},
        read=lambda paths: {path: content[path] for path in paths},
    )


def test_a_query_is_drained_when_the_batch_that_ends_event_time_is_committed() -> None:
    assert drained_queries(files(a=(2, 2, 1), b=(2, 1, 1)), RECORD, RUNNING) == Drained(
        drained=frozenset("a"), begun=frozenset("b")
    )
    assert drained_queries(files(a=(2, 2, 0), b=(-1, -1, 0)), RECORD, RUNNING) == Drained()
    assert drained_queries(files(a=(2, 2, 1)), RECORD, RUNNING[1:]) == Drained(), "a plan without the query may go on"
    assert drained_queries(files(), None, RUNNING) == Drained()


@pytest.mark.parametrize(
    ("before", "drain", "message"),
    [
        (Drained(), False, None),
        (Drained(), True, None),
        (Drained(begun=frozenset("a")), True, None),
        (Drained(drained=frozenset("a")), True, None),  # the other query is left
        (Drained(begun=frozenset("a")), False, "is being drained: the last batch of a closes"),
        (Drained(drained=frozenset("a")), False, "was drained: all windows of a are closed"),
        (Drained(drained=frozenset("ab")), True, "was drained: all windows of a and b are closed"),
    ],
)
def test_a_drained_checkpoint_is_refused_unless_a_drain_has_something_left(
    before: Drained, drain: bool, message: str | None
) -> None:
    if message is None:
        refuse_drained(before, "ab", "cp", drain=drain)
        return
    with pytest.raises(RunError, match=f"checkpoint cp {message}"):
        refuse_drained(before, "ab", "cp", drain=drain)


def test_the_source_has_one_batch_when_event_time_ends_and_none_before() -> None:
    before, after = EndingReader(0), EndingReader(1)
    assert before.latestOffset() == before.initialOffset() == after.initialOffset()
    assert len(after.partitions(after.initialOffset(), after.latestOffset())) == 1
    assert list(before.partitions(before.initialOffset(), before.latestOffset())) == []
    assert list(after.read(after.partitions(after.initialOffset(), after.latestOffset())[0])) == []
