"""A run that watches its plan applies an edit or refuses it, as each setting declares; queries are simulated.

The table of settings is written by hand: TTLs, caches, retries, asynchronous calls and the rows of a key may change in
a running job, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import hintplan
from hintplan.plans.checkpoint.continuation import continuation, record_after, record_of_begun
from hintplan.plans.checkpoint.live_edit import needing_start, plan_of_begun_batch
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.checkpoint.report import Start as ReportedStart
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.files.codec import dump, fingerprint
from hintplan.plans.model.config import KEYS
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import plan_settings, setting_at
from hintplan.plans.operators import KINDS
from hintplan.plans.settings.calls import CALL_GROUPS
from hintplan.plans.settings.setting import Setting, value_text
from hintplan.plans.settings.state import TTL
from hintplan.runtime.inspect.checked import CheckResult
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.live_edits import watched_file
from hintplan.runtime.run.starting import Start
from hintplan.runtime.running import PlanEdit, batches_text
from tests.plans.compare.test_effects import SAMPLES
from tests.runtime.run.test_driven_drains import Query

MOMENTS = {
    "ttl": "next batch",
    "max-rows-per-key": "next batch",
    "async": "at once",
    "retry": "at once",
    "cache": "at once",
    "phases": "at start",
    "watermark": "at start",
    "emit": "at start",
    "cached": "at start",
}
SETTINGS = [
    *((group.name, setting) for kind in KINDS for group in kind.groups for setting in group.settings.values()),
    *((group.name, setting) for group in CALL_GROUPS for setting in group.settings.values()),
    ("ttl", TTL),
]
PAID = (
    "CREATE TABLE o (id INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');"
    "CREATE TABLE p (id INT, m STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'p');"
    "CREATE TABLE r (id INT, m STRING) WITH ('connector' = 'blackhole');"
    "INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, p.m FROM o JOIN p ON o.id = p.id{where};"
)
LEFT = "join_o_p.state.leftState.ttl"


def paid(where: str = "") -> Plan:
    return hintplan.compile_sql(PAID.format(where=where), name="paid")


def first(plan: Plan) -> CheckpointRecord:
    """Return the record of a new checkpoint before the first batch of ``plan``."""
    record = record_after(continuation(None, plan), None, plan, partitions=4, spark="4.3.0")
    assert record is not None
    return record


def recorded(plan: Plan) -> CheckpointRecord:
    """Return the record of a checkpoint on which ``plan`` has run."""
    begun = record_of_begun(first(plan))
    assert begun is not None
    return begun


class Run:
    """A run of ``plan`` that watches ``path``; a batch ends between two looks, and each look is half a second later."""

    def __init__(self, path: Path, plan: Plan, refuses: str = "") -> None:
        dump(plan, path)
        self.path, self.record, self.refuses, self.batch, self.now = path, recorded(plan), refuses, 41, 0.0
        self.started: list[Plan] = [plan]
        self.edits = watched_file(str(path))
        self.edits.clock = lambda: self.now
        self.edits.begin(plan, cast(Start, Simulated(self)))
        self.execution = Execution(
            queries=cast(Any, {"r": Query(1000)}), checkpoint="c", temporary=False, partitions=1, edits=self.edits
        )

    def looks(self, number: int = 4) -> list[PlanEdit]:
        for _ in range(number):
            self.now += 0.5
            self.batch += 1
            assert self.execution.active
        return self.edits.news()

    def edit(self, plan: Plan) -> PlanEdit:
        dump(plan, self.path)
        (edit,) = self.looks()
        return edit


class Simulated:
    """Starts queries that never end."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def record_of(self) -> CheckpointRecord:
        return self.run.record

    record = record_of

    def refuse_unbuildable(self, plan: Plan) -> None:
        if self.run.refuses:
            raise RunError(self.run.refuses)

    def continue_with(self, execution: Execution, plan: Plan) -> None:
        self.run.started.append(plan)
        execution.queries = cast(Any, {"r": Query(1000)})
        self.run.edits.begun(plan, {"r": self.run.batch + 1})


@pytest.mark.parametrize(("group", "setting"), SETTINGS, ids=lambda value: getattr(value, "name", value))
def test_every_setting_that_there_is_says_when_a_running_job_uses_it(group: str, setting: Setting) -> None:
    effects = {setting.effect, setting.shortened or setting.effect}
    assert {effect.live for effect in effects} == {MOMENTS[group]}


def test_no_other_key_of_the_configuration_changes_in_a_running_job() -> None:
    of_settings = {setting.config for _, setting in SETTINGS}
    others = {name: key.effect.live for name, key in KEYS.items() if key.config not in of_settings and not key.sets}
    changing = {name for name, live in others.items() if live != "at start"}
    assert changing <= {"table.exec.state.ttl"} | {n for n in KEYS if n.startswith("table.exec.async-")}


def others(setting: PlanSetting) -> Iterator[str]:
    """Texts of other values, of which some are valid."""
    value = setting.value
    yield from ("7 min", "12 d", "true", "false", "11:15Z", "a.B", "none")
    yield from (str(value + 1),) if isinstance(value, int) else ("17",)
    yield from setting.setting.offered if setting.setting is not None else ()


def edits_of_samples() -> Iterator[tuple[str, PlanSetting, Plan, Plan]]:
    """Each setting of each sample plan with two other values that are valid."""
    for path in SAMPLES:
        plan = hintplan.load(path)
        for setting in plan_settings(plan) if plan.mode == "streaming" else ():
            edited = []
            for text in others(setting):
                try:
                    after, changes = set_value(plan, setting.path, text)
                except PlanError:
                    continue
                if changes and after not in edited:
                    edited.append(after)
            for after in edited[:2]:
                yield path.stem, setting, plan, after


def test_each_setting_of_a_plan_is_applied_or_refused_as_it_declares(tmp_path: Path) -> None:
    groups = set()
    for name, setting, before, after in edits_of_samples():
        group = "ttl" if setting.state else setting.group
        changes = compare_plans(before, after)
        refused = bool(needing_start(changes))
        if group in MOMENTS and not any(change.effect.level == "drop" for change in changes):
            assert refused == (MOMENTS[group] == "at start") or "mode" in setting.path, (name, setting.path)
        if group in groups:
            continue
        groups.add(group)
        run = Run(tmp_path / "plan.json", before)
        edit = run.edit(after)
        if refused:
            assert edit.refusal is not None
            assert edit.digest == fingerprint(before)
            assert run.started == [before]
        else:
            assert run.started == [before, after]
            assert edit.digest == fingerprint(after)
            assert edit.batches == {"r": run.batch - 1} or set(edit.batches) == {"r"}
    assert {"ttl", "async", "retry", "cache", "name", "config", "options"} <= groups


def test_an_edit_is_told_once_with_the_batch_from_which_it_is_in_force(tmp_path: Path) -> None:
    before = paid()
    after, _ = set_value(before, LEFT, "6 h")
    run = Run(tmp_path / "paid.json", before)
    assert run.looks() == []
    edit = run.edit(after)
    (batch,) = edit.batches.values()
    assert edit.text == f"{run.path} changed: {LEFT} 1 d → 6 h, from batch {batch}, digest {fingerprint(after)}"
    assert run.looks() == []
    run.path.write_bytes(run.path.read_bytes().replace(b"\n", b"\n\n"))
    assert run.looks() == [], "another layout is no edit"
    assert run.edit(before).changes == (f"{LEFT} 6 h → 1 d",)
    assert run.started == [before, after, before]


def test_a_half_written_file_is_not_judged(tmp_path: Path) -> None:
    before = paid()
    after, _ = set_value(before, LEFT, "6 h")
    run = Run(tmp_path / "paid.json", before)
    run.looks()
    run.path.write_bytes(run.path.read_bytes()[:100])
    assert run.looks(1) == []
    assert run.edit(after).refusal is None


def test_a_broken_file_is_refused_once_and_read_again_when_it_is_mended(tmp_path: Path) -> None:
    before = paid()
    after, _ = set_value(before, LEFT, "6 h")
    run = Run(tmp_path / "paid.json", before)
    run.looks()
    run.path.write_text("{")
    with pytest.raises(PlanError) as error:
        hintplan.load(run.path)
    (edit,) = run.looks(10)
    assert edit.refusal == str(error.value)
    assert edit.text.splitlines()[-1] == f"the run continues with digest {fingerprint(before)}"
    run.path.unlink()
    with pytest.raises(PlanError) as error:
        hintplan.load(run.path)
    (edit,) = run.looks(10)
    assert edit.refusal == str(error.value)
    again = run.edit(before)
    assert again.text == f"{run.path} has the plan of the run again, digest {fingerprint(before)}"
    assert run.started == [before]
    assert run.edit(after).changes == (f"{LEFT} 1 d → 6 h",)


def test_a_changed_fact_is_refused_with_the_words_of_validate(tmp_path: Path) -> None:
    run = Run(tmp_path / "paid.json", paid())
    run.looks()
    run.path.write_text(run.path.read_text().replace('"join-type": "inner"', '"join-type": "left"'))
    with pytest.raises(PlanError) as error:
        hintplan.load(run.path)
    assert "join" in str(error.value)
    (edit,) = run.looks()
    assert edit.refusal == str(error.value)


def test_another_query_is_refused_with_the_words_of_check(tmp_path: Path) -> None:
    before, after = paid(), paid(" WHERE p.m <> 'x'")
    run = Run(tmp_path / "paid.json", before)
    edit = run.edit(after)
    report = CheckResult(
        plan=after,
        checkpoint="c",
        continuation=continuation(run.record, after),
        record=run.record,
        spark=None,
        missing="",
        start=ReportedStart(at=0),
    ).text()
    assert edit.refusal is not None
    head, _, words = edit.refusal.partition("\n")
    assert head.endswith(" cannot change while the job runs:")
    assert words == report
    assert "starts empty" in words
    assert run.started == [before]


def test_an_edit_that_cannot_be_built_is_refused(tmp_path: Path) -> None:
    before = paid()
    run = Run(tmp_path / "paid.json", before, refuses="there is no class a.B")
    assert run.edit(set_value(before, LEFT, "6 h")[0]).refusal == "there is no class a.B"
    assert run.started == [before]


def test_a_run_that_restarts_takes_the_newest_plan_that_it_may(tmp_path: Path) -> None:
    before = paid()
    after, _ = set_value(before, LEFT, "6 h")
    run = Run(tmp_path / "paid.json", before)
    assert run.edits.newest() == before
    dump(set_value(before, "config.parallelism.default", "3")[0], run.path)
    assert run.edits.newest() == before
    dump(after, run.path)
    assert run.edits.newest() == after
    run.edits.begin(after, cast(Start, Simulated(run)))
    run.edits.begun(after, {"r": 7})
    assert [edit.batches for edit in run.edits.news() if edit.refusal is None] == [{"r": 7}]
    assert run.edits.plan == after


def test_a_stopped_run_starts_no_edited_plan(tmp_path: Path) -> None:
    before = paid()
    for stop in (Execution.stop, Execution.stop_between_batches):
        run = Run(tmp_path / "paid.json", before)
        run.looks()
        dump(set_value(before, LEFT, "6 h")[0], run.path)
        stop(run.execution)
        for _ in range(4):
            run.now += 0.5
            assert not run.execution.active
        assert run.started == [before]


def test_the_record_says_from_which_batch_a_plan_ran() -> None:
    before = paid()
    after, _ = set_value(before, LEFT, "6 h")
    begun = recorded(before)
    assert '"since"' not in record_line(begun)
    reached = {"r": 42}
    edited = record_after(continuation(begun, after), begun, after, partitions=4, spark="4.3.0", reached=reached)
    assert edited is not None
    assert edited.since == (("r", 42),)
    assert parse_record([record_line(record) for record in (first(before), begun, edited)], "c") == edited
    again = record_after(continuation(edited, after), edited, after, partitions=4, spark="4.3.0", reached={"r": 50})
    assert again is None, "the plan has run from batch 42"


def test_a_repeated_batch_keeps_what_it_computes_by_and_not_how_it_asks() -> None:
    checked = set()
    for name, setting, before, after in edits_of_samples():
        if needing_start(compare_plans(before, after)):
            continue
        group = "ttl" if setting.state else setting.group
        repeated = plan_of_begun_batch(before, after)
        kept = MOMENTS.get(group) == "next batch"
        expected = before if kept else after
        was, now = setting_at(expected, setting.path), setting_at(repeated, setting.path)
        assert was is not None, name
        assert now is not None, name
        assert value_text(was.value) == value_text(now.value), (name, setting.path)
        checked.add(group)
    assert {"ttl", "async", "cache"} <= checked


def test_batches_are_told_by_query_where_they_differ() -> None:
    numbers: Mapping[str, int] = {"paid": 3, "late": 4, "all": 5}
    assert batches_text(numbers) == "from batch 3 of paid, 4 of late and 5 of all"


def test_a_plan_that_is_not_in_a_file_cannot_be_watched() -> None:
    for given, words in ((paid(), "this plan has none"), ("-", "read once"), ("git:main:plan.json", "read once")):
        with pytest.raises(RunError, match=words):
            watched_file(cast(Any, given))
