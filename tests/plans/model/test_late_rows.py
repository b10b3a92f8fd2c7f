"""Tables for late rows: a setting of the watermark, from which operators follow that no plan file contains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.analysis.late_rows import carried_columns, edges_with_late_rows
from hintplan.plans.analysis.streaming_queries import queries
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.checkpoint.report import check_text
from hintplan.plans.commands.diff import FORMATS
from hintplan.plans.compare.carryover import continued_states
from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.model.plan import Plan
from tests.plans.in_process import hintplan as command

SETTING = "watermark_bids.watermark.late-rows.target"
TABLES = """
CREATE TABLE bids (auction BIGINT, price BIGINT, note STRING, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'path' = 'b', 'format' = 'json'{option});
CREATE TABLE late_bids (auction BIGINT, price BIGINT, note STRING, at TIMESTAMP(3), operator STRING,
                        watermark TIMESTAMP_LTZ(3))
WITH ('connector' = 'filesystem', 'path' = 'late', 'format' = 'json');
CREATE TABLE other (auction BIGINT, price BIGINT, note STRING, at TIMESTAMP(3), operator STRING,
                    watermark TIMESTAMP_LTZ(3))
WITH ('connector' = 'filesystem', 'path' = 'other', 'format' = 'json');
CREATE TABLE counts (auction BIGINT, w TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:c', 'table-name' = 'c');
CREATE TABLE plain (auction BIGINT, price BIGINT) WITH ('connector' = 'print');
"""
HOURS = """
INSERT INTO counts
SELECT auction, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), INTERVAL '1' HOUR))
GROUP BY auction, window_start, window_end;
"""
DAYS = HOURS.replace("HOUR", "DAY").replace("auction,", "price,")


def compiled(target: str | None = "late_bids", inserts: str = HOURS) -> Plan:
    option = "" if target is None else f", 'late-rows.target' = '{target}'"
    return hintplan.compile_sql(TABLES.format(option=option) + inserts, name="job")


def with_table(plan: Plan, name: str) -> Plan:
    """``plan`` with a table that somebody has written into its file."""
    document = json.loads(dumps(plan))
    document["tables"][name] = json.loads(dumps(compiled(name)))["tables"][name]
    return loads(json.dumps(document))


def ids(plan: Plan) -> list[str]:
    return [operator.id for operator in plan.operators]


def test_the_operators_that_write_late_rows_are_not_in_the_file() -> None:
    plan = compiled()
    assert ids(plan)[-2:] == ["late_rows", "sink_late_bids"]
    document = json.loads(dumps(plan))
    assert [operator["id"] for operator in document["operators"]] == ids(plan)[:-2]
    assert document["operators"][1]["watermark"]["late-rows.target"] == "late_bids"
    assert loads(dumps(plan)) == plan
    assert plan_problems(plan) == ()


def test_a_plan_whose_late_rows_fit_no_table_is_explained_and_refused(tmp_path: Path) -> None:
    text = dumps(compiled()).replace(b'{ "name": "note", "type": "STRING" }', b'{ "name": "other", "type": "STRING" }')
    parts = text.split(b'"late_bids": {')
    assert b'"other"' in parts[1]
    (tmp_path / "plan.json").write_bytes(dumps(compiled()).split(b'"late_bids": {')[0] + b'"late_bids": {' + parts[1])
    explained = command("explain", "plan.json", "--allow-fact-edits", folder=tmp_path)
    assert (explained.returncode, explained.stderr) == (0, ""), explained.stderr
    refused = command("validate", "plan.json", "--allow-fact-edits", folder=tmp_path)
    assert "late rows cannot go to 'late_bids': its column 'other' is not in 'bids'" in refused.stderr


def test_the_target_is_no_fact() -> None:
    plain, late = (json.loads(dumps(compiled(target)))["digests"] for target in (None, "late_bids"))
    for kind in ("operators", "tables"):
        assert late[kind] == plain[kind]


def test_a_plan_without_a_target_has_no_trace_of_it() -> None:
    assert b"late" not in dumps(compiled(None))


def test_a_row_is_carried_from_the_scan_to_the_operator_that_may_drop_it() -> None:
    plan = compiled()
    (carried,) = carried_columns(plan).values()
    assert [column.name for column in carried] == ["auction", "price", "note", "at"]
    assert edges_with_late_rows(plan) == dict.fromkeys(("scan_bids", "watermark_bids"), ("scan_bids",))
    assert carried_columns(compiled(None)) == edges_with_late_rows(compiled(None)) == {}


def test_an_edit_removes_the_target_and_puts_another_in_its_place() -> None:
    plan = compiled()
    off, _ = set_value(plan, SETTING, "none")
    assert ids(off) == ids(compiled(None))
    assert loads(dumps(off)) == off
    on, _ = set_value(off, SETTING, "late_bids")
    assert on == plan
    another, _ = set_value(with_table(off, "other"), SETTING, "other")
    assert ids(another)[-2:] == ["late_rows", "sink_other"]
    assert loads(dumps(another)) == another
    without, _ = remove_value(plan, "tables.bids.options.late-rows.target")
    assert ids(without) == ids(compiled(None))


def test_an_edit_adds_a_target_to_a_plan_that_has_none_with_a_table_that_is_written_into_the_file() -> None:
    plan, _ = set_value(with_table(compiled(None), "late_bids"), SETTING, "late_bids")
    assert ids(plan)[-2:] == ["late_rows", "sink_late_bids"]
    read = loads(dumps(plan))
    assert read == plan
    assert plan_problems(read) == ()


def test_a_target_that_is_unknown_is_refused_where_it_is_written() -> None:
    plan, _ = set_value(compiled(), SETTING, "late_bid")
    (problem,) = plan_problems(plan)
    assert problem.path == f"operators.{SETTING}"
    assert problem.message == "late rows cannot go to 'late_bid': there is no table 'late_bid'"
    assert problem.hint == "did you mean 'late_bids'?"
    with pytest.raises(PlanError, match="there is no table 'late_bid'"):
        loads(dumps(plan))


def test_windows_with_one_target_are_one_query() -> None:
    (query,) = queries(compiled(inserts=HOURS + DAYS))
    assert query.sinks == ("sink_counts", "sink_counts_in_counts", "sink_late_bids")
    assert len(queries(compiled(None, inserts=HOURS + DAYS))) == 2


def begun(query: QueryRecord) -> QueryRecord:
    """``query`` once Spark has started it, and has numbered its sources."""
    read = (source.operator for source in query.sources for _ in range(source.places))
    return replace(query, begun=True, order=tuple((name, number) for number, name in enumerate(read)))


def started(*plans: Plan) -> CheckpointRecord:
    """The record after runs of ``plans``, as the checkpoint gives it back."""
    lines: list[str] = []
    for plan in plans:
        before = parse_record(lines, "ck")
        record = record_after(continuation(before, plan, partitions=2), before, plan, partitions=2, spark="4.1.0")
        assert record is not None
        lines.append(record_line(replace(record, queries=tuple(map(begun, record.queries)))))
    read = parse_record(lines, "ck")
    assert read is not None
    return read


def test_a_target_joins_the_query_that_runs_and_keeps_its_state() -> None:
    record = started(compiled(None))
    found = continuation(record, compiled())
    (query,) = found.queries
    assert (query.id, query.sinks) == ("sink_counts", ("sink_counts", "sink_late_bids"))
    # The sink that was alone keeps its identity, under which it knows the batches that it has written.
    assert [query.part_called(name) for name in query.called] == ["", "/sink_late_bids"]
    (verdict,) = found.verdicts
    assert verdict.outcome == "continues"
    assert [state.outcome for state in verdict.states] == ["carries over"]
    assert not found.loses


def test_a_target_leaves_a_query_without_consent_and_comes_back() -> None:
    with_late = started(compiled(None), compiled())
    (record,) = with_late.queries
    assert record.late == ("sink_late_bids",)
    assert not continuation(with_late, compiled(None)).loses
    assert not continuation(with_late, compiled("other")).loses
    without = started(compiled(None), compiled(), compiled(None))
    assert not without.queries[0].late
    found = continuation(without, compiled())
    assert found.queries[0].called == ("sink_counts", "sink_late_bids")
    assert not found.loses


TWO_SCANS, ONE_SCAN = HOURS + DAYS, HOURS + HOURS.replace("HOUR", "DAY")


@pytest.mark.parametrize("inserts", [TWO_SCANS, ONE_SCAN])
def test_a_window_that_another_query_computes_too_is_new_there_and_goes_without_consent(inserts: str) -> None:
    """The query that gets the target computes the window of the other one only for its late rows."""
    plain, with_late = compiled(None, inserts=inserts), compiled(inserts=inserts)
    running = started(plain)
    found = continuation(running, with_late)
    first, second = found.verdicts
    assert [sink for sink, _ in first.writes] == ["sink_counts", "sink_late_bids"]
    assert [(state.operator, state.outcome, state.late) for state in first.states] == [
        ("window_bids", "carries over", False),
        ("window_bids_in_counts", "new", True),
    ]
    assert [source.outcome for source in first.sources] == ["new"] * (inserts == TWO_SCANS)
    assert [(state.operator, state.outcome, state.late) for state in second.states] == [
        ("window_bids_in_counts", "carries over", False)
    ]
    said = (
        "  window_bids_in_counts          new            only to write its late rows, another query writes its results"
    )
    assert said in check_text(found, running, with_late).splitlines()
    assert not found.loses
    back = continuation(started(plain, with_late), plain)
    assert not back.loses
    assert [state.outcome for verdict in back.verdicts for state in verdict.states] == ["carries over"] * 2


def test_results_are_not_made_of_a_state_that_was_only_kept_for_late_rows() -> None:
    """Such a state may have begun later than its query."""
    results = StateRecord(operator="window_bids", lineage="a")
    only_late = replace(results, late=True)
    assert continued_states([only_late], [results]) == {}
    assert continued_states([results], [only_late]) == {"window_bids": results}
    assert continued_states([only_late], [only_late]) == {"window_bids": only_late}


def test_a_new_checkpoint_names_the_query_after_the_operator_and_keeps_it_so() -> None:
    record = started(compiled())
    (query,) = continuation(record, compiled(None)).queries
    assert (query.id, query.sinks) == ("window_bids", ("sink_counts",))


def test_a_target_in_another_directory_gets_another_name_in_the_checkpoint() -> None:
    record = started(compiled(None), compiled(), compiled(None))
    moved = replace(compiled(), name="job")
    table = moved.tables["late_bids"]
    moved = replace(
        moved, tables={**moved.tables, "late_bids": replace(table, options={**table.options, "path": "elsewhere"})}
    )
    found = continuation(record, moved)
    assert found.queries[0].called == ("sink_counts", "sink_late_bids_2")
    assert [(verdict.outcome, verdict.because) for verdict in found.verdicts] == [("continues", "")]


def test_a_record_without_late_rows_is_written_as_before() -> None:
    assert "late" not in record_line(started(compiled(None)))


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize(("before", "after"), [(None, "late_bids"), ("late_bids", None), ("late_bids", "other")])
def test_an_edit_of_the_table_is_compared_in_each_format_and_at_its_line(
    tmp_path: Path, layout: str, before: str | None, after: str | None
) -> None:
    """The operators that write late rows have no line, because no file contains them."""
    plan = with_table(with_table(compiled(None), "late_bids"), "other")
    for name, target in (("a.json", before), ("b.json", after)):
        edited = plan if target is None else set_value(plan, SETTING, target)[0]
        (tmp_path / name).write_bytes(dumps(edited))
    done = command("diff", "a.json", "b.json", "--format", layout, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "late" in done.stdout
    if layout == "junit" and after is not None:
        lines = (tmp_path / "b.json").read_text().split("\n")
        line = next(number for number, text in enumerate(lines, 1) if '"late-rows.target"' in text)
        assert f'name="{SETTING}" classname="hintplan.diff-restart" file="b.json" line="{line}"' in done.stdout
