"""Keys, values and tombstones that Arrow reads, beside the same messages read one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import key_part, value_part
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.json_columns import columns_reader, columns_writer
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from tests.connectors.messages.test_formats import table

ALL = ("id", "v", "t")
IN_BOTH = {"value__format": "json", "key__format": "json", "key__fields": "id"}
EXCEPT_KEY = {**IN_BOTH, "value__fields_include": "EXCEPT_KEY"}


def reader(columns: tuple[str, ...], *, upserts: bool, **options: str) -> Messages:
    declared = table("id BIGINT", "v DOUBLE", "t STRING", **options)
    return Messages(
        table="t", columns=columns, key=key_part(declared), value=value_part(declared),
        upserts=upserts, changes=upserts, ordered=True, splits=True,
    )  # fmt: skip


def batch_of(messages: Sequence[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
    size = len(messages)
    keys, values = ([message[side] for message in messages] for side in (0, 1))
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary()),
            "topic": pa.array(["a", "b"] * size)[:size], "partition": pa.array(range(size), pa.int32()),
            "offset": pa.array(range(size), pa.int64()),
        }
    )  # fmt: skip


def outcome(read: Messages, batch: pa.RecordBatch) -> object:
    try:
        tables = list(read.read([batch], Report()))
    except RunError as error:
        return str(error)
    return pa.concat_tables(tables).to_pylist() if tables else []


def one_by_one(read: Messages, batch: pa.RecordBatch) -> object:
    try:
        found = read._row_reader()(batch)
    except RunError as error:
        return str(error)
    return [] if found is None else found[0].to_pylist()


ODD = (
    b"null",
    b" {} ",
    b'{"id": "7"}',
    b'{"t": 5}',
    b'{"t": "} {"}',
    b'{"v": -0}',
    b'{"t": "\\u00e9\\n"}',
    b'{"v": 1}\n',
)
WRONG = (b"", b"{", b"{}{}", b'{"v": "x"}', b"\xff", b'{"t": "\n"}', b'{"t": "}\n{"}', b"{}\x00{}", b'{"v": NaN} 1}')


@pytest.mark.parametrize(
    ("options", "upserts"),
    [({"format": "json"}, False), (IN_BOTH, False), (IN_BOTH, True), (EXCEPT_KEY, False), (EXCEPT_KEY, True)],
)
@pytest.mark.parametrize("columns", [ALL, ("t", "id"), ("v",), ("id",)])
def test_batches_are_read_as_their_messages_are(
    columns: tuple[str, ...], options: dict[str, str], upserts: bool
) -> None:
    chance = random.Random(11)
    read = reader(columns, upserts=upserts, **options)
    outcomes = set()
    for number in range(36):
        messages = []
        others = (None, *ODD, *WRONG) if number % 3 == 0 else (None, *ODD) if number % 3 == 1 else (None,)
        for _ in range(chance.randint(1, 12)):
            row = {"id": chance.randrange(100), "v": chance.choice([None, 1, 2.5]), "t": chance.choice(["", "ü", None])}
            key = json.dumps({"id": chance.randrange(100)}).encode()
            if chance.random() < 0.05:
                key = chance.choice([None, b'{"id": "8"}', b"{}"] if number % 3 else [b"x", None])
            value = chance.choice(others) if chance.random() < 0.2 else json.dumps(row).encode()
            messages.append((key, value))
        batch = batch_of(messages)
        found = outcome(read, batch)
        assert found == one_by_one(read, batch), messages
        outcomes.add(type(found))
    assert outcomes == {list, str}


def test_only_pieces_with_odd_messages_are_read_one_by_one() -> None:
    read = reader(ALL, upserts=False, format="json")
    messages = [(None, json.dumps({"id": number, "v": number / 4, "t": "x"}).encode()) for number in range(5000)]
    messages[2500] = (None, b'{"id": "2500", "t": 1}')
    rows = pa.concat_tables(read.read([batch_of(messages)], Report()))
    assert rows["id"].to_pylist() == list(range(5000))
    assert rows["t"][2500].as_py() == "1"
    messages[4999] = (None, b"{")
    with pytest.raises(RunError, match="topic b, partition 4999, offset 4999 does not fit"):
        list(read.read([batch_of(messages)], Report()))


COUNTS_AGREE = [
    [b'{"t": "}', b'{"}', b"{}{}"],
    [b"{}{}\x00{}", b"{}"],
    [b'{"t": [{}', b"{}]}", b"{}{}"],
    [b'{"t": "a\n}', b'{"}', b"{}{}"],
]


@pytest.mark.parametrize("messages", COUNTS_AGREE)
def test_as_many_objects_as_messages_may_still_be_wrong(messages: list[bytes]) -> None:
    read = columns_reader(value_part(table("id BIGINT", format="json")), ["id"])
    assert read is not None
    assert read(pa.array(messages, pa.binary())) is None


def test_messages_of_several_lines_and_a_slice_of_a_batch_are_read_in_bulk() -> None:
    read = columns_reader(value_part(table("id BIGINT", "t STRING", format="json")), ["id", "t"])
    assert read is not None
    messages = [json.dumps({"id": number, "t": "} { " + str(number)}, indent=2).encode() for number in range(6)]
    found = read(pa.array([*messages, b"{"], pa.binary())[2:5])
    assert found is not None
    assert found[0].to_pylist() == [2, 3, 4]
    assert found[1].to_pylist() == ["} { 2", "} { 3", "} { 4"]
    ended = read(pa.array([message + b" \r\n" for message in messages], pa.binary()))
    assert ended is not None
    assert ended[0].to_pylist() == list(range(6))


def test_a_text_to_escape_does_not_change_the_texts_beside_it() -> None:
    write = columns_writer(value_part(table("t STRING", format="json")))
    assert write is not None
    texts = ["no", "plain", 'a"b', None, "\u00fc\x01", "\\", ""]
    batch = pa.record_batch({"t": pa.array(texts)}).slice(1)
    expected = [json.dumps({"t": text}, separators=(",", ":"), ensure_ascii=False).encode() for text in texts[1:]]
    assert write(batch).to_pylist() == expected
