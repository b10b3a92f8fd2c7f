"""A small plan with event time for tests of running: windows of 2 s by key, and above them windows of 10 s.

scan_o ── watermark_o ── calc_o ── window_a ── calc_a ── window_b ── sink_r

With ``late``, a second table is read, and a union stands above the two calcs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.windows import Window
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    AggregateCall,
    Calc,
    Operator,
    Scan,
    SelectItem,
    Sink,
    Union,
    WatermarkAssigner,
    WindowAggregate,
)
from hintplan.plans.settings.state import StateEntry
from hintplan.plans.settings.watermark import WATERMARK

__all__ = ["add_events", "moment", "timed_plan", "with_windows"]

EVENTS = {"k": "BIGINT", "v": "BIGINT", "ts": "TIMESTAMP(3)"}
RESULT = {"k": "BIGINT", "n": "BIGINT", "ending": "TIMESTAMP(3)"}

Row = tuple[int, int]
"""A key, and a time in ms since 1970."""


def moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)


def add_events(directory: Path, table: str, rows: Sequence[tuple[int, int | None]], form: str = "parquet") -> None:
    """One more file for a table, newer than those before it; ``v`` is the number of the row in it."""
    folder = directory / table
    folder.mkdir(parents=True, exist_ok=True)
    number = len([*folder.glob(f"*.{form}")])
    draft, path = directory / "draft", folder / f"{number:05}.{form}"
    if form == "parquet":
        schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
        columns = [[k for k, _ in rows], [*range(len(rows))], [moment(ts) for _, ts in rows]]
        pq.write_table(pa.table(columns, schema=schema), draft)
    else:
        times = [None if ts is None else moment(ts).isoformat(" ", "milliseconds") for _, ts in rows]  # type: ignore[union-attr]
        lines = [
            f'{{"k": {k}, "v": {v}, "ts": {_text(time)}}}'
            for v, ((k, _), time) in enumerate(zip(rows, times, strict=True))
        ]
        draft.write_text("\n".join(lines))
    os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
    draft.rename(path)


def _text(time: str | None) -> str:
    return "null" if time is None else f'"{time}"'


def timed_plan(
    directory: Path,
    *,
    form: str = "parquet",
    sources: Sequence[str] = ("o",),
    condition: str | None = None,
    between: Mapping[str, Any] | None = None,
    delay: str = "3 s",
    partitions: int = 2,
    sinks: Mapping[str, str] | None = None,
    base: str = "ts",
) -> Plan:
    """The plan over files below ``directory``. ``sinks`` has the operator that each table reads, by default one.

    ``condition`` filters the rows of sources, and ``between`` has the filter and the expression for ``k`` of a calc
    between the windows.
    """
    tables = {}
    for name in sources:
        (directory / name).mkdir(parents=True, exist_ok=True)
        options = {"connector": "filesystem", "path": str(directory / name), "format": form}
        tables[name] = _table(EVENTS, {**options, "source.max-files-per-trigger": "1"})
    read_by = sinks or {"r": "window_b"}
    tables |= {name: _table(RESULT, {"connector": "dataframe"}) for name in read_by}
    operators: list[Operator] = []
    for name in sources:
        operators += [
            Scan(id=f"scan_{name}", table=name, columns=tuple(EVENTS)),
            WatermarkAssigner(
                id=f"watermark_{name}",
                inputs=(f"scan_{name}",),
                column="ts",
                base=base,
                settings={"watermark": WATERMARK.resolved({"table": {"delay": delay}})},
            ),
            Calc(
                id=f"calc_{name}",
                inputs=(f"watermark_{name}",),
                filter=condition,
                select=(SelectItem(name="k"), SelectItem(name="ts")),
            ),
        ]
    below = f"calc_{sources[0]}"
    if len(sources) > 1:
        below = "union_o"
        operators.append(Union(id=below, inputs=tuple(f"calc_{name}" for name in sources)))
    operators.append(_window("window_a", below, "ts", "2 s"))
    below = "window_a"
    if between is not None:
        key = SelectItem(name="k", expression=between["k"], type="BIGINT")
        kept = (SelectItem(name="n"), SelectItem(name="ending"), SelectItem(name="wt"))
        operators.append(Calc(id="calc_a", inputs=("window_a",), filter=between.get("filter"), select=(key, *kept)))
        below = "calc_a"
    operators.append(_window("window_b", below, "wt", "10 s"))
    for table, read in read_by.items():
        chosen = tuple(SelectItem(name=column) for column in RESULT)
        operators.append(Calc(id=f"calc_{table}", inputs=(read,), select=chosen))
        operators.append(Sink(id=f"sink_{table}", inputs=(f"calc_{table}",), table=table))
    needed = {*read_by.values(), "window_a"}
    operators = [each for each in operators if each.id != "window_b" or "window_b" in needed]
    return Plan(
        name="timed",
        config={"parallelism.default": str(partitions)},
        tables=tables,
        operators=tuple(operators),
    )


def with_windows(plan: Plan, directory: Path) -> Plan:
    """``plan``, and with it the small plan over JSON files below ``events``, which writes JSON files below ``r``."""
    timed = timed_plan(directory, form="json", sources=("events",))
    (directory / "r").mkdir(exist_ok=True)
    files = {"connector": "filesystem", "path": str(directory / "r"), "format": "json"}
    tables = {**plan.tables, **timed.tables, "r": _table(RESULT, files)}
    return replace(plan, tables=tables, operators=(*plan.operators, *timed.operators))


def _window(name: str, below: str, time: str, size: str) -> WindowAggregate:
    return WindowAggregate(
        id=name,
        inputs=(below,),
        keys=("k",),
        time=time,
        window=Window(type="tumble", size=size),
        aggregates=(AggregateCall(name="n", function="COUNT", type="BIGINT"),),
        end="ending",
        window_time="wt",
        changelog=("+I",),
        state=(StateEntry(index=0, name="windowAggregateState", input=below),),
    )


def _table(columns: Mapping[str, str], options: Mapping[str, str]) -> Table:
    return Table(columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()), options=options)
