"""Plans with windows, written by hand: the hottest auction of each window, as query 5 of Nexmark asks for it."""

from __future__ import annotations

from dataclasses import replace

from hintplan.plans.analysis.columns import check_columns
from hintplan.plans.declarations.computations import AggregateCall, SortKey
from hintplan.plans.declarations.tables import Column, Table, TableColumn, Watermark
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Join,
    JoinColumn,
    JoinKey,
    Operator,
    Scan,
    Sink,
    Union,
    WatermarkAssigner,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.state import StateEntry, ttl_settings
from hintplan.plans.settings.watermark import WATERMARK

COLUMNS = (
    TableColumn(name="auction", type="BIGINT"),
    TableColumn(name="price", type="BIGINT"),
    TableColumn(name="ts", type="TIMESTAMP(3)"),
    TableColumn(name="at", type="TIMESTAMP_LTZ(3)"),
)
BID = Table(
    columns=COLUMNS,
    watermark=Watermark(column="ts", expression="ts - INTERVAL '4' SECOND"),
    options={"connector": "filesystem", "path": "/in/bid", "format": "json"},
)
HOP = Window(type="hop", size="10 s", slide="2 s")
TUMBLE = Window(type="tumble", size="10 s")
SESSION = Window(type="session", gap="10 s")
IN_WINDOW = WindowColumns(start="window_start", end="window_end")
NUMBER = AggregateCall(name="num", function="COUNT", type="BIGINT NOT NULL")


def watermark(delay: str = "4 s", **layers: dict[str, str]) -> dict[str, Settings]:
    """Return the settings of an assigner whose table has this delay."""
    return {WATERMARK.name: WATERMARK.resolved({"table": {"delay": delay}, **layers})}


def entry(name: str, index: int = 0, source: str = "bid") -> StateEntry:
    return StateEntry(index=index, name=name, input=source)


def assigner(source: str = "scan_bid", name: str = "watermark_bid", column: str = "ts") -> WatermarkAssigner:
    return WatermarkAssigner(id=name, inputs=(source,), column=column, base=column, settings=watermark())


def counted(window: Window = HOP, source: str = "watermark_bid", time: str | None = "ts") -> WindowAggregate:
    return WindowAggregate(
        id="window_bid",
        inputs=(source,),
        keys=("auction",),
        time=time,
        window=window,
        aggregates=(NUMBER,),
        start="window_start",
        end="window_end",
        window_time="window_time",
        changelog=("+I",),
        state=(entry("windowAggregateState"),),
    )


def table_function(window: Window = TUMBLE, keys: tuple[str, ...] = ()) -> WindowTableFunction:
    return WindowTableFunction(
        id="windows_bid",
        inputs=("watermark_bid",),
        time="ts",
        window=window,
        keys=keys,
        start="window_start",
        end="window_end",
        window_time="window_time",
        changelog=("+I",),
        state=(entry("sessionState"),) if window.type == "session" else (),
    )


def ranked(window: Window = HOP, source: str = "window_bid", order: str = "num") -> WindowRank:
    return WindowRank(
        id="rank_bid",
        inputs=(source,),
        key=(),
        order=(SortKey(column=order, direction="desc", nulls="last"),),
        rank_start=1,
        rank_end=1,
        window=window,
        attached=IN_WINDOW,
        changelog=("+I",),
        state=(entry("windowRankState"),),
    )


def deduplicated(window: Window = TUMBLE) -> WindowDeduplicate:
    return WindowDeduplicate(
        id="deduplicate_bid",
        inputs=("windows_bid",),
        key=("auction",),
        time="ts",
        keep="last",
        window=window,
        attached=IN_WINDOW,
        changelog=("+I",),
        state=(entry("windowDeduplicateState"),),
    )


def joined(left: str, right: str, window: Window = HOP) -> WindowJoin:
    return WindowJoin(
        id="join_bid",
        inputs=(left, right),
        join_type="inner",
        keys=(JoinKey(left="auction", right="auction"),),
        condition=None,
        window=window,
        left_window=IN_WINDOW,
        right_window=IN_WINDOW,
        output=(
            JoinColumn(name="auction", type="BIGINT", side="left", column="auction"),
            JoinColumn(name="num", type="BIGINT NOT NULL", side="right", column="num"),
        ),
        changelog=("+I",),
        state=(entry("leftState", 0, "a"), entry("rightState", 1, "b")),
    )


def regular_join(left: str, right: str) -> Join:
    columns = ("auction", "price", "ts", "at")
    types = {column.name: column.type for column in COLUMNS}
    return Join(
        id="join_bid",
        inputs=(left, right),
        join_type="inner",
        keys=(JoinKey(left="auction", right="auction"),),
        condition=None,
        output=tuple(JoinColumn(name=name, type=types[name], side="left", column=name) for name in columns),
        changelog=("+I",),
        state=tuple(
            StateEntry(index=index, name=name, input="bid", settings=ttl_settings(edit="1 d"))
            for index, name in enumerate(("leftState", "rightState"))
        ),
    )


def scan(name: str = "scan_bid") -> Scan:
    return Scan(id=name, table="bid", columns=("auction", "price", "ts", "at"))


def plan_of(*operators: Operator, config: dict[str, str] | None = None) -> Plan:
    """Return a plan that writes the columns of the last of ``operators``."""
    inner = Plan(name="windows", config=config or {}, tables={"bid": BID}, operators=operators)
    columns = check_columns(inner)[0].get(operators[-1].id, (Column(name="num", type="BIGINT"),))
    result = Table(
        columns=tuple(TableColumn(name=column.name, type=column.type) for column in columns),
        options={"connector": "print"},
    )
    sink = Sink(id="sink_result", inputs=(operators[-1].id,), table="result")
    return replace(inner, tables={"bid": BID, "result": result}, operators=(*operators, sink))


def hot_items() -> Plan:
    """Return the plan of the most frequent auction in each window."""
    return plan_of(scan(), assigner(), counted(), ranked())


def united() -> Plan:
    """Return a plan that counts the rows of two tables, each with a watermark."""
    a, b = scan("scan_a"), scan("scan_b")
    first, second = assigner("scan_a", "watermark_a"), assigner("scan_b", "watermark_b")
    union = Union(id="union_ab", inputs=("watermark_a", "watermark_b"))
    return plan_of(a, b, first, second, union, counted(source="union_ab"))
