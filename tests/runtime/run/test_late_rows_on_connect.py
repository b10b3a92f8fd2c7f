"""Spark Connect has no query with several sinks, so a plan that writes late rows is refused there."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.plans.errors import RunError
from hintplan.runtime.run.execute import refuse_late_rows

SCRIPT = """
CREATE TABLE t (a INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json', 'late-rows.target' = '{target}');
CREATE TABLE late (a INT, at TIMESTAMP(3), operator STRING, watermark TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
CREATE TABLE counts (w TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
"""


def test_a_plan_that_writes_late_rows_is_refused_with_a_way_out() -> None:
    with pytest.raises(RunError) as refused:
        refuse_late_rows(hintplan.compile_sql(SCRIPT.format(target="late")))
    (problem,) = refused.value.diagnostics
    assert problem.message == "late rows cannot go to 'late' on Spark Connect: there a query has one sink"
    assert problem.hint == "set late-rows.target to 'none', or run without Spark Connect"
    refuse_late_rows(hintplan.compile_sql(SCRIPT.format(target="none")))
