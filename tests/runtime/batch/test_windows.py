"""Windows in batch jobs: the models of event time in one batch, and Flink's recording of programs without late rows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    AggregateCall,
    JoinColumn,
    JoinKey,
    Operator,
    SortKey,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.plans.operators.contract.declared import Inputs
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.table import builder_of
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.types import to_arrow
from tests.runtime.event_time import models
from tests.runtime.event_time.models import Model, Row, Sessions
from tests.runtime.event_time.models_of_programs import run
from tests.runtime.event_time.recorded import RECORDED, flink_late, flink_output, steps_of
from tests.runtime.event_time.times import FOREVER, NEVER, Zone, milliseconds

pytestmark = pytest.mark.spark

BERLIN, KOLKATA = "Europe/Berlin", "Asia/Kolkata"
WALLS = (Column(name="k", type="STRING"), Column(name="v", type="BIGINT"), Column(name="ts", type="TIMESTAMP(3)"))
INSTANTS = (*WALLS[:2], Column(name="ts", type="TIMESTAMP_LTZ(3)"))
COUNT = AggregateCall(name="n", function="COUNT", type="BIGINT")
SUM = AggregateCall(name="s", function="SUM", argument="v", type="BIGINT")
TUMBLE = Window(type="tumble", size="5 s")
HOP = Window(type="hop", size="10 s", slide="5 s")
CUMULATE = Window(type="cumulate", size="15 s", step="5 s")
SESSION = Window(type="session", gap="5 s")
OF_WINDOW = WindowColumns(start="window_start", end="window_end")
Part = Callable[[str, tuple[str, ...]], Operator]


def aggregate(window: Window, keys: Sequence[str] = ("k",), calls: Sequence[AggregateCall] = (COUNT, SUM)) -> Operator:
    return WindowAggregate(
        id="w",
        inputs=("t",),
        keys=tuple(keys),
        time="ts",
        window=window,
        aggregates=tuple(calls),
        start="window_start",
        end="window_end",
        window_time="window_time",
        changelog=("+I",),
        state=(),
    )


def table_function(window: Window, of: str = "t", keys: Sequence[str] = ()) -> Operator:
    return WindowTableFunction(
        id=f"windows_{of}",
        inputs=(of,),
        time="ts",
        window=window,
        keys=tuple(keys),
        start="window_start",
        end="window_end",
        window_time="window_time",
        changelog=("+I",),
        state=(),
    )


def rank(
    window: Window, keys: Sequence[str], direction: str, numbers: tuple[int, int], number: str | None = None
) -> Operator:
    return WindowRank(
        id="w",
        inputs=("windows_t",),
        key=tuple(keys),
        order=(SortKey(column="v", direction=direction, nulls="first" if direction == "asc" else "last"),),
        rank_start=numbers[0],
        rank_end=numbers[1],
        number=number,
        window=window,
        attached=OF_WINDOW,
        changelog=("+I",),
        state=(),
    )


def deduplicate(keep: str) -> Operator:
    return WindowDeduplicate(
        id="w",
        inputs=("windows_t",),
        key=("k",),
        time="ts",
        keep=keep,
        window=TUMBLE,
        attached=OF_WINDOW,
        changelog=("+I",),
        state=(),
    )


def join(kind: str, condition: str | None = None) -> Operator:
    sides = ("left",) if kind in ("semi", "anti") else ("left", "right")
    columns = [("k", "STRING"), ("v", "BIGINT"), ("window_start", "TIMESTAMP(3)")]
    return WindowJoin(
        id="w",
        inputs=("windows_l", "windows_r"),
        join_type=kind,
        keys=(JoinKey(left="k", right="k"),),
        condition=condition,
        window=TUMBLE,
        left_window=OF_WINDOW,
        right_window=OF_WINDOW,
        output=tuple(
            JoinColumn(name=f"{side}_{name}", type=of, side=side, column=name) for side in sides for name, of in columns
        ),
        changelog=("+I",),
        state=(),
    )


def built(spark: SparkSession, tables: dict[str, DataFrame], columns: tuple[Column, ...], *parts: Operator) -> pa.Table:
    """The rows of the last part of a batch job over ``tables``, with times in milliseconds."""
    frames, known = dict(tables), dict.fromkeys(tables, columns)
    plan = Plan(name="p", mode="batch")
    for part in parts:
        known[part.id] = part.output_columns(Inputs(plan=plan, columns=tuple(known[name] for name in part.inputs)))
        edges = Edges(
            backend=SparkBackend(session=spark),
            plan=plan,
            columns=known,
            changelog=dict.fromkeys(known, False),
            lookups=RequestRun(token="1"),
        )
        build = builder_of(part).batch
        assert build is not None
        frames[part.id] = build(part, [frames[name] for name in part.inputs], edges)
    rows = frames[parts[-1].id].toArrow()
    types = {column.name: to_arrow(column.type) for column in known[parts[-1].id]}
    assert rows.schema.names == list(types)
    assert [kind for kind in rows.schema.types if not pa.types.is_temporal(kind)] == [
        kind for kind in types.values() if not pa.types.is_temporal(kind)
    ]
    return rows


def values(rows: pa.Table, names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    columns = [
        [None if ms is None else ms // 1000 for ms in column.cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for column in (rows[name].combine_chunks() for name in names)
    ]
    return Counter(zip(*columns, strict=True))


def frame_of(
    spark: SparkSession, rows: Sequence[tuple[Any, Any, int]], columns: tuple[Column, ...] = WALLS
) -> DataFrame:
    """A table of keys, values and times in milliseconds."""
    types = [to_arrow(column.type) for column in columns]
    arrays = [
        [row[place] * (1000 if place == 2 else 1) if row[place] is not None else None for row in rows]
        for place in range(3)
    ]
    table = pa.table([pa.array(array, kind) for array, kind in zip(arrays, types, strict=True)], ["k", "v", "ts"])
    return spark.createDataFrame(table)


def rows_of(name: str, table: str | None = None) -> list[tuple[Any, Any, int]]:
    """The rows of a recorded program: a key, a number and a time in milliseconds."""
    rows = []
    for step in steps_of(name):
        key, number, time = step.values
        if table in (None, step.table):
            rows.append((key, None if number is None else int(number), milliseconds(str(time))))
    return rows


def by_model(name: str) -> Counter[tuple[Any, ...]]:
    """The results of a program's model with all rows in one batch, of which none is late."""
    last = len(RECORDED[name]["steps"]) - 1
    assert run(name, {last}).behind == 0
    return Counter(row for _, results in run(name, {last}).results for _, row in results)


AGGREGATES: dict[str, tuple[Operator, tuple[Column, ...]]] = {
    "tumble, one phase": (aggregate(TUMBLE), WALLS),
    "tumble, before the epoch": (aggregate(TUMBLE), WALLS),
    "tumble, all rows": (aggregate(TUMBLE, ()), WALLS),
    "tumble, offset": (aggregate(Window(type="tumble", size="5 s", offset="2 s")), WALLS),
    "tumble, negative offset": (aggregate(Window(type="tumble", size="5 s", offset="-2 s")), WALLS),
    "hop": (aggregate(HOP), WALLS),
    "hop, late for some windows": (aggregate(HOP), WALLS),
    "hop, offset": (aggregate(Window(type="hop", size="10 s", slide="5 s", offset="1 s")), WALLS),
    "cumulate": (aggregate(CUMULATE), WALLS),
    "cumulate, gaps": (aggregate(CUMULATE), WALLS),
    "cumulate, offset": (aggregate(Window(type="cumulate", size="15 s", step="5 s", offset="1 s")), WALLS),
    "session": (aggregate(SESSION), WALLS),
    "session, bridged": (aggregate(SESSION), WALLS),
    "session, without PARTITION BY": (aggregate(SESSION, ()), WALLS),
    "TIMESTAMP, days in Berlin": (aggregate(Window(type="tumble", size="1 d")), WALLS),
    "LTZ, four hours in Berlin, autumn": (aggregate(Window(type="tumble", size="4 h", zone=BERLIN)), INSTANTS),
    "LTZ, hop of days in Berlin, autumn": (
        aggregate(Window(type="hop", size="1 d", slide="12 h", zone=BERLIN)),
        INSTANTS,
    ),
    "LTZ, session in Berlin, autumn": (aggregate(Window(type="session", gap="90 min", zone=BERLIN)), INSTANTS),
    "LTZ, hours in Kolkata": (aggregate(Window(type="tumble", size="1 h", zone=KOLKATA)), INSTANTS),
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_a_window_aggregate_gives_what_its_model_gives(spark: SparkSession, name: str) -> None:
    operator, columns = AGGREGATES[name]
    assert isinstance(operator, WindowAggregate)
    rows = built(spark, {"t": frame_of(spark, rows_of(name), columns)}, columns, operator)
    assert values(rows, (*operator.keys, "window_start", "window_end", "n", "s")) == by_model(name)


ROWS: dict[str, tuple[Operator, ...]] = {
    "window top-n": (table_function(TUMBLE), rank(TUMBLE, ("k",), "desc", (1, 2), "r")),
    "window top-n, of all keys": (table_function(TUMBLE), rank(TUMBLE, (), "desc", (1, 2))),
    "window top-n, from the second on": (table_function(TUMBLE), rank(TUMBLE, (), "asc", (2, 3), "r")),
    "window top-n over hop": (table_function(HOP), rank(HOP, (), "desc", (1, 1))),
    "window deduplicate, first": (table_function(TUMBLE), deduplicate("first")),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_first_rows_of_a_window_are_those_of_its_model(spark: SparkSession, name: str) -> None:
    rows = built(spark, {"t": frame_of(spark, rows_of(name))}, WALLS, *ROWS[name])
    numbered = ("r",) if "r" in rows.schema.names else ()
    assert values(rows, ("k", "v", "ts", "window_start", "window_end", *numbered)) == by_model(name)


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi"])
def test_a_window_join_gives_what_its_model_gives(spark: SparkSession, kind: str) -> None:
    name = f"window join, {kind}"
    tables = {side: frame_of(spark, rows_of(name, table)) for side, table in (("l", "a"), ("r", "b"))}
    parts = (table_function(TUMBLE, "l"), table_function(TUMBLE, "r"), join(kind))
    rows = built(spark, tables, WALLS, *parts)
    joined = values(rows, rows.schema.names)
    if kind == "semi":
        assert joined == by_model(name)
    else:  # the model has one start, of the side that there is
        assert Counter({(*row[:2], *row[3:5], row[2] or row[5]): n for row, n in joined.items()}) == by_model(name)


def test_a_window_join_checks_the_rest_of_its_condition(spark: SparkSession) -> None:
    left, right = [("a", 1, 0), ("a", 2, 1), ("b", 3, 2)], [("a", 10, 3), ("b", 30, 4), ("a", 20, 5000)]
    tables = {"l": frame_of(spark, left), "r": frame_of(spark, right)}
    parts = (table_function(TUMBLE, "l"), table_function(TUMBLE, "r"), join("left", "l.v * 10 <> r.v"))
    rows = values(built(spark, tables, WALLS, *parts), ("left_k", "left_v", "right_v"))
    # By hand: 20 is in another window.
    assert rows == Counter([("a", 1, None), ("a", 2, 10), ("b", 3, None)])


def recorded(name: str) -> Counter[tuple[Any, ...]]:
    """The rows that Flink put out for a program without late rows, with times in milliseconds."""
    assert flink_late(name) == 0
    kinds = [parse_type(column.split(" ")[1]).root for column in RECORDED[name]["columns"]]
    return Counter(
        tuple(_value(word, kind) for word, kind in zip(row, kinds, strict=True))
        for rows in flink_output(name).values()
        for (_, row), count in rows.items()
        for _ in range(count)
    )


def _value(word: str | None, kind: str) -> Any:
    if word is None or kind == "STRING":
        return word
    return milliseconds(word) if kind.startswith("TIMESTAMP") else int(word)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("LTZ, days in Berlin, spring", "1 d"),
        ("LTZ, hours in Berlin, spring", "1 h"),
        ("LTZ, hours in Berlin, autumn", "1 h"),
    ],
)
def test_windows_around_a_change_of_the_clock_are_flinks(spark: SparkSession, name: str, size: str) -> None:
    window = Window(type="tumble", size=size, zone=BERLIN)
    rows = built(spark, {"t": frame_of(spark, rows_of(name), INSTANTS)}, INSTANTS, aggregate(window))
    assert values(rows, ("k", "window_start", "window_end", "window_time", "n", "s")) == recorded(name)


def test_calls_that_slices_cannot_merge_have_all_rows_of_a_window(spark: SparkSession) -> None:
    given = rows_of("hop, distinct and average")
    calls = (
        AggregateCall(name="d", function="COUNT", argument="v", distinct=True, type="BIGINT"),
        AggregateCall(name="a", function="AVG", argument="v", type="BIGINT"),
        AggregateCall(name="m", function="MIN", argument="v", type="BIGINT"),
    )
    rows = built(spark, {"t": frame_of(spark, given)}, WALLS, aggregate(HOP, calls=calls))
    windows: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for key, value, at in given:
        for window in models.Windows("hop", 10_000, 5000).of(at):
            windows[key, *window].append(value)
    expected = Counter((*place, len(set(all_)), sum(all_) // len(all_), min(all_)) for place, all_ in windows.items())
    assert values(rows, ("k", "window_start", "window_end", "d", "a", "m")) == expected


MINUTE, HOUR = 60_000, 3_600_000
SPRING, AUTUMN = milliseconds("2024-03-31T00:00"), milliseconds("2024-10-26T22:00")
RANDOM: dict[str, tuple[Window, Model]] = {
    "hop of no whole slides": (
        Window(type="hop", size="1 h", slide="25 min", offset="-30 s"),
        models.WindowAggregate(models.Windows("hop", HOUR, 25 * MINUTE, -30_000)),
    ),
    "hop with times between windows": (
        Window(type="hop", size="10 min", slide="25 min", zone=BERLIN),
        models.WindowAggregate(models.Windows("hop", 10 * MINUTE, 25 * MINUTE), Zone(BERLIN)),
    ),
    "hop of 30 windows": (
        Window(type="hop", size="1 h", slide="2 min", offset="-30 s"),
        models.WindowAggregate(models.Windows("hop", HOUR, 2 * MINUTE, -30_000)),
    ),
    "cumulate": (
        Window(type="cumulate", size="1 h", step="7500 ms", offset="-7 s"),
        models.WindowAggregate(models.Windows("cumulate", HOUR, 7500, -7000)),
    ),
    "hop in Berlin": (
        Window(type="hop", size="2 h", slide="30 min", zone=BERLIN),
        models.WindowAggregate(models.Windows("hop", 2 * HOUR, 30 * MINUTE), Zone(BERLIN)),
    ),
    "cumulate in Berlin": (
        Window(type="cumulate", size="1 d", step="1 h", zone=BERLIN),
        models.WindowAggregate(models.Windows("cumulate", 24 * HOUR, HOUR), Zone(BERLIN)),
    ),
    "session in Berlin": (Window(type="session", gap="5 min", zone=BERLIN), Sessions(5 * MINUTE, Zone(BERLIN))),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_rows_give_what_the_model_gives(spark: SparkSession, name: str) -> None:
    window, model = RANDOM[name]
    dice = random.Random(name)
    steps = [dice.choice((SPRING, AUTUMN)) + dice.randrange(6 * HOUR) // 500 * 500 for _ in range(300)]
    given = [(dice.choice((None, "a", "b")), dice.choice((None, 1, 2, -3)), at) for at in steps]
    columns = WALLS if window.zone is None else INSTANTS
    rows = built(spark, {"t": frame_of(spark, given, columns)}, columns, aggregate(window))
    sums = Counter(
        {(*row[:4], row[4] or 0): n for row, n in values(rows, ("k", "window_start", "window_end", "n", "s")).items()}
    )
    results = model.batch([Row(at, key, value) for key, value, at in given], NEVER, FOREVER - 1)
    assert sums == Counter(row for _, row in results)


def test_each_row_has_its_session(spark: SparkSession) -> None:
    given = [("a", 1, 1000), ("a", 2, 6000), ("a", 3, 12_000), ("b", 4, 6500), (None, 5, 0), (None, 6, 4999)]
    part = table_function(SESSION, keys=("k",))
    rows = built(spark, {"t": frame_of(spark, given)}, WALLS, part)
    # By hand: the row at 6 s touches the end of the first session, the row at 12 s comes a second too late.
    assert values(rows, ("v", "window_start", "window_end", "window_time")) == Counter(
        [
            (1, 1000, 11_000, 10_999),
            (2, 1000, 11_000, 10_999),
            (3, 12_000, 17_000, 16_999),
            (4, 6500, 11_500, 11_499),
            (5, 0, 9999, 9998),
            (6, 0, 9999, 9998),
        ]
    )
