"""Raw messages that are read and written in batches, beside the same ones one by one."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import Part, key_part, value_part
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder, row_decoder
from hintplan.runtime.connectors.messages.raw_columns import raw_columns_reader, raw_columns_writer
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.operator import DELETE, INSERT
from hintplan.runtime.types import to_arrow
from tests.connectors.messages.test_formats import table
from tests.connectors.messages.test_messages_in_bulk import batch_of, one_by_one, outcome

VALUES: dict[str, list[Any]] = {
    "STRING": ["", "a", "é😀", "x" * 300], "VARCHAR(3)": ["abcde"], "CHAR(2)": ["é"],
    "BYTES": [b"", b"\x00\xff"], "BINARY(2)": [b"\x80\x00"], "VARBINARY(2)": [b"\x80"],
    "TINYINT": [0, -128, 127], "SMALLINT": [-32768, 258], "INT": [258, -1, 2**31 - 1], "BIGINT": [-(2**63), 1],
    "FLOAT": [0.5, -0.0, math.inf], "DOUBLE": [0.1, 5e-324, -math.inf], "BOOLEAN": [True, False],
}  # fmt: skip
ORDERS = {"big-endian": {}, "little-endian": {"raw.endianness": "little-endian"}}
BY_HAND = {
    ("INT", "big-endian"): (258, b"\x00\x00\x01\x02"),
    ("INT", "little-endian"): (258, b"\x02\x01\x00\x00"),
    ("SMALLINT", "big-endian"): (-2, b"\xff\xfe"),
    ("DOUBLE", "little-endian"): (1.0, struct.pack("<Q", 0x3FF0 << 48)),
    ("BOOLEAN", "big-endian"): (True, b"\x01"),
}
"""Values and their messages."""


def part_of(declared: str, order: str) -> Part:
    made = table(f"v {declared}", format="raw")
    return value_part(replace(made, options={**made.options, **ORDERS[order]}))


@pytest.mark.parametrize(("declared", "order"), BY_HAND)
def test_numbers_have_the_bytes_of_their_type(declared: str, order: str) -> None:
    value, message = BY_HAND[declared, order]
    part = part_of(declared, order)
    read, write = raw_columns_reader(part), raw_columns_writer(part)
    assert read is not None
    assert write is not None
    found = read(pa.array([message], pa.binary()))
    assert found is not None
    assert found[0].to_pylist() == [value]
    assert write(pa.record_batch({"v": pa.array([value], to_arrow(declared))})).to_pylist() == [message]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("declared", VALUES)
def test_values_are_written_and_read_as_one_by_one(declared: str, order: str) -> None:
    part, values = part_of(declared, order), [None, *VALUES[declared], None]
    batch = pa.record_batch({"v": pa.array(values, to_arrow(declared))})
    batch = pa.concat_batches([batch, batch]).slice(len(values))  # a part of a batch
    encode, decode = change_encoder(part), row_decoder(part, ["v"])
    expected = [encode(INSERT, [value]) for value in batch.column("v").to_pylist()]
    written = batch_encoder(part)(batch, [INSERT] * len(values))
    assert written.to_pylist() == expected
    messages = [message for message in expected if message is not None]
    read = raw_columns_reader(part)
    assert read is not None
    found = read(written.drop_null())
    assert found is not None
    assert found[0].type == to_arrow(declared)
    rows = [decode(message) for message in messages]
    assert str(found[0].to_pylist()) == str([None if row is None else row[0] for row in rows])
    nothing = read(pa.array([], pa.binary()))
    assert nothing is not None
    assert nothing[0].to_pylist() == []


@pytest.mark.parametrize(
    ("declared", "odd"), [("INT", b"\x00"), ("INT", b"12345"), ("BOOLEAN", b""), ("STRING", b"\xff")]
)
def test_what_is_not_of_the_type_is_left_to_the_rows(declared: str, odd: bytes) -> None:
    read = raw_columns_reader(part_of(declared, "big-endian"))
    assert read is not None
    assert read(pa.array([odd], pa.binary())) is None


def test_any_byte_but_zero_is_true() -> None:
    part = part_of("BOOLEAN", "big-endian")
    read = raw_columns_reader(part)
    assert read is not None
    found = read(pa.array([b"\x02", b"\x00"], pa.binary()))
    assert found is not None
    assert found[0].to_pylist() == [True, False]
    assert row_decoder(part, ["v"])(b"\x02") == [True]


@pytest.mark.parametrize("upserts", [True, False])
@pytest.mark.parametrize("key_format", ["raw", "csv", "json"])
@pytest.mark.parametrize("value_format", ["raw", "csv", "json", "debezium-json"])
def test_keys_and_values_of_each_format_are_put_together_as_one_by_one(
    value_format: str, key_format: str, upserts: bool
) -> None:
    options = {"value.format": value_format, "key.format": key_format, "key.fields": "id"}
    made = table("id BIGINT", "v BIGINT")
    declared = replace(made, options={**made.options, **options, "value.fields-include": "EXCEPT_KEY"})
    changes = value_format == "debezium-json"
    read = Messages(
        table="t", columns=("v", "id"), key=key_part(declared), value=value_part(declared),
        upserts=upserts and not changes, changes=upserts or changes, ordered=True, splits=True,
    )  # fmt: skip
    key = {"raw": struct.pack(">q", 7), "csv": b"7", "json": b'{"id": 7}'}[key_format]
    row = b'{"v": 5}'
    value = {"raw": struct.pack(">q", 5), "csv": b"5", "json": row, "debezium-json": b'{"op": "c", "after": %b}' % row}
    plain = [(key, value[value_format])] * 3
    batch = batch_of(plain)
    found = read._bulk_reader()(batch)
    assert found is not None
    columns = found[0].select(["v", "id"]).to_pylist()
    assert columns == [{"v": 5, "id": 7}] * 3
    for odd in ((key, None), (None, value[value_format]), (b"?", value[value_format]), (key, b"?")):
        batch = batch_of([*plain, odd])
        assert str(outcome(read, batch)) == str(one_by_one(read, batch)), odd
    deleted = read._bulk_reader()(batch_of([*plain, (key, None)]))
    if upserts and not changes:
        assert deleted is not None
        assert deleted[0].column("__kind").to_pylist() == [INSERT] * 3 + [DELETE]
    elif value_format == "raw":
        assert deleted is None  # here, a message without a value is a row with NULL
