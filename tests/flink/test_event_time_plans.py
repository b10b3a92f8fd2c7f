"""Programs of windows compile to the operators that Flink's planner has, or are refused where Flink refuses them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.errors import SqlError
from tests.runtime.event_time.compiled import plan_of
from tests.runtime.event_time.recorded import RECORDED

KINDS = ("tumble", "hop", "cumulate", "session", "LTZ", "window", "union", "TIMESTAMP, days", "nexmark", "aggregate of")
PROGRAMS = [name for name in RECORDED if name.startswith(KINDS)]

# Flink plans these, or fails only when a row comes.
REFUSED_HERE = {
    "session over changes": "SESSION over rows that can change is not supported",
    "session over changes, the first row goes": "SESSION over rows that can change is not supported",
    "session over changes, the bridge goes": "SESSION over rows that can change is not supported",
    "tumble, processing time": "windows of processing time are not supported",
    "hop, processing time": "windows of processing time are not supported",
    "cumulate, processing time": "windows of processing time are not supported",
    "tumble, allowed lateness only": "unknown configuration key 'table.exec.emit.allow-lateness'",
}
COMPILED_HERE = {
    "tumble, NULL time",  # the run fails, as in Flink
    "tumble, STATE_TTL hint",  # the hint gets a warning, or an error with strict hints
}
# Flink reads one scan of a table twice in a plan; here each reader has its own columns.
SCANNED_TWICE = {"nexmark q7": 1}
# Nodes of Flink that move rows or collect them, and so are no operators here.
MOVING = ("exchange", "mini-batch-assigner", "calc")
RENAMED = {"table-source-scan": "scan", "group-aggregate": "aggregate"}


def nodes_of(program: dict[str, Any]) -> Iterator[str]:
    """Yield the operators that correspond to Flink's nodes: local and global aggregates are one."""
    for node in program["nodes"]:
        name = re.sub(r"^stream-exec-|_\d+$", "", node)
        if name not in MOVING and not name.startswith("local-"):
            yield RENAMED.get(name, name).removeprefix("global-")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_operators_of_flink(name: str) -> None:
    program = RECORDED[name]
    if name in REFUSED_HERE or (program.get("error") and name not in COMPILED_HERE):
        with pytest.raises(SqlError) as caught:
            plan_of(name)
        found = caught.value.diagnostics
        assert all(each.line is not None and each.column is not None and each.hint for each in found)
        assert REFUSED_HERE.get(name, "") in found[0].message
        return
    plan = plan_of(name)
    assert not plan_problems(plan)
    if not program.get("nodes"):
        return
    wanted = Counter(nodes_of(program))
    wanted["scan"] += SCANNED_TWICE.get(name, 0)
    assert Counter(operator.op for operator in plan.operators if operator.op != "calc") == wanted
