"""Queries on a Spark Connect server whose Python is late: which start again, and what a user is told in the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.run.starting import Start, start_query

LATE = "(java.net.SocketTimeoutException) Timed out while waiting for the Python worker to connect back"
START = cast(Start, SimpleNamespace(location="state"))


class Writer:
    """A writer of a stream whose first starts fail with ``errors``, and whose next one returns its number."""

    def __init__(self, *errors: str) -> None:
        self.errors = errors
        self.starts = 0

    def start(self) -> int:
        self.starts += 1
        if self.starts <= len(self.errors):
            raise PySparkException(self.errors[self.starts - 1])
        return self.starts


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_a_query_whose_python_was_late_is_started_again(failed: int) -> None:
    writer = cast(Any, Writer(*[LATE] * failed))
    assert start_query("sink_r", writer, START) == failed + 1


def test_python_that_stays_away_ends_the_run_with_where_to_look() -> None:
    writer = cast(Any, Writer(*[LATE] * 3))
    with pytest.raises(Unavailable) as failure:
        start_query("sink_r", writer, START)
    assert writer.starts == 3
    assert str(failure.value).startswith("the query of sink_r cannot be started: Python did not start within 10 s")
    assert "log of Spark" in str(failure.value)


@pytest.mark.parametrize("error", ["[CONCURRENT_QUERY] x", "[DIVIDE_BY_ZERO] Division by zero", "Connection refused"])
def test_other_failures_are_told_at_once(error: str) -> None:
    writer = cast(Any, Writer(error))
    with pytest.raises(RunError):
        start_query("sink_r", writer, START)
    assert writer.starts == 1
