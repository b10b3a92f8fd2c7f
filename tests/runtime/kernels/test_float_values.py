"""FLOAT and DOUBLE with -0.0, infinities and NaNs of several bits: any slicing gives what SQLite gives at once.

SQLite has the numbers as text with an order of its own, in which NaN comes last, and adds them up with Python's floats;
so all that it shares with the code under test is the meaning: 0.0 equals -0.0, and NaN equals NaN and is greater than
all numbers. Results are compared as text: what leaves an operator with state has no -0.0.
"""

from __future__ import annotations

import math
import random
import re
import sqlite3
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hintplan
from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.comparison import normalise_floats
from hintplan.runtime.state.manifest import SegmentEntry, StateTable, write_manifest
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.aggregates import Run, aggregate, call
from tests.runtime.changelog import delta, events_of
from tests.runtime.pipeline import Pipeline

OTHER_NAN, THIRD_NAN = (
    struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0xFFF8000000000001, 0x7FF8000000000007)
)
VALUES = (None, 0.0, -0.0, 1.5, -1.5, 2.25, math.inf, -math.inf, math.nan, OTHER_NAN, THIRD_NAN)
TABLES = "".join(
    f"CREATE TABLE {name} (id BIGINT, k BIGINT, d DOUBLE, f FLOAT) "
    f"WITH ('connector' = 'filesystem', 'path' = '{name}', 'format' = 'json'{more});\n"
    for name, more in (("a", ""), ("b", ""), ("g", ", 'source.changelog' = 'true'"))
)
CALLS = (
    "COUNT({0}), COUNT(DISTINCT {0}), SUM({0}), SUM(DISTINCT {0}), AVG({0}), MIN({0}), MAX({0}), "
    "SUM({0}) FILTER (WHERE {1} > 2)"
)
KINDS = {"x": "BIGINT", "y": "DOUBLE", "z": "FLOAT"}
# The types of the result (KINDS), and the query.
QUERIES: dict[str, tuple[str, str]] = {
    "calls": ("xxxyyyyyy", f"SELECT k, {CALLS.format('d', 'id')} FROM a GROUP BY k"),
    "calls of FLOAT": ("xxxzzzzzz", f"SELECT k, {CALLS.format('f', 'id')} FROM a GROUP BY k"),
    "calls over a changelog": ("xxxyyyyyy", f"SELECT k, {CALLS.format('d', 'id')} FROM g GROUP BY k"),
    "calls of FLOAT over a changelog": ("xxxzzzzzz", f"SELECT k, {CALLS.format('f', 'id')} FROM g GROUP BY k"),
    "calls without a key over a changelog": ("xxyyyyyy", f"SELECT {CALLS.format('d', 'id')} FROM g"),
    "calls over an outer join": (
        "yxxyyyyyy",
        f"SELECT b.d, {CALLS.format('a.d', 'a.id')} FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.d",
    ),
    "grouped by DOUBLE": ("yxxz", "SELECT d, COUNT(*), SUM(id), MAX(f) FROM a GROUP BY d"),
    "grouped by both": ("yzx", "SELECT d, f, COUNT(*) FROM g GROUP BY d, f"),
    "distinct": ("yz", "SELECT DISTINCT d, f FROM g"),
    "of groups": ("yx", "SELECT t.m, COUNT(*) FROM (SELECT k, MAX(d) AS m FROM g GROUP BY k) AS t GROUP BY t.m"),
    "sums of extremes": ("yyy", "SELECT SUM(m), MIN(m), MAX(m) FROM (SELECT k, MIN(d) AS m FROM g GROUP BY k) AS t"),
    "inner join": ("xxy", "SELECT a.id, b.id, b.d FROM a JOIN b ON a.d = b.d"),
    "left join": ("xxyy", "SELECT a.id, b.id, a.d, b.d FROM a LEFT JOIN b ON a.d = b.d AND a.id < b.id"),
    "right join of a changelog": ("xxyz", "SELECT g.id, b.id, g.d, b.f FROM g RIGHT JOIN b ON g.f = b.f AND g.d = b.d"),
    "full join of a changelog": ("xxyy", "SELECT g.id, b.id, g.d, b.d FROM g FULL JOIN b ON g.d = b.d"),
    "what a join carries": ("xyy", "SELECT g.id, g.d, b.d FROM g LEFT JOIN b ON g.k = b.k"),
    "in": ("xy", "SELECT id, d FROM g WHERE d IN (SELECT d FROM b)"),
    "not exists": ("xz", "SELECT id, f FROM g WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.f = g.f)"),
    "union": ("y", "SELECT d FROM a UNION SELECT d FROM b"),
    "intersect": ("yz", "SELECT d, f FROM a INTERSECT SELECT d, f FROM b"),
    "except": ("y", "SELECT d FROM a EXCEPT SELECT d FROM g"),
}  # fmt: skip


def plan_of(kinds: str, query: str):
    columns = ", ".join(f"c{i} {KINDS[kind]}" for i, kind in enumerate(kinds))
    text = f"{TABLES} CREATE TABLE r ({columns}) WITH ('connector' = 'blackhole'); INSERT INTO r {query};"
    return hintplan.compile_sql(text, name="q")


PLANS = {name: plan_of(*query) for name, query in QUERIES.items()}


def rows_of(dice: random.Random, size: int) -> list[tuple[str, tuple[Any, ...]]]:
    """Rows of all tables; of the changelog also rows taken back, as another of the numbers that are equal."""
    rows: list[tuple[str, tuple[Any, ...]]] = []
    there: list[tuple[Any, ...]] = []
    for number in range(size):
        table = dice.choice("abgg")
        if table == "g" and there and dice.random() < 0.45:
            number, k, *values = there.pop(dice.randrange(len(there)))
            rows.append(("g", ("-D", number, k, *(dice.choice(equals(value)) for value in values))))
            continue
        row = (number % 7, dice.choice((None, 1, 2)), dice.choice(VALUES), dice.choice(VALUES))
        if table == "g":
            there.append(row)
        rows.append((table, ("+I", *row) if table == "g" else row))
    return rows


def equals(value: float | None) -> list[float | None]:
    return [v for v in VALUES if text_of(v) == text_of(value)]


def text_of(value: Any) -> Any:
    return value if not isinstance(value, float) else "nan" if math.isnan(value) else repr(value + 0.0)


class _Sum:
    """SUM and AVG of numbers that are text; finite ones exactly, so that their order does not matter."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, value: str | float | None) -> None:
        if value is not None:
            self.values.append(float(value))

    def sum(self) -> float:
        finite = [v for v in self.values if math.isfinite(v)]
        return sum((v for v in self.values if not math.isfinite(v)), math.fsum(finite))

    def finalize(self) -> str | None:
        return repr(self.sum()) if self.values else None


class _Average(_Sum):
    def finalize(self) -> str | None:
        return repr(self.sum() / len(self.values)) if self.values else None


def _compare(one: str, other: str) -> int:
    first, second = ((math.isnan(float(text)), float(text)) for text in (one, other))
    return 0 if one == other else -1 if first < second else 1


def by_sqlite(query: str, rows: Sequence[tuple[str, tuple[Any, ...]]]) -> Counter:
    database = sqlite3.connect(":memory:")
    database.create_collation("numbers", _compare)
    database.create_aggregate("sum", 1, _Sum)  # type: ignore[arg-type]
    database.create_aggregate("avg", 1, _Average)  # type: ignore[arg-type]
    for name in "abg":
        database.execute(f"CREATE TABLE {name} (id, k, d TEXT COLLATE numbers, f TEXT COLLATE numbers)")
    left: Counter = Counter()
    for table, row in rows:
        kind, *values = row if table == "g" else ("+I", *row)
        left[table, tuple(map(text_of, values))] += 1 if kind == "+I" else -1
    for (table, values), count in left.items():
        database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", [values] * count)
    found = Counter(database.execute(query).fetchall())
    database.close()
    without_a_row = not any(count for (table, _), count in left.items() if f" {table}" in query)
    return Counter() if without_a_row else found  # a stream has no row of no rows


@pytest.mark.part(of=2)
@pytest.mark.parametrize("name", QUERIES)
def test_any_slicing_gives_what_sqlite_gives_at_once(name: str) -> None:
    kinds, query = QUERIES[name]
    for seed in range(5):
        dice = random.Random(f"{name} {seed}")
        rows = rows_of(dice, dice.choice((3, 12, 40)))
        expected = Counter()
        for row, count in by_sqlite(query, rows).items():
            expected[tuple(rounded(v, kind) for v, kind in zip(row, kinds, strict=True))] += count
        for most in (1, 4, len(rows)):
            pipeline = Pipeline(PLANS[name])
            begin = 0
            while begin < len(rows):
                end = begin + dice.randint(1, most)
                part = rows[begin:end]
                pipeline.batch({table: [row for t, row in part if t == table] for table in "abg"})
                pipeline = pipeline.resumed() if dice.random() < 0.3 else pipeline
                begin = end
            found: Counter = Counter()
            for row, count in pipeline.result.items():
                found[tuple(rounded(v, kind) for v, kind in zip(row, kinds, strict=True))] += count
            assert found == expected, (seed, most)


def rounded(value: Any, kind: str) -> Any:
    """A value as text, of a FLOAT with the digits that it has."""
    if value is None or kind == "x":
        return int(float(value)) if isinstance(value, str) else value
    return repr(float(np.float32(value))) if kind == "z" else repr(float(value))


@pytest.mark.parametrize("most", [1, 2, 9])
def test_rows_that_replace_each_other_by_a_key_of_double(most: int) -> None:
    """Upserts by a key of -0.0, 0.0 and NaN into a sink with another such key; by hand, the last row of each key."""
    plan = hintplan.compile_sql(
        "CREATE TABLE u (d DOUBLE, v BIGINT, f FLOAT, PRIMARY KEY (d) NOT ENFORCED) WITH ('connector' = 'filesystem', "
        "'path' = 'u', 'format' = 'json', 'source.changelog' = 'upsert');"
        "CREATE TABLE r (f FLOAT, v BIGINT, d DOUBLE, PRIMARY KEY (f) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        "'url' = 'jdbc:sqlite:r.db', 'table-name' = 'r');"
        "INSERT INTO r SELECT f, v, d FROM u ON CONFLICT DO DEDUPLICATE;",
        name="q",
    )
    assert {"changelog-normalize", "sink-materialize"} <= {type_of(operator) for operator in plan.operators}
    events = [
        ("+I", 0.0, 1, -0.0), ("+U", -0.0, 2, 0.0), ("+I", math.nan, 3, OTHER_NAN), ("+U", OTHER_NAN, 4, math.nan),
        ("+I", 1.5, 5, 0.0), ("-D", -0.0, None, None), ("-D", THIRD_NAN, None, None), ("+U", 1.5, 6, -0.0),
        ("+I", math.inf, 7, 0.0), ("+U", math.inf, 8, -0.0),
    ]  # fmt: skip
    pipeline = Pipeline(plan)
    for begin in range(0, len(events), most):
        pipeline.batch({"u": events[begin : begin + most]})
    table: dict[Any, Any] = {}
    for kind, row in pipeline.events:
        assert "-0.0" not in map(repr, row)
        if kind in ("+I", "+U"):
            table[row[0]] = row
        else:
            del table[row[0]]
    # Of u, 1.5 -> (6, 0.0) and Infinity -> (8, 0.0) are left, and both have the key 0.0 of r; 8 came last.
    assert table == {0.0: (0.0, 8, math.inf)}


def type_of(operator: Any) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "-", type(operator).__name__).lower()


def test_a_sum_comes_back_when_what_is_not_finite_is_taken_back() -> None:
    """By hand; Flink 2.3 subtracts an infinity from an infinity, and its sum is NaN from then on."""
    columns = pa.schema([("k", pa.string()), ("v", pa.float64())])
    sums = aggregate(
        call("SUM", "v", "DOUBLE"), call("AVG", "v", "DOUBLE"), types=(pa.float64(), pa.float64()), columns=columns
    )
    run = Run(sums)

    def shown(*events: tuple[str, float]) -> list[Any]:
        return [text_of(v) for v in run.batch([(kind, ("x", v)) for kind, v in events])[-1][1][1:]]

    assert shown(("+I", 1.0), ("+I", math.inf)) == ["inf", "inf"]
    assert shown(("+I", -math.inf)) == ["nan", "nan"]
    assert shown(("-D", math.inf)) == ["-inf", "-inf"]
    assert shown(("+I", math.nan)) == ["nan", "nan"]
    assert run.batch([("-D", ("x", -math.inf))]) == []  # it is NaN still
    assert shown(("-D", math.nan), ("+I", 4.0)) == ["5.0", "2.5"]


NUMBERS = pa.schema([("d", pa.float64()), ("v", pa.float64())])


def test_what_was_stored_before_numbers_were_normal_is_found_again() -> None:
    """State that rows with -0.0 and other NaNs came to as they were, continues with normal rows: hash and comparison
    of stored rows never told them apart.
    """
    counts = aggregate(call("COUNT"), call("MIN", "v", "DOUBLE"), types=(pa.int64(), pa.float64()), columns=NUMBERS,
                       keys=("d",))  # fmt: skip
    store, manifest = MemoryStore(), None
    found = []
    for rows in ([(-0.0, -0.0), (OTHER_NAN, OTHER_NAN)], [(0.0, 0.0), (math.nan, math.nan)]):
        table = delta(counts.inputs[0], [("+I", row) for row in rows], lambda row: hash(text_of(row[0])))
        done = counts.process([table], manifest, store, 0)
        manifest, found = done.manifest, events_of(done.output)
    assert [(kind, tuple(map(text_of, row))) for kind, row in found if kind == "+U"] == [
        ("+U", ("0.0", 2, "0.0")),
        ("+U", ("nan", 2, "nan")),
    ]


def test_a_maximum_or_a_sum_with_another_meaning_is_not_taken_over() -> None:
    """Earlier versions passed over NaN in MAX, and kept one number for a sum that may be taken back."""
    for function, changelog, columns in (
        ("MAX", False, ["__max(v)"]),
        ("SUM", True, ["__sum(v)", "__count(v)"]),
    ):
        operator = aggregate(call(function, "v", "DOUBLE"), types=(pa.float64(),), columns=NUMBERS, keys=("d",),
                             changelog=changelog)  # fmt: skip
        layout = operator.accumulation.groups_layout
        kinds = [pa.int64() if name == "__count(v)" else pa.float64() for name in columns]
        before = replace(layout, payload=pa.schema(zip(columns, kinds, strict=True)))
        tables = {
            each.name: StateTable(
                fingerprint=(before if each is layout else each).fingerprint, rows=1,
                segments=(SegmentEntry(f"{each.name}/1", 1, 1, 0, 0, False),),
            )
            for each in (layout, *operator.layouts[1:])
        }  # fmt: skip
        with pytest.raises(RunError, match="'groups' has another layout") as refused:
            operator.process([None], write_manifest(tables), MemoryStore(), 0)
        assert "the version of hintplan that wrote the checkpoint" in str(refused.value)


def test_layouts_that_mean_what_they_meant_are_as_they_were() -> None:
    """Fingerprints by which checkpoints of today know their tables."""
    kept = aggregate(call("SUM", "v", "DOUBLE"), call("MIN", "v", "DOUBLE"), types=(pa.float64(),) * 2, columns=NUMBERS,
                     keys=("d",), changelog=False)  # fmt: skip
    integers = aggregate(call("SUM", "v"), call("MAX", "v"))
    found = [operator.accumulation.groups_layout.fingerprint for operator in (kept, integers)]
    assert found == ["b0598659ade3998a", "5ce92aa6150e7c37"]


def test_only_columns_of_float_and_double_are_looked_at() -> None:
    rows = pa.table(
        {"d": pa.array([-0.0, THIRD_NAN, None]), "f": pa.array([OTHER_NAN, -0.0, 1.5], pa.float32()), "i": [1, 2, 3]}
    )
    found = normalise_floats(rows)
    assert found.schema == rows.schema
    bits = [np.asarray(found[name].combine_chunks().fill_null(7)).tobytes().hex() for name in ("d", "f")]
    assert bits == [struct.pack("<3d", 0.0, math.nan, 7).hex(), struct.pack("<3f", math.nan, 0.0, 1.5).hex()]
    assert found["i"].equals(rows["i"])
