"""Whole scripts, as jobs are written, leave in each sink the rows that Flink left, however their input is cut.

The scripts compile unedited. Operators with state run in this process, and Spark computes the expressions between them.
In batch mode, scripts whose sources only add rows are jobs of Spark from files to files.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan
from hintplan.runtime.types import to_arrow
from tests.fuzz.data import Event
from tests.fuzz.in_process import Stream

HERE = Path(__file__).parent
RECORDED: dict[str, dict[str, list[dict[str, Any]]]] = json.loads((HERE / "jobs.json").read_text(encoding="utf-8"))
SCRIPTS = {path.stem: path for path in sorted((HERE / "jobs").glob("*.sql"))}
DEADLINE_SECONDS = 180
REFUSED_IN_BATCH = {
    "booked_in_euro": "FOR SYSTEM_TIME AS OF an event time is for streams",
    "first_replies": "it has passed ROW_NUMBER()",
    "fraud_velocity": "a frame takes whole numbers",
    "sensor_smoothing": "a frame takes whole numbers",
}
"""Scripts whose queries run in streams only, with words of the message in a batch job."""


def compiled(name: str, config: Mapping[str, str] | None = None) -> Plan:
    path = SCRIPTS[name]
    return hintplan.compile_sql(path.read_text(encoding="utf-8"), config, file=path.name)


def value(given: Any, kind: pa.DataType) -> Any:
    """A value of JSON as a row has it."""
    if given is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(given.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [value(item, kind.value_type) for item in given]
    if pa.types.is_map(kind):
        return {key: value(item, kind.item_type) for key, item in given.items()}
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(given)
    if pa.types.is_date(kind):
        return date.fromisoformat(given)
    if pa.types.is_decimal(kind):
        return Decimal(str(given)).quantize(Decimal(1).scaleb(-kind.scale))
    return float(given) if pa.types.is_floating(kind) else given


def events(table: Table) -> list[Event]:
    types = {column.name: to_arrow(column.type) for column in table.columns}
    rows = [
        json.loads(line) for line in (HERE / "jobs" / table.options["path"]).read_text(encoding="utf-8").splitlines()
    ]
    return [(row.get("op", "+I"), tuple(value(row.get(n), t) for n, t in types.items())) for row in rows]


def cut(table: Table, rows: list[Event], count: int) -> list[list[Event]]:
    """Rows in so many parts, none of them late: Flink read each of these tables before its first watermark."""
    names = [column.name for column in table.columns]
    bounds = [number * len(rows) // count for number in range(count + 1)]
    if count > 1 and table.watermark is not None and table.watermark.column in names:
        place = names.index(table.watermark.column)
        rows = sorted(rows, key=lambda event: (event[1][place] is not None, event[1][place] or 0))
        times = [event[1][place] for event in rows]
        # A row at the watermark is late, so rows of one time are in one part.
        bounds = [bisect_left(times, times[bound]) if 0 < bound < len(rows) else bound for bound in bounds]
    return [rows[begin:end] for begin, end in pairwise(bounds)]


def sources_of(plan: Plan) -> list[str]:
    return sorted({operator.table for operator in plan.scans if isinstance(operator, Scan)})


def wanted(name: str, plan: Plan) -> dict[str, Counter[str]]:
    found = {}
    for sink, rows in RECORDED[name].items():
        types = {column.name: to_arrow(column.type) for column in plan.tables[sink].columns}
        found[sink] = Counter(text([value(row[n], t) for n, t in types.items()]) for row in rows)
    return found


def text(row: Any) -> str:
    """What is compared of a row: doubles up to what the order of additions decides."""
    return json.dumps([plain(item) for item in row], ensure_ascii=False)


def plain(item: Any) -> Any:
    if isinstance(item, float):
        return f"{item:.10g}"
    if isinstance(item, datetime) and item.tzinfo is not None:
        item = item.astimezone(UTC)
    if isinstance(item, datetime | date | Decimal):
        return str(item)
    if isinstance(item, Mapping):
        return {key: plain(each) for key, each in item.items()}
    if hasattr(item, "asDict"):
        return plain(item.asDict())
    return [plain(each) for each in item] if isinstance(item, list | tuple) else item


def test_there_is_an_answer_for_each_script_and_none_else() -> None:
    assert RECORDED.keys() == SCRIPTS.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_compiles_unedited_to_all_its_sinks(name: str) -> None:
    assert {sink.table for sink in compiled(name).sinks} == RECORDED[name].keys()


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.part(of=5)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", SCRIPTS)
def test_each_sink_ends_with_the_rows_that_flink_left(name: str, count: int, spark: SparkSession) -> None:
    plan = compiled(name)
    sources = {table: events(plan.tables[table]) for table in sources_of(plan)}
    stream = Stream(plan, spark)
    parts = {table: cut(plan.tables[table], rows, count) for table, rows in sources.items()}
    for number in range(count):
        stream.batch({table: of_table[number] for table, of_table in parts.items()})
    stream.end()
    found = {sink: Counter(text(row) for row in rows) for sink, rows in stream.results().items()}
    assert found == wanted(name, plan)


@pytest.mark.parametrize("name", REFUSED_IN_BATCH)
def test_what_needs_a_stream_is_refused_in_a_batch_job(name: str) -> None:
    with pytest.raises(SqlError, match=re.escape(REFUSED_IN_BATCH[name])):
        compiled(name, {"execution.runtime-mode": "batch"})


@pytest.mark.spark
@pytest.mark.part(of=5)
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in REFUSED_IN_BATCH])
def test_a_batch_job_leaves_them_too(name: str, spark: SparkSession, tmp_path: Path) -> None:
    from hintplan.runtime.run.execute import execute

    stream = compiled(name)
    if any(source_kinds(stream.tables[table]) != ("+I",) for table in sources_of(stream)):
        pytest.skip("a source of changes")
    if "PROCTIME()" in SCRIPTS[name].read_text(encoding="utf-8"):
        pytest.skip("a batch job has no order of arrival")
    plan = compiled(name, {"execution.runtime-mode": "batch", "parallelism.default": "2"})
    tables = {}
    for table, declared in plan.tables.items():
        if table in RECORDED[name]:
            options = {"connector": "filesystem", "format": "json", "path": str(tmp_path / table)}
            tables[table] = replace(declared, options=options, primary_key=())
        else:
            path = str(HERE / "jobs" / declared.options["path"])
            tables[table] = replace(declared, options={**declared.options, "path": path})
    assert execute(replace(plan, tables=tables), spark).await_termination(DEADLINE_SECONDS)
    found: dict[str, Counter[str]] = {}
    for sink in RECORDED[name]:
        types = {column.name: to_arrow(column.type) for column in plan.tables[sink].columns}
        lines = [line for path in (tmp_path / sink).glob("*.json") for line in path.read_text("utf-8").splitlines()]
        rows = [json.loads(line, parse_float=str) for line in lines]
        found[sink] = Counter(text([value(row.get(n), t) for n, t in types.items()]) for row in rows)
    assert found == wanted(name, plan)
