"""State that is divided anew between batches: any number of partitions keeps, and puts out, what one would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.operators import AggregateCall
from hintplan.runtime.engine.pack import hashed
from hintplan.runtime.operator import INSERT, KIND, UPDATE_AFTER, StatefulOperator, hash_column
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.storage import partition as partition_module
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place, Scale, partitions_of

pytestmark = pytest.mark.part(of=3)

EVENTS = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SUMS = AggregateOperator(
    columns=EVENTS,
    changelog=True,
    keys=("k",),
    calls=(
        AggregateCall(name="n", function="COUNT", type="BIGINT"),
        AggregateCall(name="d", function="COUNT", argument="v", distinct=True, type="BIGINT"),
        AggregateCall(name="m", function="MAX", argument="v", type="BIGINT"),
    ),
    types=(pa.int64(), pa.int64(), pa.int64()),
    ttl=0,
    kinds=("+I", "-U", "+U", "-D"),
)
JOIN = JoinOperator(
    kind="inner",
    left=EVENTS,
    right=pa.schema([("k", pa.int64()), ("w", pa.int64())]),
    left_keys=("k",),
    right_keys=("k",),
    changelog=(True, True),
    condition=None,
    ttls=(0, 0),
    columns=(("k", "left", "k"), ("v", "left", "v"), ("w", "right", "w")),
    emits_changelog=True,
)
CLOCKS = {"goes on": (0, 1, 2, 3), "is set back": (9_000, 5_000, 7_000, 0), "stands still": (0,)}
"""The times of batches, in turn, in ms."""
PATHS = ([1, 2, 8, 1], [2, 8, 3, 1], [8, 1, 5], [3, 2, 4], [7, 7, 2])


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("inline", [0, 1 << 20])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: "-".join(map(str, path)))
def test_an_aggregate_counts_on_in_any_number_of_partitions(
    tmp_path: Path, path: list[int], inline: int, clock: str
) -> None:
    random = np.random.default_rng(sum(path))
    model: Counter[tuple[int, int]] = Counter()
    found: dict[int, tuple[int, int, int]] = {}
    job = Job(LocalFiles(str(tmp_path), sync=False), SUMS, inline, CLOCKS[clock])
    for partitions in path:
        job.scale(partitions)
        for _ in range(7):
            rows, kinds = changes(random, model)
            for row in job.run([table(EVENTS, rows, kinds)]):
                if row[KIND] in (INSERT, UPDATE_AFTER):
                    found[row["k"]] = row["n"], row["d"], row["m"]
                else:
                    assert found.pop(row["k"]) == (row["n"], row["d"], row["m"])
            wanted = {
                k: (sum(values.values()), len(values), max(values))
                for k in {k for k, _ in model}
                if (values := {v: n for (key, v), n in model.items() if key == k and n})
            }
            assert found == wanted
            distinct = sum(1 for n in model.values() if n)
            # A group, and for each aggregate its distinct values: COUNT DISTINCT and MAX share a table.
            assert job.state_rows == len(wanted) + distinct


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: "-".join(map(str, path)))
def test_a_join_finds_its_partners_in_any_number_of_partitions(tmp_path: Path, path: list[int], clock: str) -> None:
    random = np.random.default_rng(sum(path))
    left: Counter[tuple[int, int]] = Counter()
    right: Counter[tuple[int, int]] = Counter()
    found: Counter[tuple[int, int, int]] = Counter()
    job = Job(LocalFiles(str(tmp_path), sync=False), JOIN, 1 << 10, CLOCKS[clock])
    for partitions in path:
        job.scale(partitions)
        for _ in range(5):
            one, other = changes(random, left), changes(random, right)
            for row in job.run([table(JOIN.left, *one), table(JOIN.right, *other)]):
                found[row["k"], row["v"], row["w"]] += 1 if row[KIND] in (INSERT, UPDATE_AFTER) else -1
            wanted = Counter({(k, v, w): n * m for (k, v), n in left.items() for (j, w), m in right.items() if j == k})
            assert +found == +wanted
            assert job.state_rows == len(+left) + len(+right)


def test_a_partition_that_saw_no_batch_is_inherited_from_before_that(tmp_path: Path) -> None:
    job = Job(LocalFiles(str(tmp_path), sync=False), SUMS, 0)
    job.scale(2)
    job.run([table(EVENTS, [(k, k) for k in range(100)], [INSERT] * 100)])
    job.scale(5)
    job.scale(3)
    found = list(job.run([table(EVENTS, [(k, 1000) for k in range(100)], [INSERT] * 100)]))
    assert sorted((row["k"], row["n"]) for row in found if row[KIND] == UPDATE_AFTER) == [(k, 2) for k in range(100)]


def test_what_was_divided_otherwise_goes_when_nothing_names_it_any_more(tmp_path: Path) -> None:
    job = Job(LocalFiles(str(tmp_path), sync=False), SUMS, 0)
    for partitions in (2, 4):
        job.scale(partitions)
        for _ in range(60):
            job.run([table(EVENTS, [(k, k) for k in range(100)], [INSERT] * 100)])
    kept = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.*") if path.is_file()}
    assert kept == {"1"}


class Job:
    """An operator over files, batch by batch, in as many partitions as it was told last."""

    def __init__(
        self, files: Files, operator: StatefulOperator, inline: int, clock: Sequence[int] = (0, 1, 2, 3)
    ) -> None:
        self._files, self._operator, self._inline, self._clock = files, operator, inline, clock
        self._batch = 0
        self._run = 0
        self._scales: tuple[Scale, ...] = ()
        self.state_rows = 0

    def scale(self, partitions: int) -> None:
        self._run += 1
        self._scales = (*self._scales, Scale(partitions, self._batch))
        self._place = Place(root=self._files.root, operator="op", run=self._run, scales=self._scales)
        self._remembered = Remembered()

    def run(self, deltas: Sequence[pa.Table]) -> list[dict[str, int]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition_module, "INLINE_BYTES", self._inline)
            return self._run_batch(deltas)

    def _run_batch(self, deltas: Sequence[pa.Table]) -> list[dict[str, int]]:
        wanted = [hashed(delta, spec.hashes) for delta, spec in zip(deltas, self._operator.inputs, strict=True)]
        output = []
        self.state_rows = 0
        for number in range(self._place.partitions):
            parts = []
            for delta in wanted:
                mine = partitions_of(delta[hash_column(0)].to_numpy(), self._place.partitions) == number
                parts.append(delta.filter(pa.array(mine)) if mine.any() else None)
            store = open_partition(self._files, self._place, number, self._batch, self._remembered)
            tables = self._operator.inherit(store) if store.inherited else store.tables
            result = self._operator.process(parts, tables, store, self._now())
            store.publish(result.manifest, result.state_rows, result.state_bytes)
            output += result.output.to_pylist()
            self.state_rows += result.state_rows
        self._batch += 1
        return output

    def _now(self) -> int:
        rounds, place = divmod(self._batch, len(self._clock))
        return 1_000 + self._clock[place] + rounds * len(self._clock)


def table(schema: pa.Schema, rows: Sequence[tuple[int, int]], kinds: Sequence[int]) -> pa.Table:
    columns = [*zip(*rows, strict=True)] or [[], []]
    return pa.table([*columns, kinds], schema=schema.append(pa.field(KIND, pa.int8())))


def changes(random: np.random.Generator, model: Counter[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Rows that come and rows that go, of those that are there; ``model`` has them afterwards."""
    rows, kinds = [], []
    there = list(model.elements())
    gone = random.permutation(len(there))[: random.integers(0, 40)]
    for index in gone:
        rows.append(there[index])
        kinds.append(3)
        model[there[index]] -= 1
    for k, v in random.integers(0, 60, (50, 2)):
        rows.append((int(k), int(v % 7)))
        kinds.append(INSERT)
        model[int(k), int(v % 7)] += 1
    return rows, kinds


def test_the_ways_through_the_numbers_of_partitions_go_up_and_down() -> None:
    steps = {step for path in PATHS for step in pairwise(path)}
    assert {a < b for a, b in steps if a != b} == {True, False}
    assert any(b == 1 for _, b in steps)
