"""debezium-avro-confluent, as Flink writes and reads it; what is expected is Flink's answer, by record_avro.py."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from hintplan.plans.connectors.messages.formats import Part, value_part
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.messages.formats import change_encoder, changes_decoder, register_schema
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from tests.connectors.messages.debezium.cases import HERE
from tests.connectors.messages.registry import Registry

FLINK = json.loads((HERE / "avro.json").read_text(encoding="utf-8"))
KINDS = {"INSERT": INSERT, "UPDATE_BEFORE": UPDATE_BEFORE, "UPDATE_AFTER": UPDATE_AFTER, "DELETE": DELETE}
SIGNS = {INSERT: "+I", UPDATE_BEFORE: "-U", UPDATE_AFTER: "+U", DELETE: "-D"}


def part_of(columns: dict[str, str], url: str, **more: str) -> Part:
    options = {"connector": "kafka", "format": "debezium-avro-confluent", "debezium-avro-confluent.url": url}
    options |= {f"debezium-avro-confluent.{name}": value for name, value in more.items()}
    listed = tuple(TableColumn(name=name, type=kind) for name, kind in columns.items())
    return value_part(Table(columns=listed, options=options))


def value_of(name: str, value: Any) -> Any:
    """A value of a recorded row, as hintplan holds it."""
    if value is None:
        return None
    if name == "price":
        return Decimal(value)
    if name == "at":
        return datetime.fromtimestamp(value / 1000, UTC).replace(tzinfo=None)
    if name == "day":
        return date.fromordinal(date(1970, 1, 1).toordinal() + value)
    return {"w": value[0], "h": value[1]} if name == "box" else value


def test_the_schema_that_is_registered_is_flinks(registry: str) -> None:
    number = register_schema(part_of(FLINK["columns"], registry), "orders-value")
    assert number == Registry.subjects["orders-value"]
    assert json.loads(Registry.schemas[number]) == FLINK["schema"]
    named = register_schema(part_of(FLINK["columns"], registry, subject="changes"), "orders-value")
    assert named == Registry.subjects["changes"]


def test_changes_are_written_as_flink_writes_them(registry: str) -> None:
    encode = change_encoder(part_of(FLINK["columns"], registry), 1)
    assert {kind for kind, _, _ in FLINK["written"]} == set(KINDS)
    for kind, row, message in FLINK["written"]:
        values = [value_of(name, value) for name, value in zip(FLINK["columns"], row, strict=True)]
        assert base64.b64encode(encode(KINDS[kind], values)).decode() == message


def test_a_null_where_none_may_be_is_refused(registry: str) -> None:
    encode = change_encoder(part_of(FLINK["columns"], registry), 1)
    with pytest.raises(ValueError, match="column 'id' is NULL, and is declared NOT NULL"):
        encode(INSERT, [None] * len(FLINK["columns"]))


def test_envelopes_are_read_as_flink_reads_them(registry: str) -> None:
    """Of fields that the table does not have nothing is read; an update or deletion needs the row as it was."""
    Registry.schemas[7] = json.dumps(FLINK["envelope"])
    decode = changes_decoder(part_of(FLINK["read columns"], registry), list(FLINK["read columns"]))
    for message, changes in FLINK["read"]:
        if changes is None:
            with pytest.raises(ValueError, match=r"REPLICA IDENTITY FULL|its op is 't', expected c, r, u or d"):
                decode(base64.b64decode(message))
            continue
        found = [(SIGNS[kind], shown(values)) for kind, values in decode(base64.b64decode(message))]
        assert [f"{sign}({text})" for sign, text in found] == [text for _, text in changes]


def shown(values: Any) -> str:
    """Values as Flink prints its own rows."""
    texts = {
        date: lambda value: str(value.toordinal() - date(1970, 1, 1).toordinal()),
        datetime: lambda value: value.isoformat(timespec="milliseconds"),
        type(None): lambda value: "null",
    }
    return ",".join(texts.get(type(value), str)(value) for value in values)


def test_what_is_written_is_read(registry: str) -> None:
    part = part_of(FLINK["columns"], registry)
    number = register_schema(part, "orders-value")
    decode, encode = changes_decoder(part, list(FLINK["columns"])), change_encoder(part, number)
    for kind, row, _ in FLINK["written"]:
        values = [value_of(name, value) for name, value in zip(FLINK["columns"], row, strict=True)]
        written = INSERT if kind in ("INSERT", "UPDATE_AFTER") else DELETE
        assert [(sign, list(found)) for sign, found in decode(encode(KINDS[kind], values))] == [(written, values)]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\x01\0\0\0\x07", "does not begin with the number of a schema"),
        (b"\0\0\0\0\x07\x02", "is not of its schema of Avro"),
        (b'{"op": "c"}', "does not begin with the number of a schema"),
    ],
)
def test_other_messages_are_refused(registry: str, message: bytes, said: str) -> None:
    Registry.schemas[7] = json.dumps(FLINK["envelope"])
    decode = changes_decoder(part_of(FLINK["read columns"], registry), list(FLINK["read columns"]))
    with pytest.raises(ValueError, match=said):
        decode(message)
