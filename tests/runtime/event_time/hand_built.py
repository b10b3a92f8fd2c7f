"""Plans by hand: tables with a watermark, operators that go by time above them, and a sink.

plan_of(window_aggregate("watermark_s", Window(type="tumble", size="5 s")), delay="2 s")
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.declarations.computations import AggregateCall, JoinType, SortKey
from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Deduplicate,
    IntervalJoin,
    Operator,
    Scan,
    Sink,
    TemporalJoin,
    TemporalSort,
    WatermarkAssigner,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.operators.contract.output import JoinColumn
from hintplan.plans.operators.interval_join import IntervalJoinType
from hintplan.plans.operators.join import JoinKey
from hintplan.plans.operators.temporal_join import Versions
from hintplan.plans.settings.emit import EMIT
from hintplan.plans.settings.state import StateEntry, ttl_settings
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
    fires: tuple[str, ...] = (),
    emit: Mapping[str, str] = MappingProxyType({}),
    kinds: RowKinds = ("+I",),
) -> WindowAggregate:
    """Count and sum by key and window; a group window with ``emit``, with early and late results as ``fires`` says."""
    return WindowAggregate(
        id=name,
        inputs=(below,),
        keys=keys,
        time=time,
        window=window,
        style="group" if emit else None,
        early_fire="early" in fires,
        late_fire="late" in fires,
        aggregates=(
            AggregateCall(name="n", function="COUNT", type="BIGINT"),
            AggregateCall(name="s", function="SUM", argument=value, type="BIGINT"),
        ),
        start="window_start",
        end="window_end",
        changelog=kinds,
        state=(),
        settings={EMIT.name: EMIT.resolved({"config": emit})} if fires else {},
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


def first_by_time(below: str, ttl: str = "0 ms") -> Deduplicate:
    """The first row of each key, when the watermark passes it."""
    keys = StateEntry(index=0, name="deduplicateState", input="s", settings=ttl_settings(config=ttl))
    waiting = StateEntry(index=1, name="waitingState", input="s")
    return Deduplicate(
        id="first",
        inputs=(below,),
        key=("k",),
        time="ts",
        keep="first",
        emit="at-watermark",
        changelog=("+I",),
        state=(keys, waiting),
    )


def temporal_sort(below: str) -> TemporalSort:
    """The rows by their time, then by their value, the highest first."""
    order = (
        SortKey(column="ts", direction="asc", nulls="first"),
        SortKey(column="v", direction="desc", nulls="last"),
    )
    return TemporalSort(id="sort", inputs=(below,), order=order, changelog=("+I",), state=())


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


def interval_join(
    left: str, right: str, kind: IntervalJoinType, lower: str, upper: str, *, is_keyed: bool = True
) -> IntervalJoin:
    """A join by time, of which the key and the value of both sides come out."""
    return IntervalJoin(
        id="join",
        inputs=(left, right),
        join_type=kind,
        keys=(JoinKey(left="k", right="k"),) if is_keyed else (),
        condition=None,
        left_time="ts",
        right_time="ts",
        lower=lower,
        upper=upper,
        output=tuple(
            JoinColumn(name=f"{side}_{column}", type=kind_of, side=side, column=column)
            for side in ("left", "right")
            for column, kind_of in {"k": "STRING", "v": "BIGINT"}.items()
        ),
        changelog=("+I",),
        state=(),
    )


def temporal_join(kind: JoinType, versions: Versions = "all", *, changelog: bool = False) -> TemporalJoin:
    """A join of ``a`` with the versions ``b`` on the key: all columns of ``a``, and the value and time of ``b``."""
    columns = (("left", "k"), ("left", "v"), ("left", "ts"), ("right", "v"), ("right", "ts"))
    types = {"k": "STRING", "v": "BIGINT", "ts": "TIMESTAMP(3)"}
    return TemporalJoin(
        id="join",
        inputs=("watermark_a", "watermark_b"),
        join_type=kind,
        keys=(JoinKey(left="k", right="k"),),
        left_time="ts",
        right_time="ts",
        versions=versions,
        condition=None,
        output=tuple(
            JoinColumn(
                name=f"{side}_{column}", type=types[column], side="right" if side == "right" else "left", column=column
            )
            for side, column in columns
        ),
        changelog=("+I", "-D") if changelog else ("+I",),
        state=(
            StateEntry(index=0, name="leftState", input="a"),
            StateEntry(index=1, name="rightState", input="b", settings=ttl_settings()),
        ),
    )
