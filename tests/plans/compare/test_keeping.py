"""State that is kept by consent: of the same layout, with all that it is made of, and told as such from then on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.checkpoint.continuation import Continuation, continuation, record_after, refuse
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.checkpoint.report import Start, check_json, check_text
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.keeping import keepable, kept_text
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import KINDS, Calc, Stateful
from hintplan.plans.operators.calc import SelectItem
from tests.operator_kinds import compiled

pytestmark = pytest.mark.usefixtures("worded_for_commands")

STATEFUL = [kind.op for kind in KINDS if issubclass(kind, Stateful)]

TABLES = """
CREATE TABLE o (id BIGINT, k BIGINT, w BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o');
CREATE TABLE c (k BIGINT, w BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'c');
CREATE TABLE r (id BIGINT, w BIGINT) WITH ('connector' = 'blackhole');
"""
QUERY = """
INSERT INTO r SELECT t.id, c.w FROM (
  SELECT id, k FROM (
    SELECT id, k, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY PROCTIME()) AS n FROM o WHERE w IN (1, 2)
  ) WHERE n = 1
) AS t JOIN c ON t.k = c.k;
"""
DEDUPLICATE, JOIN = "deduplicate_o", "join_t_c"


def job(key: str = "id", *, literals: str = "1, 2", tables: str = TABLES, query: str = QUERY) -> Plan:
    return hintplan.compile_sql(tables + query.format(key=key).replace("(1, 2)", f"({literals})"), name="job")


def tried(*plans: Plan, keep: Collection[str] = ()) -> tuple[Continuation, CheckpointRecord]:
    """How the last of ``plans`` continues where the others have run; it ``keep``s, or else they do."""
    record, lines, found = None, [], continuation(None, plans[0], partitions=2)
    for plan in plans:
        found = continuation(record, plan, partitions=2, keep=keep if record is not None and plan is plans[-1] else ())
        record = record_after(found, record, plan, partitions=2, spark="4.3.0") or record
        assert record is not None
        lines += [line for line in [record_line(record)] if line not in lines]
    assert parse_record(lines, "c") == record
    assert record is not None
    return found, record


def outcomes(found: Continuation) -> dict[str, str]:
    return {state.operator: state.outcome for verdict in found.verdicts for state in verdict.states}


def with_filter_below(plan: Plan, op: str) -> Plan:
    """``plan`` with a filter more below its first operator of the kind ``op``."""
    above = next(operator for operator in plan.operators if operator.op == op)
    below = plan.by_id[above.inputs[0]]
    columns = output_columns(plan)[below.id]
    calc = Calc(
        id="filtered", inputs=(below.id,), filter="1 = 1", select=tuple(SelectItem(name=c.name) for c in columns)
    )
    changed = replace(above, inputs=("filtered", *above.inputs[1:]))
    return replace(
        plan,
        operators=tuple(each for one in plan.operators for each in ((calc, changed) if one is above else (one,))),
    )


@pytest.mark.parametrize("op", STATEFUL)
def test_state_of_every_kind_may_be_kept_above_another_filter(op: str, tmp_path: Path) -> None:
    before = compiled(tmp_path, op)
    after = with_filter_below(before, op)
    wanted = {operator.id for operator in before.operators if operator.op == op}
    assert wanted <= keepable(before, after).keys()


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(job(literals="1, 2, 3"), {DEDUPLICATE, JOIN}, id="a literal more below both"),
        pytest.param(job("k"), {JOIN}, id="another key of the lower one"),
        pytest.param(job(tables=TABLES.replace("k BIGINT, w", "k INT, w")), set(), id="another type of a column"),
        pytest.param(job(query=QUERY.replace("JOIN c", "LEFT JOIN c")), {DEDUPLICATE}, id="another type of the join"),
        pytest.param(
            job(query=QUERY.replace("ORDER BY PROCTIME()", "ORDER BY PROCTIME() DESC")),
            set(),
            id="updates come to the join",
        ),
    ],
)
def test_state_of_another_layout_may_not_be_kept(after: Plan, expected: set[str]) -> None:
    assert keepable(job(), after).keys() == expected


def test_a_literal_more_keeps_both_states_by_consent_and_the_checkpoint_says_so() -> None:
    before, after, later = job(), job(literals="1, 2, 3"), job(literals="1, 2, 3, 4")
    found, _ = tried(before, after)
    assert outcomes(found) == {JOIN: "starts empty", DEDUPLICATE: "starts empty"}
    assert found.keepable == (DEDUPLICATE, JOIN)
    with pytest.raises(RunError, match=f"--keep-state {DEDUPLICATE}, --keep-state {JOIN} with the rows that are there"):
        refuse(found, "c", allow_drop=False)
    (change,) = (change for change in compare_plans(before, after) if change.effect.level == "drop")
    assert change.effect.text == f"the states of {DEDUPLICATE} and {JOIN} start empty, unless they are kept"
    assert f"--keep-state {DEDUPLICATE} --keep-state {JOIN}" in change.effect.because

    kept, record = tried(before, after, keep=(DEDUPLICATE, JOIN))
    refuse(kept, "c", allow_drop=False)
    assert outcomes(kept) == {JOIN: "is kept", DEDUPLICATE: "is kept"}
    (query,) = record.queries
    (old,) = tried(before)[1].queries
    assert [(state.place, state.kept) for state in query.states] == [(state.place, (2,)) for state in old.states]
    assert [state.stored for state in query.states] == [state.lineage for state in old.states]
    stay = "(TTL never). Rows that only the new plan lets in are missing from before this start."
    assert f"kept by --keep-state: existing rows stay {stay}" in check_text(kept, record, after)
    counted = check_text(kept, record, after, start=Start(at=0, kept=319))
    assert f"kept by --keep-state: 319 rows stay {stay}" in counted

    again = continuation(record, after, partitions=2, keep=(DEDUPLICATE, JOIN))
    assert outcomes(again) == {JOIN: "carries over", DEDUPLICATE: "carries over"}, "a run that is started again"
    assert check_text(again, record, after).count("carries over   kept by --keep-state before") == 2
    (told,) = check_json(again, record, after, "c")["queries"]
    assert [(state["kept"], state["may_be_kept"]) for state in told["states"]] == [([2], False)] * 2

    third = continuation(record, later, partitions=2, keep=(DEDUPLICATE, JOIN))
    (query,) = third.records
    assert [(state.kept, state.stored) for state in query.states] == [((2, 3), state.lineage) for state in old.states]
    back = continuation(record, before, partitions=2, keep=(DEDUPLICATE, JOIN))
    (query,) = back.records
    assert [(state.kept, state.written) for state in query.states] == [((2, 3), "")] * 2, "as the files say"


@pytest.mark.parametrize(
    ("after", "keep", "said", "hint"),
    [
        pytest.param(
            job(literals="1, 3"), [JOIN], f"{JOIN} cannot be kept without the state of {DEDUPLICATE}, from which",
            f"--keep-state {DEDUPLICATE} keeps that too", id="without what it is made of",
        ),
        pytest.param(
            job("k"), [JOIN], f"{JOIN} cannot be kept without the state of {DEDUPLICATE}",
            "--allow-state-drop continues without",
            id="what it is made of cannot be kept",
        ),
        pytest.param(
            job("k"), [DEDUPLICATE], "its rows would have another form .*deduplicate_o.key",
            "has the same meaning, except for the rows", id="another layout",
        ),
        pytest.param(
            job(literals="1, 3"), [f"{DEDUPLICATE}, {JOIN}"], "the plan has no operator",
            f"give the option once for each operator: --keep-state {DEDUPLICATE} --keep-state {JOIN}", id="a list",
        ),
        pytest.param(
            job(literals="1, 3"), ["join_t_d"], "the plan has no operator", "did you mean 'join_t_c'?", id="a name",
        ),
        pytest.param(
            job(query=f"{QUERY} INSERT INTO r SELECT k, COUNT(*) FROM c GROUP BY k;"), ["aggregate_c"],
            "aggregate_c has no state in the checkpoint", "leave out --keep-state aggregate_c", id="a new one",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(after: Plan, keep: list[str], said: str, hint: str) -> None:
    with pytest.raises(RunError, match=said) as caught:
        tried(job(), after, keep=keep)
    assert hint in str(caught.value)


def test_a_cause_of_several_verdicts_is_written_once() -> None:
    found, record = tried(job(), job(literals="1, 3"))
    cause = "calc_o.filter w IN (1, 2) → w IN (1, 3)"
    said = check_text(found, record, job(literals="1, 3"))
    assert said.count(cause) == 1
    assert said.count("starts empty   for the same change as ") == 1
    with pytest.raises(RunError) as caught:
        refuse(found, "c", allow_drop=False)
    message = caught.value.diagnostics[0].message
    assert message.count("calc_o.filter") == 1
    assert message.endswith(f" start empty ({cause})")
    assert JOIN in message and DEDUPLICATE in message  # noqa: PT018 - in either order
    told = check_json(found, record, job(literals="1, 3"), "c")["queries"][0]["states"]
    assert {state["because"] for state in told} == {cause}, "JSON repeats it for scripts"


@pytest.mark.parametrize(
    ("ttls", "rows", "text"),
    [
        ({}, 1, "1 row stays (TTL never)."),
        ({f"{JOIN}.leftState.ttl": "6 h", f"{JOIN}.rightState.ttl": "30 d"}, 319, "319 rows stay (TTLs 6 h to never)."),
        (
            {
                f"{JOIN}.leftState.ttl": "6 h",
                f"{JOIN}.rightState.ttl": "30 d",
                f"{DEDUPLICATE}.deduplicateState.ttl": "1 d",
            },
            1200,
            "1,200 rows stay (TTLs 6 h to 30 d).",
        ),
    ],
)
def test_what_is_kept_is_told_with_its_rows_and_ttls(ttls: dict[str, str], rows: int, text: str) -> None:
    plan = job()
    for path, ttl in ttls.items():
        plan, _ = set_value(plan, path, ttl)
    assert kept_text(plan, [DEDUPLICATE, JOIN], rows).startswith(text)


def test_a_new_checkpoint_has_nothing_to_keep() -> None:
    with pytest.raises(RunError, match="there is no state to keep: the checkpoint is new"):
        continuation(None, job(), keep=[JOIN])


def test_what_may_not_be_kept_is_not_advised() -> None:
    """The join has its layout, but not the rows that it would be made of."""
    found, _ = tried(job(), job("k"))
    assert outcomes(found) == {JOIN: "starts empty", DEDUPLICATE: "starts empty"}
    assert found.keepable == ()
