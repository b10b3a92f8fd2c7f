"""Plans by hand: tables with a watermark, operators that go by time above them, and a sink.

plan_of(window_aggregate("watermark_s", Window(type="tumble", size="5 s")), delay="2 s")
"""

from __future__ import annotations

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.declarations.computations import AggregateCall, JoinType, SortKey
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Operator,
    Scan,
    Sink,
    WatermarkAssigner,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.operators.contract.output import JoinColumn
from hintplan.plans.operators.join import JoinKey
from hintplan.plans.settings.watermark import DELAY, IDLE_TIMEOUT, WATERMARK

FILES = {"connector": "filesystem", "format": "json", "path": "x"}
ATTACHED = WindowColumns(start="window_start", end="window_end")


def plan_of(
    *above: Operator,
    tables: tuple[str, ...] = ("s",),
    time: str = "TIMESTAMP(3)",
    delay: str = "0 ms",
    idle_timeout: str = "0 ms",
    changelog: bool = False,
) -> Plan:
    """A plan of ``above`` over tables with a key, a value and a time: ``watermark_s`` is the assigner of ``s``."""
    options = FILES | ({"source.changelog": "true"} if changelog else {})
    declared = {"k": "STRING", "v": "BIGINT", "ts": time}
    columns = tuple(TableColumn(name=name, type=kind) for name, kind in declared.items())
    below: list[Operator] = []
    for table in tables:
        scan = Scan(id=f"scan_{table}", table=table, columns=tuple(declared))
        below += [scan, assigner(scan, delay, idle_timeout)]
    plan = Plan(
        name="by_hand",
        tables={table: Table(columns=columns, options=options) for table in tables},
        operators=(*below, *above),
    )
    top = plan.operators[-1].id
    result = tuple(TableColumn(name=each.name, type=each.type) for each in output_columns(plan)[top])
    sink = Sink(id="sink_r", inputs=(top,), table="r")
    printed = Table(columns=result, options={"connector": "print"})
    return Plan(name="by_hand", tables={**plan.tables, "r": printed}, operators=(*plan.operators, sink))


def assigner(scan: Scan, delay: str, idle_timeout: str = "0 ms") -> WatermarkAssigner:
    settings = WATERMARK.resolved({"table": {DELAY: delay}, "config": {IDLE_TIMEOUT: idle_timeout}})
    name = scan.id.replace("scan_", "watermark_")
    return WatermarkAssigner(id=name, inputs=(scan.id,), column="ts", base="ts", settings={WATERMARK.name: settings})


def window_aggregate(
    below: str,
    window: Window,
    *,
    name: str = "windows",
    keys: tuple[str, ...] = ("k",),
    time: str = "ts",
    value: str = "v",
) -> WindowAggregate:
    """Count and sum by key and window."""
    return WindowAggregate(
        id=name,
        inputs=(below,),
        keys=keys,
        time=time,
        window=window,
        aggregates=(
            AggregateCall(name="n", function="COUNT", type="BIGINT"),
            AggregateCall(name="s", function="SUM", argument=value, type="BIGINT"),
        ),
        start="window_start",
        end="window_end",
        changelog=("+I",),
        state=(),
    )


def table_function(below: str, window: Window, name: str = "function") -> WindowTableFunction:
    return WindowTableFunction(
        id=name,
        inputs=(below,),
        time="ts",
        window=window,
        keys=(),
        start="window_start",
        end="window_end",
        window_time="window_time",
        changelog=("+I",),
        state=(),
    )


def window_rank(
    below: str, window: Window, *, keys: tuple[str, ...], numbers: tuple[int, int], descending: bool
) -> WindowRank:
    order = SortKey(column="v", direction="desc" if descending else "asc", nulls="last" if descending else "first")
    return WindowRank(
        id="rank",
        inputs=(below,),
        key=keys,
        order=(order,),
        rank_start=numbers[0],
        rank_end=numbers[1],
        number="number",
        window=window,
        attached=ATTACHED,
        changelog=("+I",),
        state=(),
    )


def window_deduplicate(below: str, window: Window, *, keep: str) -> WindowDeduplicate:
    return WindowDeduplicate(
        id="deduplicate",
        inputs=(below,),
        key=("k",),
        time="ts",
        keep="first" if keep == "first" else "last",
        window=window,
        attached=ATTACHED,
        changelog=("+I",),
        state=(),
    )


def window_join(left: str, right: str, window: Window, kind: JoinType) -> WindowJoin:
    """A join on the key, of which the key and the value of both sides come out."""
    sides = ("left",) if kind in ("semi", "anti") else ("left", "right")
    types = {"k": "STRING", "v": "BIGINT"}
    return WindowJoin(
        id="join",
        inputs=(left, right),
        join_type=kind,
        keys=(JoinKey(left="k", right="k"),),
        condition=None,
        window=window,
        left_window=ATTACHED,
        right_window=ATTACHED,
        output=tuple(
            JoinColumn(name=f"{side}_{column}", type=kind_of, side=side, column=column)
            for side in sides
            for column, kind_of in types.items()
        ),
        changelog=("+I",),
        state=(),
    )
