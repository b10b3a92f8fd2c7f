"""Keys and values in Redis for a table: names from ``key-pattern``, and rows from hashes, JSON or plain texts.

A hash is one row, with its fields as columns. A JSON object is one row, and a JSON array of objects is several rows. A
plain text is the single column that is not in the pattern. Columns in the pattern have the values of the lookup key,
unless the value contains them, too. A missing field is NULL. Makes no calls to a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import Key, LookupContext, Row
from hintplan.runtime.lookup.sources.addressing import address_parts, addressed_columns
from hintplan.runtime.lookup.sources.decoding import Decoder, json_decoder, key_text, parse_json, text_decoder
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.lookup.sources.matching import RowShape

_BYTES = ("BYTES", "BINARY", "VARBINARY")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisValues:
    """Converts keys to names in Redis, and values to rows. ``fields`` are the fields of a hash, or None for texts."""

    context: LookupContext
    shape: RowShape
    addressed: tuple[str, ...]
    parts: tuple[str | int, ...]
    key_types: tuple[str, ...]
    fields: tuple[str, ...] | None
    decoders: Mapping[str, Decoder]
    value_column: str | None

    def name(self, key: Key) -> bytes:
        text = (part if isinstance(part, str) else key_text(self.key_types[part], key[part]) for part in self.parts)
        return "".join(text).encode()

    def is_empty(self, found: Sequence[bytes | None]) -> bool:
        return all(value is None for value in found)

    def from_hash(
        self, key: Key, name: bytes, found: Sequence[bytes | None], there: Mapping[bytes, int]
    ) -> Sequence[Row]:
        if not there.get(name, 1):
            return ()
        values = {
            field: self._decoded(name, field, value)
            for field, value in zip(self.fields or (), found, strict=False)
            if value is not None
        }
        row = self.shape.row(key, values, self.addressed)
        return () if row is None else (row,)

    def from_text(self, key: Key, value: bytes | None) -> Sequence[Row]:
        if value is None:
            return ()
        name = self.name(key)
        if self.value_column is not None:
            objects = [{self.value_column: self._decoded(name, self.value_column, value)}]
        else:
            objects = [self._object(name, item) for item in self._items(name, value)]
        return [row for values in objects if (row := self.shape.row(key, values, self.addressed)) is not None]

    def _items(self, name: bytes, value: bytes) -> list[Any]:
        try:
            parsed = parse_json(value)
        except ValueError as error:
            raise self._misfit(name, f"it is not JSON ({error})") from None
        return parsed if isinstance(parsed, list) else [parsed]

    def _object(self, name: bytes, item: object) -> dict[str, Any]:
        if not isinstance(item, dict):
            raise self._misfit(name, "expected a JSON object, or an array of objects")
        return {field: self._decoded(name, field, value) for field, value in item.items() if field in self.decoders}

    def _decoded(self, name: bytes, field: str, value: object) -> Any:
        decode = self.decoders.get(field)
        try:
            return value if decode is None else decode(value)
        except ValueError as error:
            raise self._misfit(name, f"column {field!r}: {error}") from None

    def refuse_others(self, names: Sequence[bytes], types: Sequence[bytes]) -> None:
        """Raise RunError if a name for which MGET returned nothing has a value of another type."""
        for name, actual in zip(names, types, strict=True):
            if actual not in (b"none", b"string"):
                raise self._misfit(name, f"it is a {actual.decode()}")

    def _misfit(self, name: bytes, problem: str) -> RunError:
        kind = self.context.options.get("data-type", "hash")
        return RunError(
            redacted(f"the value of {name.decode()!r} in Redis does not fit: {problem}", self.context.options),
            hint=f"the table's 'data-type' is {kind!r}",
            path=f"tables.{self.context.table}",
        )


def redis_values(context: LookupContext) -> RedisValues:
    kind = context.options.get("data-type", "hash")
    needed = addressed_columns(context, "key-pattern")
    shape = RowShape.of(context)
    types = {column.name: column.type for column in (*context.keys, *context.columns)}
    fields = [name for name in shape.fetched if name not in needed]
    decoder = json_decoder if kind == "json" else _bytes_decoder
    return RedisValues(
        context=context,
        shape=shape,
        addressed=needed,
        parts=address_parts(context, "key-pattern"),
        key_types=tuple(column.type for column in context.keys),
        # If only the key of a hash is wanted, request a field that no hash has.
        fields=(tuple(fields) or ("",)) if kind == "hash" else None,
        decoders={name: decoder(types[name]) for name in (shape.fetched if kind == "json" else fields)},
        value_column=(fields[0] if fields else "") if kind == "string" else None,
    )


def _bytes_decoder(type_text: str) -> Decoder:
    if parse_type(type_text).root in _BYTES:
        return bytes
    decode = text_decoder(type_text)
    return lambda value: decode(value.decode())
