"""Avro that is read and written in batches, beside the same messages one by one, which are compared with Flink's."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.connectors.messages.formats import Part, value_part
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages import registry
from hintplan.runtime.connectors.messages.avro_columns import avro_changes_reader, avro_columns_reader
from hintplan.runtime.connectors.messages.avro_columns_out import avro_writer
from hintplan.runtime.connectors.messages.avro_values import avro_decoder, avro_encoder, avro_schema, record_writer
from hintplan.runtime.connectors.messages.change_avro import envelope_of
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder
from hintplan.runtime.connectors.messages.registry import head_of
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.types import to_arrow
from tests.connectors.messages.test_changes_in_bulk import batch_of, by_row, outcome
from tests.connectors.messages.test_formats import table
from tests.sample import sampled

URL = "http://registry:8081"
DECIMALS = [D("0"), D("0.01"), D("-0.01"), D("1.27"), D("1.28"), D("-1.28"), D("-1.29"), D("327.68"), D("-327.69")]
VALUES: dict[str, list[Any]] = {
    "TINYINT": [0, 1, -1, 63, 64, -64, -65, 127, -128], "SMALLINT": [32767, -32768], "INT": [2**31 - 1, -(2**31), 300],
    "BIGINT": [*(sign * 2**bits - less for bits in range(0, 63, 3) for sign in (1, -1) for less in (0, 1)),
               2**63 - 1, -(2**63)],
    "BOOLEAN": [True, False], "FLOAT": [0.0, -0.0, 0.10000000149011612, math.inf], "DOUBLE": [0.1, -math.inf, 5e-324],
    "STRING": ["", "x", "é😀", "a" * 63, "b" * 64, "c" * 9000], "VARCHAR(3)": ["abc", "abcde"], "CHAR(2)": ["é"],
    "BYTES": [b"", b"\x00\xff", b"x" * 200], "BINARY(2)": [b"\x80\x00"],
    "DATE": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2026, 2, 28)],
    "DECIMAL(10, 2)": [*DECIMALS, D("99999999.99"), D("-99999999.99")],
    "DECIMAL(18, 0)": [D(10**18 - 1), D(1 - 10**18), D(0)], "DECIMAL(5, 5)": [D("0.00001"), D("-0.99999")],
    "TIMESTAMP(3)": [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(1, 1, 1),
                     datetime(9999, 12, 31, 23, 59, 59, 999000)],
}  # fmt: skip
BY_ROW: dict[str, list[Any]] = {
    "DECIMAL(38, 18)": [D("0.000000000000000001"), D("-12345678901234567890.5")], "DECIMAL(19, 0)": [D(10**19 - 1)],
    "ARRAY<INT>": [[1, None]], "MAP<STRING, INT>": [[("k", 1)]], "ROW<a INT>": [{"a": 1}],
}  # fmt: skip
NEWER: dict[str, list[Any]] = {
    "TIMESTAMP(3)": VALUES["TIMESTAMP(3)"],
    "TIMESTAMP(6)": [datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1, 1, 1, 0, 0, 0, 999999)],
    "TIMESTAMP_LTZ(3)": [datetime(2026, 1, 1, 1, tzinfo=UTC)],
    "TIMESTAMP_LTZ(6)": [datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
}
CASES = [
    *((declared, values, "avro", {}) for declared, values in (VALUES | BY_ROW).items()),
    *((declared, values, "avro", {"avro.timestamp_mapping.legacy": "false"}) for declared, values in NEWER.items()),
    *((declared, values, "avro-confluent", {}) for declared, values in VALUES.items()),
    *((declared, values, "debezium-avro-confluent", {}) for declared, values in VALUES.items()),
]


def part_of(declared: Sequence[str], format_: str, options: Mapping[str, str] = MappingProxyType({})) -> Part:
    declared_table = table(*declared, format=format_)
    of_registry = {} if format_ == "avro" else {f"{format_}.url": URL}
    return value_part(replace(declared_table, options={**declared_table.options, **of_registry, **options}))


def known(monkeypatch: pytest.MonkeyPatch, *schemas: Any) -> None:
    """Let the registry have these schemas, with the ids from 1 on."""

    def schema(_: registry.Registry, number: int) -> str:
        if not 0 < number <= len(schemas):
            raise RunError(f"the registry has no schema {number}")
        return json.dumps(schemas[number - 1])

    monkeypatch.setattr(registry, "_schema", schema)


def schema_of(part: Part) -> Any:
    return envelope_of(part) if part.format.startswith("debezium") else avro_schema(part)


def messages_of(part: Part, *columns: str) -> Messages:
    return Messages(
        table="t", columns=columns, key=None, value=part, upserts=False, changes=True, ordered=True, splits=True
    )


def read_in_bulk(part: Part, messages: Sequence[bytes], *columns: str) -> list[list[Any]] | None:
    """The columns of messages in batches, and the row kinds of changes; None if they are left to the rows."""
    values = pa.array(messages, pa.binary())
    if (read_changes := avro_changes_reader(part, columns)) is not None:
        changes = read_changes(values)
        return None if changes is None else [*(c.to_pylist() for c in changes.columns), changes.kinds.tolist()]
    read = avro_columns_reader(part, columns)
    assert read is not None
    found = read(values)
    return None if found is None else [column.to_pylist() for column in found]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("declared", "values", "format_", "options"), CASES)
def test_values_are_written_and_read_as_one_by_one(
    declared: str, values: list[Any], format_: str, options: dict[str, str], nullable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    part = part_of([f"v {declared}{'' if nullable else ' NOT NULL'}", "id INT"], format_, options)
    known(monkeypatch, schema_of(part))
    number = None if format_ == "avro" else 1
    given = [*values, *([None, values[0], None] if nullable else [])]
    kinds = [(INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE)[place % 4] for place in range(len(given))]
    batch = pa.record_batch({"v": pa.array(given, to_arrow(declared)), "id": pa.array(range(len(given)), pa.int32())})
    batch = pa.concat_batches([batch, batch]).slice(len(given))  # a part of a batch
    encode = change_encoder(part, number)
    rows = zip(kinds, *(batch.column(name).to_pylist() for name in ("v", "id")), strict=True)
    expected = [encode(kind, row) for kind, *row in rows]
    in_bulk = avro_writer(part, number)
    assert (in_bulk is None) == (declared in BY_ROW)
    if in_bulk is not None:
        written = in_bulk(batch, kinds)
        assert written is not None
        assert written.to_pylist() == expected
    assert batch_encoder(part, number)(batch, kinds).to_pylist() == expected
    found = read_in_bulk(part, expected, "v", "id")
    assert (found is None) == (declared in BY_ROW)
    if found is not None:
        assert str(found[:2]) == str([batch.column(name).to_pylist() for name in ("v", "id")])
    messages = messages_of(part, "v", "id")
    whole = batch_of(expected)
    assert str(outcome(lambda b: list(messages.read([b], Report())), whole)) == str(
        outcome(lambda b: by_row(messages, b), whole)
    )


def test_null_in_a_column_that_is_not_null_is_refused() -> None:
    part = part_of(["v INT NOT NULL"], "avro")
    batch = pa.record_batch({"v": pa.array([1, None], pa.int32())})
    with pytest.raises(ValueError, match="column 'v' is NULL, and is declared NOT NULL"):
        batch_encoder(part)(batch, [INSERT, INSERT])


def test_a_time_of_more_digits_than_its_column_is_written_as_one_by_one() -> None:
    part = part_of(["v TIMESTAMP(3)"], "avro")
    batch = pa.record_batch({"v": pa.array([datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1969, 1, 1, 0, 0, 0, 1999)])})
    encode = change_encoder(part)
    expected = [encode(INSERT, [value]) for value in batch.column("v").to_pylist()]
    assert batch_encoder(part)(batch, [INSERT, INSERT]).to_pylist() == expected


FIELDS = [
    "a BIGINT",
    "b STRING",
    "c DECIMAL(10, 2)",
    "d TIMESTAMP(3)",
    "e DOUBLE NOT NULL",
    "f BYTES",
    "g BOOLEAN",
    "h DATE",
]


def random_row(chance: random.Random) -> list[Any]:
    values = [
        chance.randint(-(2 ** chance.randint(1, 62)), 2**40),
        "é" * chance.randint(0, 70),
        D(chance.randint(-9999, 99999)) / 100,
        datetime(2026, 1, 1, 0, 0, 0, chance.randrange(1000) * 1000),
        chance.random(),
        chance.randbytes(chance.randint(0, 5)),
        chance.random() < 0.5,
        date.fromordinal(chance.randint(1, 10**6)),
    ]
    return [None if name != 4 and chance.random() < 0.2 else value for name, value in enumerate(values)]


def broken(chance: random.Random, message: bytes) -> bytes:
    place = chance.randrange(len(message))
    if chance.random() < 0.3:
        return message[:place]
    if chance.random() < 0.2:
        return message + chance.randbytes(3)
    return message[:place] + chance.randbytes(chance.randint(1, 3)) + message[place + 1 :]


@pytest.mark.parametrize("seed", sampled(range(20), keep=1))
@pytest.mark.parametrize("columns", [("a", "b", "c", "d", "e", "f", "g", "h"), ("h", "a")])
@pytest.mark.parametrize("format_", ["avro", "avro-confluent", "debezium-avro-confluent"])
def test_broken_messages_have_the_rows_or_the_error_of_one_by_one(
    format_: str, columns: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, part = random.Random(f"{format_} {columns} {seed}"), part_of(FIELDS, format_)
    known(monkeypatch, schema_of(part))
    encode = change_encoder(part, None if format_ == "avro" else 1)
    messages, outcomes = messages_of(part, *columns), []
    for _ in range(150):
        values = [encode(chance.choice((INSERT, DELETE)), random_row(chance)) for _ in range(chance.choice((1, 3)))]
        place = chance.randrange(len(values))
        found = values[place]
        assert found is not None
        values[place] = broken(chance, found)
        batch = batch_of(values)
        read = outcome(lambda b: list(messages.read([b], Report())), batch)
        assert str(read) == str(outcome(lambda b: by_row(messages, b), batch)), values
        outcomes.append(type(read))
    assert outcomes.count(list) > 5
    assert outcomes.count(str) > 50


@pytest.mark.parametrize("format_", ["avro", "avro-confluent", "debezium-avro-confluent"])
def test_messages_that_end_at_any_byte_have_the_error_of_one_by_one(
    format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(FIELDS, format_)
    known(monkeypatch, schema_of(part))
    whole = change_encoder(part, None if format_ == "avro" else 1)(INSERT, random_row(random.Random(2)))
    assert whole is not None
    messages = messages_of(part, "a", "h")
    for end in range(len(whole)):
        batch = batch_of([whole[:end], whole])  # what follows in the batch is not read as a part of the message
        read = outcome(lambda b: list(messages.read([b], Report())), batch)
        assert read == outcome(lambda b: by_row(messages, b), batch)
        assert isinstance(read, list) == (end == 0 and format_ == "debezium-avro-confluent")


NAMED = {"type": "record", "name": "V", "fields": [{"name": "v", "type": ["null", "long"]}]}


def logical(base: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


def decimal(precision: int, scale: int, base: str = "bytes", **more: Any) -> dict[str, Any]:
    return logical(base, "decimal", precision=precision, scale=scale, **more)


ENUM = {"type": "enum", "name": "E", "symbols": ["x", "y"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
UUID = "00000000-0000-0000-0000-000000000001"
LONG = D("12345678901234567890.25")
DAY, MOMENT = date(2026, 1, 2), datetime(2026, 1, 2)
# The schema of a field, its value, the declared type, and what is read.
WRITERS: list[tuple[Any, Any, str, Any]] = [
    ("int", 7, "BIGINT", 7),
    ("long", 7, "TINYINT", 7),
    ("long", 300, "TINYINT", RunError),
    (["long", "null"], 7, "INT", 7),
    (["long", "null"], None, "INT", None),
    ("float", 1.5, "DOUBLE", 1.5),
    ("long", 5, "DOUBLE", 5.0),
    ("double", 1.5, "FLOAT", 1.5),
    ("long", 2**53 + 1, "DOUBLE", 2.0**53),
    (ENUM, "y", "STRING", "y"),
    ({"type": "string", "connect.version": 1}, "s", "STRING", "s"),
    (FIXED, b"ab", "BYTES", b"ab"),
    (decimal(6, 2, "fixed", name="F", size=3), D("-1.25"), "DECIMAL(10, 2)", D("-1.25")),
    (decimal(30, 2), LONG, "DECIMAL(38, 2)", LONG),
    (decimal(10, 3), D("1.255"), "DECIMAL(10, 2)", D("1.26")),
    (decimal(10, 2), D("12345.25"), "DECIMAL(5, 2)", None),
    (logical("int", "date"), DAY, "DATE", DAY),
    ("int", 20455, "DATE", DAY),
    (logical("long", "timestamp-micros"), MOMENT.replace(tzinfo=UTC), "TIMESTAMP(6)", MOMENT),
    (logical("long", "local-timestamp-millis"), MOMENT, "TIMESTAMP_LTZ(3)", MOMENT.replace(tzinfo=UTC)),
    ("long", 1000, "TIMESTAMP(3)", datetime(1970, 1, 1, 0, 0, 1)),
    (logical("long", "x"), 7, "INT", 7),
    (logical("string", "uuid"), UUID, "STRING", RunError),
    (["null", "string", "long"], 5, "BIGINT", 5),
    ("string", "x", "INT", RunError),
    ("boolean", True, "INT", RunError),
    ("int", 1, "BOOLEAN", RunError),
    ({"type": "array", "items": "int"}, [1], "ARRAY<INT>", [1]),
    (NAMED, {"v": 5}, "ROW<v BIGINT>", {"v": 5}),
    ("null", None, "INT", None),
    (["null"], None, "INT", None),
]


@pytest.mark.parametrize(("schema", "value", "declared", "expected"), WRITERS)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_writer_may_have_another_schema(
    schema: Any, value: Any, declared: str, expected: Any, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(["id INT", f"v {declared}", "lacking STRING"], "avro-confluent")
    fields = [{"name": name, "type": kind} for name, kind in (("more", "string"), ("v", schema), ("id", "int"))]
    record = {"type": "record", "name": "r", "fields": fields}
    known(monkeypatch, record)
    messages = messages_of(part, "id", *(("v",) if wanted else ()), "lacking")
    write = record_writer(record)
    batch = batch_of([head_of(1) + write({"more": "x", "v": value, "id": number}) for number in (4, 5)])
    found = outcome(lambda b: list(messages.read([b], Report())), batch)
    assert found == outcome(lambda b: by_row(messages, b), batch)
    if expected is RunError and wanted:
        assert isinstance(found, str)
    else:
        assert isinstance(found, list)
        assert [(row["id"], row.get("v"), row["lacking"]) for row in found] == [
            (number, expected if wanted else None, None) for number in (4, 5)
        ]


def test_a_batch_with_messages_of_several_schemas_is_read_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(["v BIGINT"], "avro-confluent")
    kinds: list[Any] = ["int", ["null", "long"]]
    schemas = [{"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]} for kind in kinds]
    known(monkeypatch, *schemas)
    write: list[Callable[[Any], bytes]] = [record_writer(schema) for schema in schemas]
    values = [head_of(place % 2 + 1) + write[place % 2]({"v": place}) for place in range(4)]
    assert read_in_bulk(part, values, "v") is None
    assert read_in_bulk(part, values[::2], "v") == [[0, 2]]
    rows = pa.concat_tables(messages_of(part, "v").read([batch_of(values)], Report()))
    assert rows["v"].to_pylist() == [0, 1, 2, 3]


def test_changes_of_a_row_that_is_named_once_are_read_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"type": "record", "name": "Source", "namespace": "io.debezium", "fields": [
        {"name": "db", "type": "string"},
        {"name": "snapshot", "type": [{"type": "string"}, "null"], "default": "false"},
    ]}  # fmt: skip
    envelope = {"type": "record", "name": "Envelope", "namespace": "shop", "fields": [
        {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": [
            {"name": "id", "type": "long"}, {"name": "t", "type": ["null", "string"]}]}]},
        {"name": "after", "type": ["null", "Value"]}, {"name": "source", "type": source},
        {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"]},
    ]}  # fmt: skip
    known(monkeypatch, envelope)
    write, part = record_writer(envelope), part_of(["id BIGINT", "t STRING"], "debezium-avro-confluent")
    rest = {"source": {"db": "shop", "snapshot": "last"}, "ts_ms": 5}
    one, two = {"id": 1, "t": None}, {"id": 2, "t": "x"}
    given = [(None, one, "r"), (one, two, "u"), (two, None, "d"), (two, one, "c")]
    values = [head_of(1) + write({"before": before, "after": after, "op": op, **rest}) for before, after, op in given]
    assert read_in_bulk(part, values, "id", "t") == [
        [1, 1, 2, 2, 1],
        [None, None, "x", "x", None],
        [INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE, INSERT],
    ]
    for before, after, op in ((None, one, "u"), (None, None, "c"), (one, one, "x")):
        odd = head_of(1) + write({"before": before, "after": after, "op": op, **rest})
        assert read_in_bulk(part, [*values, odd], "id", "t") is None


def test_a_record_within_itself_is_read_as_one_by_one() -> None:
    part = part_of(["v INT"], "avro")
    assert avro_decoder(part, ["v"], avro_schema(part))(avro_encoder(part, avro_schema(part))([7])) == [7]
    recursive = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "r"]}],
    }
    confluent = part_of(["v INT"], "avro-confluent")
    with pytest.MonkeyPatch.context() as patch:
        known(patch, recursive)
        value = head_of(1) + record_writer(recursive)({"v": 1, "next": {"v": 2, "next": None}})
        assert read_in_bulk(confluent, [value], "v") is None
        assert pa.concat_tables(messages_of(confluent, "v").read([batch_of([value])], Report()))["v"].to_pylist() == [1]
