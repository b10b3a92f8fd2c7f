"""Which sink continues as which: by what an ``INSERT`` means, whatever its place among those into the same table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import hintplan
from hintplan.plans.checkpoint.continuation import Continuation, continuation, record_after
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.checkpoint.report import check_text
from hintplan.plans.compare.sinks import continued_sinks
from hintplan.plans.model.plan import Plan

TABLES = """
CREATE TABLE o (k BIGINT, w BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE alerts (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
"""
COUNTS, SUMS = "SELECT k, COUNT(*) FROM o GROUP BY k", "SELECT k, SUM(w) FROM o GROUP BY k"
LEAST, MOST = "SELECT k, MIN(w) FROM o GROUP BY k", "SELECT k, MAX(w) FROM o GROUP BY k"
PLAIN, POSITIVE = "SELECT k, w FROM o", "SELECT k, w FROM o WHERE w > 0"
BOTH = "SELECT k, COUNT(*) FROM (SELECT k, w FROM o GROUP BY k, w) AS t GROUP BY k"
BOTH_SUMMED = "SELECT k, SUM(w) FROM (SELECT k, w FROM o GROUP BY k, w) AS t GROUP BY k"
FIRST, SECOND, THIRD = "sink_alerts", "sink_alerts_in_alerts", "sink_alerts_in_alerts_2"


def compiled(*queries: str) -> Plan:
    return hintplan.compile_sql(TABLES + "".join(f"INSERT INTO alerts {query};" for query in queries), name="job")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([COUNTS, SUMS], [COUNTS, SUMS], {FIRST: FIRST, SECOND: SECOND}, id="the same"),
        pytest.param([COUNTS, SUMS], [MOST, COUNTS, SUMS], {SECOND: FIRST, THIRD: SECOND}, id="one more before"),
        pytest.param([COUNTS, SUMS], [COUNTS, MOST, SUMS], {FIRST: FIRST, THIRD: SECOND}, id="one more between"),
        pytest.param([MOST, COUNTS, SUMS], [COUNTS, SUMS], {FIRST: SECOND, SECOND: THIRD}, id="the first one less"),
        pytest.param([COUNTS, SUMS], [SUMS, COUNTS], {FIRST: SECOND, SECOND: FIRST}, id="the other way round"),
        pytest.param([COUNTS, COUNTS], [MOST, COUNTS, COUNTS], {SECOND: SECOND, THIRD: FIRST}, id="two that are equal"),
        pytest.param([PLAIN, POSITIVE], [SUMS, PLAIN, POSITIVE], {SECOND: FIRST, THIRD: SECOND}, id="without state"),
        pytest.param([COUNTS], [f"{COUNTS} HAVING COUNT(*) > 1"], {FIRST: FIRST}, id="a filter above"),
        pytest.param(
            [COUNTS, SUMS],
            [MOST, f"{COUNTS} HAVING COUNT(*) > 1", SUMS],
            {SECOND: FIRST, THIRD: SECOND},
            id="one more, and a filter above",
        ),
        pytest.param(
            [BOTH, COUNTS], [MOST, BOTH_SUMMED, COUNTS], {SECOND: FIRST, THIRD: SECOND}, id="one of two states is kept"
        ),
        pytest.param([COUNTS], [MOST], {FIRST: FIRST}, id="another, in its place"),
        pytest.param([COUNTS, SUMS], [COUNTS, MOST], {FIRST: FIRST, SECOND: SECOND}, id="another in the second place"),
        pytest.param([COUNTS, SUMS], [SUMS, MOST], {FIRST: SECOND}, id="one gone, another new"),
    ],
)
def test_the_origin_of_a_sink(before: Sequence[str], after: Sequence[str], expected: dict[str, str]) -> None:
    assert continued_sinks(compiled(*before), compiled(*after)) == expected


def ran(plans: Sequence[Plan], *, share: bool) -> tuple[Continuation, CheckpointRecord]:
    """How the last of ``plans`` continues where the others ran one by one, and what the checkpoint then says."""
    record, lines = None, []
    for plan in plans:
        found = continuation(record, plan, share=share, partitions=2)
        record = record_after(found, record, plan, partitions=2, spark="4.3.0") or record
        assert record is not None
        lines += [record_line(record)] if record_line(record) not in lines else []
    assert parse_record(lines, "c") == record
    assert record is not None
    return found, record


def queries_of(record: CheckpointRecord) -> dict[str, tuple[list[str], list[str]]]:
    """Of each query the sinks, and the places of its states."""
    return {
        query.id: (list(query.sinks), [state.place for state in query.states])
        for query in record.queries
        if not query.parked
    }


@pytest.mark.parametrize("share", [True, False], ids=["classic", "Spark Connect"])
def test_inserts_around_others_leave_each_its_query_and_its_state(share: bool) -> None:
    started, more, fewer = compiled(COUNTS, SUMS), compiled(MOST, COUNTS, LEAST, SUMS), compiled(LEAST, COUNTS)
    found, record = ran([started, more], share=share)
    assert not found.loses
    assert queries_of(record) == {
        "sink_alerts": ([SECOND], ["aggregate_o.1"]),
        "sink_alerts_in_alerts": (["sink_alerts_in_alerts_3"], ["aggregate_o_in_alerts.1"]),
        "sink_alerts_2": ([FIRST], ["aggregate_o.2"]),
        "sink_alerts_in_alerts_2": ([THIRD], ["aggregate_o_in_alerts_2.2"]),
    }
    assert check_text(found, record, more).splitlines()[2:-3] == [
        "sink_alerts_in_alerts            continues      was sink_alerts",
        "  aggregate_o_in_alerts          carries over   was aggregate_o",
        "",
        "sink_alerts_in_alerts_3          continues      was sink_alerts_in_alerts",
        "  aggregate_o_in_alerts_3        carries over   was aggregate_o_in_alerts",
        "",
        "sink_alerts                      new            it has not run on this checkpoint, and reads its sources from "
        "the beginning",
        "  aggregate_o                    new",
        "",
        "sink_alerts_in_alerts_2          new            it has not run on this checkpoint, and reads its sources from "
        "the beginning",
        "  aggregate_o_in_alerts_2        new",
    ]
    assert not any(query.is_shared for query in found.queries)
    again, _ = ran([started, more, more], share=share)
    assert [(query.id, query.sinks) for query in again.queries] == [(query.id, query.sinks) for query in found.queries]
    less, record = ran([started, more, fewer], share=share)
    assert list(queries_of(record).items()) == [
        ("sink_alerts", ([SECOND], ["aggregate_o.1"])),
        ("sink_alerts_in_alerts_2", ([FIRST], ["aggregate_o_in_alerts_2.2"])),
    ]
    assert [verdict.title for verdict in less.verdicts if verdict.outcome == "left behind"] == [
        "sink_alerts_in_alerts",
        "sink_alerts_2",
    ]


def test_sinks_of_one_query_keep_their_names_in_it() -> None:
    """What a sink knows its batches by has its name in the checkpoint, whatever its id becomes."""
    view = "CREATE VIEW sums AS SELECT k, SUM(w) AS n FROM o GROUP BY k;"

    def job(*conditions: str) -> Plan:
        inserts = "".join(f"INSERT INTO alerts SELECT k, n FROM sums WHERE n {one};" for one in conditions)
        return hintplan.compile_sql(TABLES + view + inserts, name="job")

    found, record = ran([job("< 10", "> 90"), job("= 50", "< 10", "> 90")], share=True)
    shared, new = found.queries
    assert (shared.sinks, shared.called, shared.is_shared) == ((SECOND, THIRD), (FIRST, SECOND), True)
    assert (new.sinks, new.id, new.is_shared) == ((FIRST,), "sink_alerts", False)
    (verdict, _) = found.verdicts
    assert verdict.writes == ((SECOND, FIRST), (THIRD, SECOND))
    assert check_text(found, record, job("= 50")).splitlines()[2] == (
        f"{shared.id:<32} continues      {SECOND} was {FIRST}, {THIRD} was {SECOND}"
    )
