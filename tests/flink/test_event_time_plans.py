"""Programs compile to the operators that Flink's planner has, in the same order.

tests/runtime/event_time/test_programs.py has the refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from hintplan.plans.analysis.validate import plan_problems
from tests.runtime.event_time.compiled import plan_of
from tests.runtime.event_time.recorded import RECORDED
from tests.runtime.event_time.verdicts import NOT_BUILT, REFUSED, REFUSED_BY_OURS

PROGRAMS = [name for name in RECORDED if name not in {*REFUSED, *REFUSED_BY_OURS, *NOT_BUILT}]
WITH_NODES = [name for name in PROGRAMS if RECORDED[name].get("nodes")]

_UNREAD = "no operator goes by the watermark, so it is left out"
DIFFERENT = {
    "interval join, one bound only": _UNREAD,
    "interval join, semi": _UNREAD,
    "deduplicate, last by rowtime": _UNREAD,
    "over, by a column that is no time": _UNREAD,
    "over, by a column that is no time, over changes": _UNREAD,
    "top-n by rowtime": _UNREAD,
    "sort by rowtime, limit": f"a sort with a limit is a rank; {_UNREAD}",
    "on conflict do deduplicate": f"the sink has a node of its own; {_UNREAD}",
    "watermarks pushed into the source": "the watermark is an operator, whatever the source can do",
    "temporal join, versioned view": "all versions are read, below the deduplicate",
    "temporal join, view of the last rows by processing time": "all versions are read, below the deduplicate",
    "temporal join, versions from a changelog": "the join itself drops -U rows",
    "nexmark q7": "Flink reads one scan of a table twice; here each reader has its own columns",
}
"""Programs with other operators than Flink's, or in another order, each with its reason."""

# Nodes of Flink that move rows or collect them, and so are no operators here.
MOVING = ("exchange", "mini-batch-assigner", "calc")
RENAMED = {
    "table-source-scan": "scan",
    "group-aggregate": "aggregate",
    "group-window-aggregate": "window-aggregate",
}


def nodes_of(program: dict[str, Any]) -> Iterator[str]:
    """Yield the operators that correspond to Flink's nodes: local and global aggregates are one."""
    for node in program["nodes"]:
        name = re.sub(r"^stream-exec-|_\d+$", "", node)
        if name not in MOVING and not name.startswith("local-"):
            yield RENAMED.get(name, name).removeprefix("global-")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_has_no_problem(name: str) -> None:
    assert not plan_problems(plan_of(name))


@pytest.mark.parametrize("name", WITH_NODES)
def test_a_program_has_the_operators_of_flink_in_the_same_order(name: str) -> None:
    operators = [operator.op for operator in plan_of(name).operators if operator.op != "calc"]
    assert (operators == list(nodes_of(RECORDED[name]))) == (name not in DIFFERENT)


def test_every_difference_has_a_recorded_plan() -> None:
    assert DIFFERENT.keys() <= {*WITH_NODES}
