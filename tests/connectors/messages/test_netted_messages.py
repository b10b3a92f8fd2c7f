"""The messages of an upsert topic, netted in Arrow, beside netting row by row."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import key_part, value_part
from hintplan.runtime.connectors.kafka.write import _netted
from hintplan.runtime.connectors.netting import net
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from tests.connectors.messages.test_formats import table

Row = tuple[int | None, str | None, tuple[tuple[str, bytes | None], ...] | None]


def written(batches: Sequence[tuple[list[Row], list[int]]], *, headers: bool) -> list[tuple[Any, Any, Any]]:
    declared = table("k INT", "v STRING", value__format="json", key__format="json", key__fields="k")
    key = key_part(declared)
    assert key is not None
    arrow = [
        pa.record_batch(
            {
                "k": pa.array([row[0] for row in rows], pa.int32()),
                "v": pa.array([row[1] for row in rows], pa.string()),
                "h": pa.array([row[2] for row in rows], pa.map_(pa.string(), pa.binary())),
                KIND: pa.array(kinds, pa.int8()),
            }
        )
        for rows, kinds in batches
    ]
    part = value_part(declared)
    out = list(_netted(arrow, key=key, value=part, schemas=(None, None), headers="h" if headers else None))
    assert all(batch.num_rows <= 4096 for batch in out)
    return [
        (
            row["key"],
            row["value"],
            tuple((h["key"], h["value"]) for h in row["headers"]) if row.get("headers") else None,
        )
        for batch in out
        for row in batch.to_pylist()
    ]


def message(row: Row) -> tuple[bytes, bytes]:
    return (
        json.dumps({"k": row[0]}, separators=(",", ":")).encode(),
        json.dumps({"k": row[0], "v": row[1]}, separators=(",", ":")).encode(),
    )


def by_row(batches: Sequence[tuple[list[Row], list[int]]], *, headers: bool) -> list[tuple[Any, Any, Any]]:
    rows = [(*message(row), row[2] if headers else None) for batch, _ in batches for row in batch]
    changes = net(rows, [kind for _, kinds in batches for kind in kinds], key=(0,))
    last = {key: of_key for key, _, of_key in rows}
    return [*changes.upserts, *((key, None, last[key]) for (key,) in changes.deletes)]


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize("kinds", [(INSERT,), (INSERT, DELETE), (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE)])
def test_random_changes_become_the_messages_of_netting_row_by_row(kinds: tuple[int, ...], headers: bool) -> None:
    chance = random.Random(7)
    some = [None, (("a", b"1"),), (("a", None), ("b", b""))]
    for _ in range(20):
        keys = chance.choice((1, 3, 20))
        batches = []
        for _ in range(chance.randint(1, 4)):
            size = chance.randint(1, 25)
            rows: list[Row] = [
                (chance.choice([None, *range(keys)]), chance.choice(["x", "y", None]), chance.choice(some))
                for _ in range(size)
            ]
            batches.append((rows, [chance.choice(kinds) for _ in range(size)]))
        found, expected = written(batches, headers=headers), by_row(batches, headers=headers)
        assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_a_task_without_rows_writes_nothing() -> None:
    assert written([], headers=False) == []


def test_many_keys_are_written_in_several_batches() -> None:
    rows: list[Row] = [(number % 9000, str(number), None) for number in range(10_000)]
    found = written([(rows, [INSERT] * len(rows))], headers=False)
    assert len(found) == 9000
    assert dict(row[:2] for row in found) == dict(map(message, rows))
