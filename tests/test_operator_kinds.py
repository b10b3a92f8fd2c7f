"""Every kind of operator is complete: what must hold for each is tested from the one list of kinds.

A new kind that has no program, no section in the plan format, no builder, no title or no way through the commands fails
here, and so does one that another stop or another cut into micro-batches makes wrong.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import jsonschema
import pytest
from pyspark.sql import SparkSession

import hintplan as api
from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.fields import Ref
from hintplan.plans.declarations.types import ROOTS
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.plan import Mode, Plan
from hintplan.plans.operators import BY_OP, KINDS, LateRows, Operator, Requesting, Stateful
from hintplan.plans.operators.contract.stateful import FOREVER
from hintplan.plans.settings.phases import PHASES
from hintplan.runtime.builders.bound import KERNELS
from hintplan.runtime.builders.table import BUILDERS
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_arrow, to_spark
from tests.operator_kinds import BATCHES, MODULES, PROGRAMS, compiled, expected, rates, table_of
from tests.plans.in_process import hintplan
from tests.runtime.changelog import Event
from tests.runtime.pipeline import Pipeline
from tests.spark.programs import add_rows, changes

DOCS = Path(__file__).parents[1] / "docs"
DEADLINE_SECONDS = 300
STREAMING = [op for op, program in PROGRAMS.items() if program.mode == "streaming"]
BEYOND_THIS_PROCESS = {"lookup-join", "correlate", "unnest"}  # they ask somebody else, in workers, or Spark for arrays
IN_PROCESS = [op for op in STREAMING if op not in BEYOND_THIS_PROCESS]


def test_there_is_one_list_of_kinds() -> None:
    assert set(PROGRAMS) == set(BY_OP)
    assert len(KINDS) == len(BY_OP) == len(set(KINDS))
    for kind in KINDS:
        stateful = issubclass(kind, Stateful)
        names = {field.name for field in fields(kind)}
        assert {"state", "changelog"} & names == ({"state", "changelog"} if stateful else set()), kind.op
        assert ("table" in names) == (kind.table_use is not None), kind.op
        assert {"function", "aggregates"}.isdisjoint(names) == (kind.functions is Operator.functions), kind.op


def test_a_kind_speaks_of_the_settings_and_expressions_that_it_has() -> None:
    for kind in KINDS:
        always = [group for group in kind.groups if not group.optional]
        assert bool(always) == (issubclass(kind, Requesting) or kind.sends_watermark), kind.op
        assert (PHASES in kind.groups) == (kind.one_phase_because is not Operator.one_phase_because), kind.op
        assert has_expressions(kind) == (kind.expressions is not Operator.expressions), kind.op
        assert (not kind.groups) == (kind.table_use == "writes"), kind.op


@pytest.mark.parametrize("base", [Operator, Stateful, Requesting])
def test_a_kind_sets_every_class_variable_and_none_of_them_is_a_field(base: type[Operator]) -> None:
    for kind in (kind for kind in KINDS if issubclass(kind, base)):
        for name in get_annotations(base):
            assert hasattr(kind, name), (kind.op, name)
            assert name not in {field.name for field in fields(kind)}, (kind.op, name)


def has_expressions(cls: type) -> bool:
    """Whether a field of ``cls``, or of what its fields hold, is an expression."""
    return any(_is_expression(each) for each in get_type_hints(cls, include_extras=True).values())


def _is_expression(hint: Any) -> bool:
    if Ref("expression") in getattr(hint, "__metadata__", ()):
        return True
    if get_origin(hint) is ClassVar:
        return False
    if isinstance(hint, type) and is_dataclass(hint):
        return has_expressions(hint)
    return any(_is_expression(each) for each in get_args(hint))


def test_every_kind_has_a_builder_in_streams_and_in_batch() -> None:
    batch_only = {BY_OP["sort"]}
    stream_only = {BY_OP[op] for op in ("changelog-normalize", "temporal-join", "temporal-sort", "sink-materialize")}
    stream_only |= {LateRows}
    assert set(BUILDERS) == {*KINDS, LateRows}  # which no plan file contains
    assert {kind for kind, builder in BUILDERS.items() if builder.stream is None} == batch_only
    assert {kind for kind, builder in BUILDERS.items() if builder.batch is None} == stream_only
    assert set(KERNELS) == {kind for kind in KINDS if issubclass(kind, Stateful)}


@pytest.mark.parametrize("op", BY_OP)
def test_a_plan_with_it_is_read_as_it_was_written(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    assert op in {operator.op for operator in plan.operators}
    text = api.dumps(plan)
    assert api.loads(text) == plan
    assert api.dumps(api.loads(text)) == text
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(json.loads(text))


@pytest.mark.parametrize("op", BY_OP)
def test_a_key_that_it_does_not_have_is_refused_with_its_place(op: str, tmp_path: Path) -> None:
    document = json.loads(api.dumps(compiled(tmp_path, op)))
    found = next(each for each in document["operators"] if each["op"] == op)
    found["colour"] = "red"
    with pytest.raises(api.PlanError) as caught:
        api.loads(json.dumps(document, indent=1), file="plan.json")
    assert re.match(rf"plan\.json:\d+:\d+: operators\.{found['id']}\.colour: ", str(caught.value))


@pytest.mark.parametrize("op", BY_OP)
def test_its_columns_row_kinds_lineage_and_settings_are_known(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    found = next(operator for operator in plan.operators if operator.op == op)
    assert output_columns(plan)[found.id]
    assert output_kinds(plan)[found.id]
    assert state_lineages(plan)[found.id]
    assert found.settings.keys() <= {group.name for group in BY_OP[op].groups}


@pytest.mark.parametrize("op", [kind.op for kind in KINDS if issubclass(kind, Stateful)])
def test_what_it_keeps_is_told_of_as_many_states_as_it_has(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    for found in (operator for operator in plan.operators if operator.op == op):
        assert isinstance(found, Stateful)
        assert tuple(entry.name for entry in found.state) == found.state_names
        inputs = [output_kinds(plan)[name] for name in found.inputs]
        assert found.changes_for([FOREVER] * len(found.state), inputs) in (0, FOREVER)
        assert found.state_is_bounded in (True, False)
        assert found.waits_as is None or len(found.state) == 2
        assert found.row_kinds(("+I",), plan) == found.changelog
        assert found.state_facts(operator_facts(found)).keys() <= operator_facts(found).keys()
        assert found.with_states(()).state == ()


@pytest.mark.parametrize("op", [kind.op for kind in KINDS if issubclass(kind, Requesting)])
def test_what_it_asks_and_how_it_waits_are_settings_of_its_groups(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    for found in (operator for operator in plan.operators if operator.op == op):
        assert isinstance(found, Requesting)
        assert found.request_identity.target in (found.table, *found.functions)
        own = {group.name for group in found.groups if not group.optional}
        assert {*found.settable, *found.config_groups(plan)} <= own
        assert found.resettled(plan, True) == found
        assert not [*found.check_settings(plan, True)]
        waits = found.waits
        assert waits is None or waits.capacity_name in found.settings["async"].values


@pytest.mark.parametrize("op", BY_OP)
def test_a_plan_of_a_mode_in_which_nothing_builds_it_is_refused(op: str, tmp_path: Path) -> None:
    plan, builder = compiled(tmp_path, op), BUILDERS[BY_OP[op]]
    if builder.stream is not None and builder.batch is not None:
        return
    mode: Mode = "streaming" if builder.stream is None else "batch"
    found = [operator.id for operator in plan.operators if operator.op == op]
    paths = {problem.path for problem in plan_problems(replace(plan, mode=mode))}
    assert {f"operators.{name}" for name in found} <= paths


@pytest.mark.parametrize("op", BY_OP)
def test_every_command_knows_it(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    api.dump(plan, tmp_path / "plan.json")
    found = next(operator for operator in plan.operators if operator.op == op)
    shown = [
        ("explain", "plan.json"),
        ("explain", "plan.json", "--json"),
        ("flat", "plan.json"),
        *(("show", "plan.json", "--format", each) for each in ("html", "svg", "mermaid", "dot", "tree")),
    ]
    for words in shown:
        done = hintplan(*words, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert found.id in done.stdout, words
    for words in (("validate", "plan.json"), ("fmt", "--check", "plan.json"), ("diff", "plan.json", "plan.json")):
        assert hintplan(*words, folder=tmp_path).returncode == 0, words
    assert hintplan("lint", "plan.json", "--fail-on", "never", folder=tmp_path).returncode == 0


@pytest.mark.parametrize("op", BY_OP)
def test_the_plan_format_has_a_section_and_a_picture_a_name_for_it(op: str) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "plan-format").glob("*.md")]
    assert any(f"\n### {op}\n" in page for page in pages)
    assert BY_OP[op].title


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("op", IN_PROCESS)
def test_any_cut_into_batches_and_a_stop_between_them_ends_as_sqlite_says(op: str, cut: int, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    pipeline, events = Pipeline(plan), []
    for together in (BATCHES[:cut], BATCHES[cut:]):
        pipeline = pipeline.resumed(api.loads(api.dumps(plan)))
        pipeline.batch({table: tuples(plan, table, together) for table in plan.tables if table in BATCHES[0]})
        events += pipeline.events
    left = latest(events) if "PRIMARY KEY" in PROGRAMS[op].columns else +pipeline.result
    assert left == expected(op)


def tuples(plan: Plan, table: str, batches: Sequence[Mapping[str, list[dict[str, Any]]]]) -> list[tuple[Any, ...]]:
    """The rows of ``table`` in its order of columns; of upserts, the kind first."""
    names = [column.name for column in plan.tables[table].columns]
    rows = [row for batch in batches for row in batch[table]]
    rows = [row | {"ts": datetime.fromisoformat(row["ts"])} if table == "t" else row for row in rows]
    return [(*((row.get("op", "+U"),) if table == "u" else ()), *map(row.get, names)) for row in rows]


def latest(events: Iterable[Event]) -> Counter[tuple[Any, ...]]:
    """What a sink whose key is its first column has in the end."""
    rows: dict[Any, tuple[Any, ...]] = {}
    for kind, row in events:
        if kind in ("+I", "+U"):
            rows[row[0]] = row
        else:
            rows.pop(row[0])
    return Counter(rows.values())


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.parametrize("ops", [STREAMING[n::3] for n in range(3)], ids="-".join)
def test_every_kind_runs_on_spark_cut_and_stopped(spark: SparkSession, tmp_path: Path, ops: list[str]) -> None:
    with sqlite3.connect(tmp_path / "rates.db") as database:
        rates(database)
    plan = compiled(tmp_path, *ops)
    for batch in BATCHES:
        for table, rows in batch.items():
            add_rows(tmp_path, table, rows)
        execution = execute(
            plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, policy=Policy(modules=MODULES)
        )
        assert execution.await_termination(DEADLINE_SECONDS)
    for op in ops:
        assert written(tmp_path, op) == expected(op), op


@pytest.mark.spark
@pytest.mark.integration
def test_every_kind_that_batch_has_runs_there(spark: SparkSession, tmp_path: Path) -> None:
    for batch in BATCHES:
        for table, rows in batch.items():
            add_rows(tmp_path, table, rows)
    execution = execute(compiled(tmp_path, "sort"), spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    rows = [json.loads(line) for path in (tmp_path / "sort/result").glob("*.json") for line in path.open()]
    assert Counter((row["id"], row.get("v")) for row in rows) == expected("sort")


def written(directory: Path, op: str) -> Counter[tuple[Any, ...]]:
    """What is in the table of the program in the end."""
    columns = [part.split()[0] for part in PROGRAMS[op].columns.split(", ") if not part.startswith("PRIMARY")]
    if "PRIMARY KEY" in PROGRAMS[op].columns:
        with sqlite3.connect(directory / "result.db") as database:
            return Counter(database.execute(f"SELECT {', '.join(columns)} FROM {table_of(op)}").fetchall())
    left: Counter[tuple[Any, ...]] = Counter()
    for row in changes(directory / op):
        left[tuple(row.get(name) for name in columns)] += 1 if row["op"] in ("+I", "+U") else -1
    assert min(left.values()) >= 0, op
    return +left


@pytest.mark.parametrize("root", ROOTS)
def test_every_type_has_its_like_in_spark_and_in_arrow(root: str) -> None:
    whole = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING, INT>", "MULTISET": "MULTISET<INT>", "ROW": "ROW<a INT>"}
    inner = whole.get(root, root)
    assert to_arrow(inner) is not None
    assert to_spark(inner) is not None
