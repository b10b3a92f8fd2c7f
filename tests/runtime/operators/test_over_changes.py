"""OVER by a column that is no time leaves what a model computes from the rows that are left, and changes nothing else.

Histories are random, and come in random batches to several partitions, whose number changes between batches. The model
sorts the rows of a key and looks at all rows before each.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from hintplan.runtime.state.manifest import read_tables
from tests.runtime.changelog import Event
from tests.runtime.event_time.test_histories import batches_of
from tests.runtime.partitioned import Partitioned

FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = 't'"
ALL = (
    "SUM(w) OVER x, COUNT(w) OVER x, AVG(w) OVER x, MIN(w) OVER x, MAX(w) OVER x, FIRST_VALUE(w) OVER x, "
    "LAST_VALUE(w) OVER x, RANK() OVER x, DENSE_RANK() OVER x, LAG(w) OVER x, LAG(w, 2, v) OVER x"
)
OF_ROWS = "SUM(w) OVER x, COUNT(*) OVER x, MAX(w) OVER x, FIRST_VALUE(w) OVER x"
ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


class Row(NamedTuple):
    k: str | None
    v: int | None
    w: int | None


@cache
def plan_of(calls: str, window: str, changelog: bool, ttl: str = "0 s") -> Plan:
    """A plan of ``calls`` over a stream in the order of ``v``."""
    columns = calls.count("OVER")
    types = ", ".join(f"c{number} BIGINT" for number in range(columns))
    options = ", 'source.changelog' = 'true'" if changelog else ""
    return compile_sql(
        f"SET 'table.exec.state.ttl' = '{ttl}';\n"
        f"CREATE TABLE t (k STRING, v BIGINT, w BIGINT) WITH ({FILES}{options});\n"
        f"CREATE TABLE r (k STRING, v BIGINT, w BIGINT, {types}) WITH ('connector' = 'print');\n"
        f"INSERT INTO r SELECT k, v, w, {calls} FROM t WINDOW x AS ({window});"
    )


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows by ``v``, NULL first; of equal rows, the first to arrive comes first."""
    return sorted(rows, key=lambda row: (row.v is not None, row.v or 0))


def expected(rows: Sequence[Row], *, peers: bool, keyed: bool = True) -> Counter:
    """The rows that are left, with their results."""
    by_key: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row.k if keyed else None].append(row)
    result: Counter = Counter()
    for of_key in by_key.values():
        ordered = in_order(of_key)
        for place, row in enumerate(ordered):
            equal = [number for number, other in enumerate(ordered) if other.v == row.v]
            frame = ordered[: (equal[-1] if peers else place) + 1]
            result[(*row, *(of_all if peers else of_rows)(ordered, place, equal[0], frame))] += 1
    return result


def of_rows(ordered: list[Row], place: int, first: int, frame: list[Row]) -> tuple[Any, ...]:
    values = [row.w for row in frame if row.w is not None]
    return sum(values) if values else None, len(frame), max(values, default=None), values[0] if values else None


def of_all(ordered: list[Row], place: int, first: int, frame: list[Row]) -> tuple[Any, ...]:
    values = [row.w for row in frame if row.w is not None]
    total = sum(values) if values else None
    mean = None if total is None else abs(total) // len(values) * (1 if total >= 0 else -1)
    dense = len({row.v for row in ordered[: first + 1]})
    lag = ordered[place - 1].w if place else None
    lag_two = ordered[place - 2].w if place > 1 else ordered[place].v
    ends = (min(values, default=None), max(values, default=None), *((values[0], values[-1]) if values else (None,) * 2))
    return total, len(values), mean, *ends, first + 1, dense, lag, lag_two


def history(dice: random.Random, *, changes: bool, size: int = 120) -> list[tuple[str, Row]]:
    """Added rows, and deletions of some of them, or of rows that were never there."""
    events: list[tuple[str, Row]] = []
    rows: list[Row] = []
    for _ in range(size):
        if changes and rows and dice.random() < 0.35:
            row = dice.choice(rows)
            rows.remove(row)
            events.append(("-D", row))
        elif changes and dice.random() < 0.03:
            events.append(("-D", Row("never", 1, 1)))
        else:
            v, w = (dice.choice([None, *range(-3, 4)]) for _ in range(2))
            rows.append(Row(dice.choice(["a", "b", "c", None]), v, w))
            events.append(("+I", rows[-1]))
    return events


def left(events: Sequence[tuple[str, Row]]) -> list[Row]:
    """The rows in the order of their arrival; a deletion takes the first of equal rows."""
    rows: list[Row] = []
    for kind, row in events:
        if kind == "+I":
            rows.append(row)
        elif row in rows:
            rows.remove(row)
    return rows


def given(events: Sequence[tuple[str, Row]], *, changes: bool) -> dict[str, list[tuple]]:
    return {"t": [(*((kind,) if changes else ()), *row) for kind, row in events]}


def check_pairs(events: Sequence[Event]) -> None:
    """Each -U is directly before its +U, which has another result; all -D come first."""
    kinds = [kind for kind, _ in events]
    for number, (kind, row) in enumerate(events):
        if kind == "-U":
            following, after = events[number + 1]
            assert following == "+U"
            assert after[:3] == row[:3]
            assert after != row
        assert (kind == "+U") == (number > 0 and kinds[number - 1] == "-U")
    assert kinds == [kind for kind in kinds if kind == "-D"] + [kind for kind in kinds if kind != "-D"]


CASES = {
    "all functions": (ALL, "PARTITION BY k ORDER BY v", True),
    "rows": (OF_ROWS, f"PARTITION BY k ORDER BY v {ROWS}", False),
    "without a key": (ALL, "ORDER BY v", True),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("changes", [False, True], ids=["added rows", "changes"])
@pytest.mark.parametrize("name", CASES)
def test_a_history_leaves_the_results_of_the_rows_that_are_left(name: str, changes: bool, seed: int) -> None:
    calls, window, peers = CASES[name]
    dice = random.Random(f"{name} {changes} {seed}")
    pipeline = Partitioned(plan_of(calls, window, changes), 1)
    events = history(dice, changes=changes)
    seen: list[tuple[str, Row]] = []
    for batch in batches_of(dice, events):  # type: ignore[type-var, arg-type]
        pipeline = pipeline.rescaled(dice.choice((1, 1, 2, 5)))
        pipeline.batch(given(batch, changes=changes))  # type: ignore[arg-type]
        seen += batch  # type: ignore[arg-type]
        assert pipeline.result == expected(left(seen), peers=peers, keyed="PARTITION" in window)
        if pipeline.partitions == 1:
            check_pairs(pipeline.events)
        pipeline.events.clear()


def test_a_new_row_corrects_the_rows_behind_it_and_no_others() -> None:
    pipeline = Partitioned(plan_of("SUM(w) OVER x", "PARTITION BY k ORDER BY v", False), 1)
    pipeline.batch({"t": [("a", 1, 1), ("a", 3, 4), ("b", 3, 7)]})
    pipeline.events.clear()
    pipeline.batch({"t": [("a", 2, 2)]})
    assert pipeline.events == [
        ("+I", ("a", 2, 2, 3)),
        ("-U", ("a", 3, 4, 5)),
        ("+U", ("a", 3, 4, 7)),
    ]


def test_a_row_that_is_replaced_in_a_batch_by_an_equal_row_changes_nothing() -> None:
    pipeline = Partitioned(plan_of("SUM(w) OVER x", "PARTITION BY k ORDER BY v", True), 1)
    pipeline.batch({"t": [("+I", "a", 1, 1), ("+I", "a", 3, 4)]})
    pipeline.events.clear()
    pipeline.batch({"t": [("-U", "a", 1, 1), ("+U", "a", 1, 1)]})
    assert pipeline.events == []


def test_all_rows_of_a_key_expire_one_ttl_after_its_last_change() -> None:
    pipeline = Partitioned(plan_of("SUM(w) OVER x", "PARTITION BY k ORDER BY v", True, "10 s"), 1)
    pipeline.batch({"t": [("+I", "a", 1, 1), ("+I", "b", 1, 1)]}, now=1_000)
    pipeline.batch({"t": [("+I", "a", 2, 2)]}, now=9_000)
    pipeline.events.clear()
    pipeline.batch({"t": [("+I", "a", 3, 4), ("+I", "b", 3, 4)]}, now=12_000)  # b has expired, and a has not
    assert Counter(pipeline.events) == Counter([("+I", ("a", 3, 4, 7)), ("+I", ("b", 3, 4, 4))])
    pipeline.events.clear()
    pipeline.batch({"t": [("-D", "a", 1, 1), ("+I", "a", 5, 8)]}, now=30_000)
    assert pipeline.events == [("+I", ("a", 5, 8, 8))]


def test_state_has_each_row_once_and_is_empty_after_all_are_deleted() -> None:
    pipeline = Partitioned(plan_of("SUM(w) OVER x", "PARTITION BY k ORDER BY v", True), 1)
    rows = [("a", 1, 1), ("a", 1, 1), ("b", None, 2)]
    pipeline.batch({"t": [("+I", *row) for row in rows]})
    ((part,),) = pipeline.parts.values()
    assert part.manifest is not None
    assert read_tables(part.manifest)["rows"].rows == 2
    pipeline.batch({"t": [("-D", *row) for row in rows]})
    assert part.state_rows == 0
    assert pipeline.result == Counter()
