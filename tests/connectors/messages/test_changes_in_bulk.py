"""Changes of a database that Arrow reads and writes in batches, beside the same messages one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import Part, key_part, value_part
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder
from hintplan.runtime.connectors.messages.json_changes import changes_writer, debezium_reader
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.types import to_arrow
from tests.connectors.messages.test_formats import table
from tests.connectors.messages.test_json_columns import WRITTEN

COLUMNS = ("id BIGINT", "v DOUBLE", "d DECIMAL(10, 2)", "t STRING", "ts TIMESTAMP(3)")
NAMES = ("id", "v", "d", "t", "ts")
OPTIONS: dict[str, dict[str, str]] = {
    "plain": {},
    "schema": {"debezium_json__schema_include": "true"},
    "lenient": {"debezium_json__ignore_parse_errors": "true"},
}


def row(chance: random.Random) -> dict[str, Any]:
    return {
        "id": chance.randrange(100),
        "v": chance.choice([None, 1, 2.5]),
        "d": chance.choice([1.25, 7, None]),
        "t": chance.choice(["", "ü", "} {", None, 'a"b\\']),
        "ts": chance.choice(["2026-01-02 03:04:05.678", None]),
    }


def change(chance: random.Random) -> dict[str, Any]:
    op = chance.choice("crud")
    before = row(chance) if op in "ud" else chance.choice([None, row(chance)])
    after = row(chance) if op != "d" else None
    found: dict[str, Any] = {"before": before, "after": after, "op": op}
    if chance.random() < 0.5:
        found |= {"source": {"table": "orders", "after": {"id": "x"}}, "ts_ms": 1, "transaction": None}
    return dict(chance.sample(sorted(found.items()), len(found)))


ROW = '{"id": 1, "v": 2.5, "d": 1, "t": "x", "ts": null}'
ODD = (
    f'{{"op": "c", "after": {ROW.replace("1,", "1E+2,", 1)}}}',
    f'{{"op": "c", "after": {ROW.replace("1", chr(34) + "7" + chr(34), 1)}}}',
    f'{{"op": "d", "before": {{}}, "after": {ROW}}}',
    '{"op": "r", "after": {"id": 5, "t": 5}}',
    '{"op": "c", "after": {"id": 1}, "before": 7}',
    '{"op": "c", "after": {"d": 3E+2, "v": -0}}',
    ' {"op": "u", "before": {"t": ": NaN, "}, "after": {"t": "\\u00e9"}}\n',
)
WRONG = (
    "",
    "{",
    "[]",
    "7",
    "{}",
    '{"op": null}',
    '{"op": 5, "after": {}}',
    '{"op": "x", "after": {}}',
    '{"op": "c"}',
    '{"op": "c", "after": null}',
    '{"op": "c", "after": 5}',
    '{"op": "c", "after": [{}]}',
    '{"op": "u", "after": {}}',
    '{"op": "u", "before": null, "after": {}}',
    '{"op": "d", "after": {}}',
    '{"op": "c", "after": {"id": "x"}}',
    '{"op": "c", "after": {"ts": "2026-01-02T03:04:05"}}',
    '{"op": "c", "after": {"id": 1}, "op": "d"}',
    '{"op": "c", "after": {"id": 1, "id": 2}}',
    '{"op": "c", "after": {"id": 1}, "after": {"id": 2}}',
)


def batch_of(values: Sequence[bytes | None]) -> pa.RecordBatch:
    size = len(values)
    return pa.record_batch(
        {
            "key": pa.array([json.dumps({"id": number}).encode() for number in range(size)], pa.binary()),
            "value": pa.array(values, pa.binary()), "topic": pa.array(["a", "b"] * size)[:size],
            "partition": pa.array(range(size), pa.int32()), "offset": pa.array(range(size), pa.int64()),
        }
    )  # fmt: skip


def outcome(read: Callable[[pa.RecordBatch], list[pa.Table]], batch: pa.RecordBatch) -> object:
    try:
        tables = read(batch)
    except RunError as error:
        return str(error)
    return pa.concat_tables(tables).to_pylist() if tables else []


def by_row(messages: Messages, batch: pa.RecordBatch) -> list[pa.Table]:
    found = messages._row_reader()(batch)
    return [] if found is None else [found[0]]


def wrapped(message: str, option: str) -> bytes:
    return (f'{{"schema": {{"op": 1}}, "payload": {message}}}' if option == "schema" else message).encode()


@pytest.mark.parametrize("columns", [NAMES, ("t", "id"), ("ts",)])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("keyed", [False, True])
def test_changes_are_read_as_one_by_one(keyed: bool, option: str, columns: tuple[str, ...]) -> None:
    chance = random.Random(f"{option} {columns}")
    of_key = {"key__format": "json", "key__fields": "id", "value__fields_include": "EXCEPT_KEY"} if keyed else {}
    declared = table(*COLUMNS, value__format="debezium-json", **of_key, **{
        f"value__{name}": value for name, value in OPTIONS[option].items()
    })  # fmt: skip
    messages = Messages(
        table="t", columns=columns, key=key_part(declared), value=value_part(declared),
        upserts=False, changes=True, ordered=True, splits=True,
    )  # fmt: skip
    outcomes = set()
    for number in range(60):
        others: tuple[str | None, ...] = ((None,), (None, *ODD), (None, *ODD, *WRONG))[number % 3]
        values = []
        for _ in range(chance.choice((1, 5, 40))):
            value = chance.choice(others) if chance.random() < 0.1 else json.dumps(change(chance))
            values.append(None if value is None else wrapped(value, option))
        batch = batch_of(values)
        found = outcome(lambda batch: list(messages.read([batch], Report())), batch)
        assert found == outcome(lambda batch: by_row(messages, batch), batch), values
        outcomes.add(type(found))
    assert list in outcomes
    if option != "lenient":
        assert str in outcomes


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("odd", WRONG)
def test_what_is_not_one_change_is_left_to_the_rows(option: str, odd: str) -> None:
    read = debezium_reader(value_part(table(*COLUMNS, format="debezium-json", **OPTIONS[option])), NAMES)
    assert read is not None
    message = wrapped('{"op": "c", "after": {"id": 1}}', option)
    assert read(pa.array([message, message], pa.binary())) is not None
    assert read(pa.array([message, wrapped(odd, option)], pa.binary())) is None


def test_numbers_in_quotes_are_read_in_bulk() -> None:
    read = debezium_reader(value_part(table(*COLUMNS, format="debezium-json")), ("id", "d"))
    assert read is not None
    update = b'{"before": {"id": 1, "d": "1.25"}, "after": {"id": 1, "d": "-2"}, "op": "u"}'
    found = read(pa.array([update], pa.binary()))
    assert found is not None
    assert [str(value) for value in found.columns[2].to_pylist()] == ["1.25", "-2.00"]


def test_an_update_is_its_old_row_and_then_its_new_row() -> None:
    read = debezium_reader(value_part(table("id BIGINT", "t STRING", format="debezium-json")), ("id",))
    assert read is not None
    found = read(
        pa.array(
            [
                b'{"op": "r", "before": null, "after": {"id": 1, "t": "a"}}',
                b'{"op": "u", "before": {"id": 1}, "after": {"id": 2}}',
                b'{"op": "d", "before": {"id": 2}, "after": null}',
                b'{"op": "c", "after": {"id": 3}}',
            ],
            pa.binary(),
        )
    )
    assert found is not None
    assert found.columns[0].to_pylist() == [1, 1, 2, 2, 3]
    assert found.columns[1].to_pylist() == [None] * 5
    assert found.kinds.tolist() == [INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE, INSERT]
    assert found.positions.tolist() == [0, 1, 1, 2, 3]
    empty = read(pa.array([], pa.binary()))
    assert empty is not None
    assert [len(column) for column in empty.columns] == [0, 0]


@pytest.mark.parametrize("declared", [["v ARRAY<INT>"], ["v BYTES"], ["v ROW<a INT>"]])
def test_other_columns_are_read_row_by_row(declared: list[str]) -> None:
    assert debezium_reader(value_part(table(*declared, format="debezium-json")), ["v"]) is None


@pytest.mark.parametrize("format_", ["debezium-json", "canal-json"])
@pytest.mark.parametrize("declared", WRITTEN)
@pytest.mark.parametrize("iso", [False, True])
def test_changes_are_written_as_one_by_one(format_: str, declared: str, iso: bool) -> None:
    option = {f"{format_.replace('-', '_')}__timestamp_format__standard": "ISO-8601"} if iso else {}
    part: Part = value_part(table("id INT", f"v {declared}", format=format_, **option))
    assert changes_writer(part) is not None
    values = [*WRITTEN[declared], None]
    kinds = [(INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE)[number % 4] for number in range(len(values))]
    batch = pa.record_batch({"id": pa.array(range(len(values)), pa.int32()), "v": pa.array(values, to_arrow(declared))})
    encode = change_encoder(part)
    rows = zip(kinds, batch.column("id").to_pylist(), batch.column("v").to_pylist(), strict=True)
    assert batch_encoder(part)(batch, kinds).to_pylist() == [encode(kind, values) for kind, *values in rows]
