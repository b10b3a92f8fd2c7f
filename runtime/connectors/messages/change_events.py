"""Formats whose messages are changes of a database: debezium-json and canal-json, as in Flink.

An update is read as -U with the old row and +U with the new row. It is not written as one message, because the sink
sees rows one by one: +I and +U are written as inserts, -U and -D as deletes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.runtime.connectors.messages.json_in import parse
from hintplan.runtime.connectors.messages.json_objects import json_row_encoder, object_fields, values_of
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

Change = tuple[int, Sequence[Any]]


def debezium_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Iterable[Change]]:
    """Return a function that decodes a message to its changes."""
    fields, with_schema = object_fields(part, wanted), part.option("schema-include") == "true"

    def changes(document: dict[str, Any]) -> list[Change]:
        payload = document.get("payload") if with_schema else document
        if not isinstance(payload, dict):
            raise ValueError("there is no payload" if with_schema else "it is no object of JSON")
        return debezium_changes(payload, lambda row: values_of(row, fields))

    return _decoder(part, changes)


def debezium_changes(payload: Mapping[str, Any], values: Callable[[dict[str, Any]], Sequence[Any]]) -> list[Change]:
    """Return the changes in a Debezium envelope; ``values`` converts its rows. Raise ValueError if it is invalid."""
    op = payload.get("op")
    if op in ("c", "r"):
        return [(INSERT, values(_row(payload, "after")))]
    if op == "u":
        return [(UPDATE_BEFORE, values(_row(payload, "before"))), (UPDATE_AFTER, values(_row(payload, "after")))]
    if op == "d":
        return [(DELETE, values(_row(payload, "before")))]
    raise ValueError(f"its op is {op!r}, expected c, r, u or d")


def canal_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Iterable[Change]]:
    """Return a function that decodes a message to its changes; it ignores changes of other databases and tables."""
    fields = object_fields(part, wanted)
    filters = [
        (key, re.compile(pattern)) for key in ("database", "table") if (pattern := part.option(f"{key}.include"))
    ]

    def changes(document: dict[str, Any]) -> list[Change]:
        if any(pattern.fullmatch(str(document.get(key))) is None for key, pattern in filters):
            return []
        kind = document.get("type")
        if kind == "CREATE":
            return []
        if kind not in ("INSERT", "UPDATE", "DELETE"):
            raise ValueError(f"its type is {kind!r}, expected INSERT, UPDATE or DELETE")
        rows = _objects(document, "data")
        if kind != "UPDATE":
            return [(INSERT if kind == "INSERT" else DELETE, values_of(row, fields)) for row in rows]
        old = _objects(document, "old")
        if len(old) != len(rows):
            raise ValueError("'old' and 'data' have not as many rows")
        pairs = [({**row, **before}, row) for before, row in zip(old, rows, strict=True)]
        return [
            change
            for before, after in pairs
            for change in ((UPDATE_BEFORE, values_of(before, fields)), (UPDATE_AFTER, values_of(after, fields)))
        ]

    return _decoder(part, changes)


def debezium_encoder(part: Part) -> Callable[[int, Sequence[Any]], bytes]:
    """Return a function that encodes a change as a message."""
    write = json_row_encoder(part)

    def encode(kind: int, values: Sequence[Any]) -> bytes:
        row = write(values)
        text = f'"before":null,"after":{row},"op":"c"' if adds(kind) else f'"before":{row},"after":null,"op":"d"'
        return f"{{{text}}}".encode()

    return encode


def canal_encoder(part: Part) -> Callable[[int, Sequence[Any]], bytes]:
    """Return a function that encodes a change as a message."""
    write = json_row_encoder(part)
    return lambda kind, values: f'{{"data":[{write(values)}],"type":"{"INSERT" if adds(kind) else "DELETE"}"}}'.encode()


def adds(kind: int) -> bool:
    """Return true if a change of this kind is written as an insert, false if as a delete."""
    return kind in (INSERT, UPDATE_AFTER)


def _decoder(part: Part, changes: Callable[[dict[str, Any]], list[Change]]) -> Callable[[bytes], Iterable[Change]]:
    lenient = part.option("ignore-parse-errors") == "true"

    def decode(message: bytes) -> Iterable[Change]:
        try:
            document = parse(message)
            if not isinstance(document, dict):
                raise ValueError("it is no object of JSON")
            return changes(document)
        except ValueError:
            if lenient:
                return ()
            raise

    return decode


def _row(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    row = payload.get(name)
    if not isinstance(row, dict):
        hint = "; in PostgreSQL the table needs REPLICA IDENTITY FULL" if name == "before" else ""
        raise ValueError(f"{name!r} is {row if row is None else 'no object'}{hint}".replace("None", "null"))
    return row


def _objects(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = found.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{name!r} is no array of objects")
    return rows
