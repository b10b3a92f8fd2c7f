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
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pyspark.sql import SparkSession

import plans
from plans.analysis.changelog import output_kinds
from plans.analysis.columns import output_columns
from plans.compare.carryover import state_lineages
from plans.connectors.policy import Policy
from plans.declarations.types import ROOTS
from plans.format.schema import schema_text
from plans.model.plan import Plan
from plans.operators import BY_OP, KINDS, Operator, Stateful, op_name
from plans.operators.state import stated
from runtime.build.table import BUILDERS
from runtime.run.execution import execute
from runtime.types import to_arrow, to_spark
from tests.operator_kinds import BATCHES, MODULES, PROGRAMS, compiled, expected, rates, table_of
from tests.plans.in_process import hintplan
from tests.runtime.changelog import Event
from tests.runtime.pipeline import Pipeline
from tests.spark.programs import add_rows, changes

OPS = {kind.op: kind.cls for kind in KINDS}
DOCS = Path(__file__).parents[1] / "docs"
DEADLINE_SECONDS = 300
STREAMING = [op for op, program in PROGRAMS.items() if program.mode == "streaming"]
BEYOND_THIS_PROCESS = {"lookup-join", "correlate"}  # they ask somebody else, in workers
IN_PROCESS = [op for op in STREAMING if op not in BEYOND_THIS_PROCESS]


def test_there_is_one_list_of_kinds() -> None:
    assert {kind.cls for kind in KINDS} == set(get_args(Operator))
    assert set(PROGRAMS) == set(OPS)
    for kind in KINDS:
        stateful = kind.cls in get_args(Stateful)
        assert (bool(kind.states), kind.changelog is not None, kind.row_kinds is stated) == (stateful,) * 3, kind.op
        assert (table_name(kind.cls) is not None) == (kind.table is not None), kind.op


def table_name(cls: type) -> str | None:
    """The name of the field that names a table."""
    return next((field.name for field in fields(cls) if field.name == "table"), None)


def test_every_kind_has_a_builder_in_streams_and_in_batch() -> None:
    batch_only, stream_only = {OPS["sort"]}, {OPS["changelog-normalize"], OPS["sink-materialize"]}
    assert set(BUILDERS) == set(get_args(Operator))
    assert {kind for kind, builder in BUILDERS.items() if builder.stream is None} == batch_only
    assert {kind for kind, builder in BUILDERS.items() if builder.batch is None} == stream_only
    assert {kind for kind, builder in BUILDERS.items() if builder.bind is not None} == set(get_args(Stateful))


@pytest.mark.parametrize("op", OPS)
def test_a_plan_with_it_is_read_as_it_was_written(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    assert op in {op_name(operator) for operator in plan.operators}
    text = plans.dumps(plan)
    assert plans.loads(text) == plan
    assert plans.dumps(plans.loads(text)) == text
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(json.loads(text))


@pytest.mark.parametrize("op", OPS)
def test_a_key_that_it_does_not_have_is_refused_with_its_place(op: str, tmp_path: Path) -> None:
    document = json.loads(plans.dumps(compiled(tmp_path, op)))
    found = next(each for each in document["operators"] if each["op"] == op)
    found["colour"] = "red"
    with pytest.raises(plans.PlanError) as caught:
        plans.loads(json.dumps(document, indent=1), file="plan.json")
    assert re.match(rf"plan\.json:\d+:\d+: operators\.{found['id']}\.colour: ", str(caught.value))


@pytest.mark.parametrize("op", OPS)
def test_its_columns_row_kinds_lineage_and_settings_are_known(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    found = next(operator for operator in plan.operators if op_name(operator) == op)
    assert output_columns(plan)[found.id]
    assert output_kinds(plan)[found.id]
    assert state_lineages(plan)[found.id]
    assert found.settings.keys() <= {group.name for group in BY_OP[op].groups}


@pytest.mark.parametrize("op", OPS)
def test_every_command_knows_it(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    plans.dump(plan, tmp_path / "plan.json")
    found = next(operator for operator in plan.operators if op_name(operator) == op)
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


@pytest.mark.parametrize("op", OPS)
def test_the_plan_format_has_a_section_and_a_picture_a_name_for_it(op: str) -> None:
    assert f"\n### {op}\n" in (DOCS / "plan-format.md").read_text(encoding="utf-8")
    assert BY_OP[op].title


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("op", IN_PROCESS)
def test_any_cut_into_batches_and_a_stop_between_them_ends_as_sqlite_says(op: str, cut: int, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    pipeline, events = Pipeline(plan), []
    for together in (BATCHES[:cut], BATCHES[cut:]):
        pipeline = pipeline.resumed(plans.loads(plans.dumps(plan)))
        pipeline.batch({table: tuples(plan, table, together) for table in plan.tables if table in BATCHES[0]})
        events += pipeline.events
    left = latest(events) if "PRIMARY KEY" in PROGRAMS[op].columns else +pipeline.result
    assert left == expected(op)


def tuples(plan: Plan, table: str, batches: Sequence[Mapping[str, list[dict[str, Any]]]]) -> list[tuple[Any, ...]]:
    """The rows of ``table`` in its order of columns; of upserts, the kind first."""
    names = [column.name for column in plan.tables[table].columns]
    rows = [row for batch in batches for row in batch[table]]
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
    inner = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING, INT>", "ROW": "ROW<a INT>"}.get(root, root)
    assert to_arrow(inner) is not None
    assert to_spark(inner) is not None
