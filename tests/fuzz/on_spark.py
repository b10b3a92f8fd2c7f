"""Queries on real Spark: many as one, since a streaming query of its own takes seconds whatever it computes.

The queries of a bundle read the same tables, and their results are one UNION ALL with the number of the query in front
and a column for each type. A bundle is one streaming query, or one batch job; if it fails, each query runs alone, so
that one does not hide the others. Files are Parquet, one for each table and micro-batch; a restart is a new run on the
same checkpoint.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Sink
from hintplan.runtime.results.files import KeptRows
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_arrow
from tests.fuzz.compiled import compiled, script
from tests.fuzz.data import Event, FuzzTable, World
from tests.fuzz.trees import Query, Rendered, rendered
from tests.runtime.changelog import KINDS

__all__ = ["run_together"]

_SECONDS = 900
Row = tuple[Any, ...]


def run_together(world: World, queries: Sequence[Query], spark: SparkSession, *, batch: bool) -> list[list[Row]]:
    """The rows that each of ``queries`` leaves, which hintplan compiles; none has columns of nested types."""
    with TemporaryDirectory(prefix="hintplan-fuzz-") as folder:
        parts = [rendered(query, batch=batch, prefix=f"q{number}_") for number, query in enumerate(queries)]
        columns = [_columns(compiled(script(world, part, batch=batch))) for part in parts]
        places = _places(columns)
        described = enumerate(zip(parts, columns, strict=True))
        text = " UNION ALL ".join(_selected(number, part, types, places) for number, (part, types) in described)
        whole = Rendered(tuple(view for part in parts for view in part.views), text, "")
        plan = compiled(script(world, whole, folder=folder, batch=batch), config={"parallelism.default": "1"})
        return _separated(_run(plan, world, spark, Path(folder), batch=batch), columns, places)


def _columns(plan: Plan) -> list[str]:
    (sink,) = (operator for operator in plan.operators if isinstance(operator, Sink))
    return [column.type.removesuffix(" NOT NULL") for column in output_columns(plan)[sink.inputs[0]]]


def _places(columns: Sequence[Sequence[str]]) -> list[str]:
    """The types of the columns of the union, but for the first."""
    most: Counter[str] = Counter()
    for types in columns:
        most |= Counter(types)
    return sorted(most.elements())


def _own(types: Sequence[str], places: Sequence[str]) -> list[int]:
    """The place of each column of one query."""
    free = list(enumerate(places))
    found = []
    for type_ in types:
        place = next(entry for entry in free if entry[1] == type_)
        free.remove(place)
        found.append(place[0])
    return found


def _selected(number: int, part: Rendered, types: Sequence[str], places: Sequence[str]) -> str:
    own = {place: index for index, place in enumerate(_own(types, places))}
    items = [f"t.x{own[p]}" if p in own else f"CAST(NULL AS {type_})" for p, type_ in enumerate(places)]
    listed = ", ".join(f"{item} AS c{index}" for index, item in enumerate(items))
    return f"SELECT CAST({number} AS BIGINT) AS q, {listed} FROM ({part.flink}) AS t"


def _run(plan: Plan, world: World, spark: SparkSession, folder: Path, *, batch: bool) -> list[tuple[int, Row]]:
    """The changes that the union makes: one or minus one, and the row."""
    results = str(folder / "results")
    for table in world.tables:
        (folder / table.name).mkdir()
    batches = world.batches()
    for number, events in enumerate(batches):
        for table in world.tables:
            _write(folder / table.name, table, events[table.name], number)
        if number + 1 == len(batches) or number + 1 in world.restarts:
            settings = {} if batch else {"checkpoint": str(folder / "checkpoint"), "once": True}
            execution = execute(plan, spark, results=results, **settings)  # type: ignore[arg-type]
            if not execution.await_termination(*([] if batch else [_SECONDS])):
                execution.stop()  # type: ignore[union-attr]
                raise TimeoutError(f"not finished after {_SECONDS} s")
    changes: list[tuple[int, Row]] = []
    for piece, kinds in KeptRows(directory=results).new():
        rows = zip(*(column.to_pylist() for column in piece.columns), strict=True)
        signs = [1 if kinds is None or KINDS[kind] in ("+I", "+U") else -1 for kind in kinds or [0] * piece.num_rows]
        changes += zip(signs, rows, strict=True)
    return changes


def _write(folder: Path, table: FuzzTable, events: Sequence[Event], number: int) -> None:
    if not events:
        return
    columns = [pa.array([r[i] for _, r in events], to_arrow(c.type)) for i, c in enumerate(table.columns)]
    rows = pa.table(columns, [c.name for c in table.columns])
    if table.changes != "false":
        rows = rows.append_column("op", pa.array([kind for kind, _ in events]))
    draft = folder.parent / "draft.parquet"
    pq.write_table(rows, draft)
    os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
    draft.rename(folder / f"{number:03}.parquet")


def _separated(
    changes: Sequence[tuple[int, Row]], columns: Sequence[Sequence[str]], places: Sequence[str]
) -> list[list[Row]]:
    own = [_own(types, places) for types in columns]
    count: Counter[tuple[int, str]] = Counter()
    rows: dict[tuple[int, str], Row] = {}
    for sign, (number, *values) in changes:
        row = tuple(values[place] for place in own[number])
        key = (number, repr(tuple(0.0 if isinstance(v, float) and v == 0 else v for v in row)))
        count[key] += sign
        rows.setdefault(key, row)
    wrong = [(key[0], rows[key]) for key, number in count.items() if number < 0]
    assert not wrong, f"the changelog takes back what is not there: {wrong[:3]}"
    found: list[list[Row]] = [[] for _ in columns]
    for key in (+count).elements():
        found[key[0]].append(rows[key])
    return found
