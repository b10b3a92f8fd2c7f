"""SQL queries that look up keys in PostgreSQL, built from the column types of the table.

Identifiers are quoted and values are bound. Statements must be executed with parameters, even if these are only ``()``.
One key column is compared with ``= ANY(array)``, several with the rows of unnested arrays.

``_ACCEPTED`` lists the database types for each declared type. A text column may have any type that PostgreSQL can cast
to text; arrays, maps and rows may be JSON. A type that would lose digits is refused, with the type to declare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import sql

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.jdbc import ScanPart, split_name
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.pushed_filter import PushedFilter, pushed_filter_sql
from hintplan.runtime.lookup.api import Key, LookupContext, Row
from hintplan.runtime.lookup.sources.decoding import Decoder, decimal_decoder, integer_decoder, text_decoder
from hintplan.runtime.lookup.sources.matching import MOST_ROWS, RowShape, refuse_excess

_INT2, _INT4, _INT8, _NUMERIC = 21, 23, 20, 1700
_TEXT, _VARCHAR, _BPCHAR, _UUID, _JSON, _JSONB = 25, 1043, 1042, 2950, 114, 3802
_BYTEA = 17

_ACCEPTED: Mapping[str, tuple[int, ...]] = {
    "BOOLEAN": (16,),
    "TINYINT": (_INT2,),
    "SMALLINT": (_INT2,),
    "INT": (_INT2, _INT4),
    "BIGINT": (_INT2, _INT4, _INT8),
    "FLOAT": (700,),
    "DOUBLE": (700, 701, _NUMERIC),
    "DECIMAL": (_NUMERIC, _INT2, _INT4, _INT8),
    "DATE": (1082,),
    "TIMESTAMP": (1114,),
    "TIMESTAMP_LTZ": (1184,),
}
_DECLARE = {16: "BOOLEAN", _INT2: "SMALLINT", _INT4: "INT", _INT8: "BIGINT", 700: "FLOAT", 701: "DOUBLE"}
_DECLARE |= {_NUMERIC: "DECIMAL(p, s)", 1082: "DATE", 1114: "TIMESTAMP(6)", 1184: "TIMESTAMP_LTZ(6)", _BYTEA: "BYTES"}
_KEY_CASTS = {
    "BOOLEAN": "bool", "TINYINT": "int2", "SMALLINT": "int2", "INT": "int4", "BIGINT": "int8", "FLOAT": "float4",
    "DOUBLE": "float8", "DECIMAL": "numeric", "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamptz",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanQuery:
    """A query with a decoder for each column; None for a column whose values need no decoding."""

    statement: sql.Composed
    columns: tuple[Column, ...]
    decoders: tuple[Decoder | None, ...]
    table: str

    def decode(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with each value in its column's type; raise RunError if a value does not fit."""
        changing = [(index, decode) for index, decode in enumerate(self.decoders) if decode is not None]
        if not changing:
            return rows
        return [self._decoded(list(row), changing) for row in rows]

    def _decoded(self, row: list[Any], changing: list[tuple[int, Decoder]]) -> Row:
        for index, decode in changing:
            try:
                row[index] = None if row[index] is None else decode(row[index])
            except ValueError as error:
                raise RunError(
                    f"column {self.columns[index].name!r} in PostgreSQL holds a value that does not fit: {error}",
                    hint="declare the column wide enough",
                    path=f"tables.{self.table}",
                ) from None
        return tuple(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyQuery:
    """A query for many keys at once, with one array for each key column."""

    scan: ScanQuery
    shape: RowShape
    uuids: tuple[int, ...]
    texts: tuple[int, ...]

    def parameters(self, keys: Sequence[Key]) -> tuple[list[Any], ...] | None:
        """Return one array per key column, without keys that cannot occur in the database; None if none is left."""
        if self.uuids or self.texts:
            keys = [key for key in keys if self._possible(key)]
        return tuple(list(values) for values in zip(*keys, strict=True)) if keys else None

    def _possible(self, key: Key) -> bool:
        # PostgreSQL rejects a NUL in a text, and the error would fail all other keys, too.
        return not any("\0" in key[index] for index in self.texts) and all(_is_uuid(key[index]) for index in self.uuids)

    def match(self, keys: Sequence[Key], rows: Sequence[Row]) -> list[list[Row]]:
        refuse_excess(rows, self.scan.table)
        return self.shape.match(keys, self.scan.decode(rows))


def probe_query(context: LookupContext) -> sql.Composed:
    """Return a query without rows, whose description contains the types of the fetched columns."""
    columns = sql.SQL(", ").join(_column(name) for name in RowShape.of(context).fetched)
    return sql.SQL("SELECT {} FROM {} AS t LIMIT 0").format(columns, _table(context))


def scan_query(
    context: LookupContext,
    types: Mapping[str, tuple[int, str]],
    part: ScanPart | None = None,
    pushed_filter: PushedFilter | None = None,
) -> tuple[ScanQuery, tuple[Any, ...]]:
    """Return the query for the rows of ``part``, or of the table, that satisfy ``pushed_filter``, and its parameters.

    ``types`` are the oid and the name of each column's type, as probed.
    """
    scan = _selection(context, context.columns, types)
    conditions: list[sql.Composed] = []
    bound: tuple[Any, ...] = ()
    if part is not None:
        conditions.append(sql.SQL("{} BETWEEN %s AND %s").format(_column(part.column)))
        bound = (part.low, part.high)
    if pushed_filter is not None:
        read = {column.name: _read(context, column, types) for column in context.columns}
        text, values = pushed_filter_sql(pushed_filter, lambda name: read[name].as_string())
        conditions.append(sql.SQL("({})").format(sql.SQL(text)))
        bound += values
    if conditions:
        scan = replace(scan, statement=scan.statement + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions))
    return scan, bound


def _read(context: LookupContext, column: Column, types: Mapping[str, tuple[int, str]]) -> sql.Composed:
    """Return the SQL expression that reads a column."""
    as_text, _ = _reading(context, column, *types[column.name])
    return _column(column.name) + sql.SQL("::text" if as_text else "")


def key_query(context: LookupContext, types: Mapping[str, tuple[int, str]]) -> KeyQuery:
    """Return the query for many keys; raise RunError if a column cannot be read, or cannot be a lookup key."""
    shape = RowShape.of(context)
    declared = {column.name: column for column in (*context.keys, *context.columns)}
    scan = _selection(context, tuple(declared[name] for name in shape.fetched), types)
    casts = [_key_cast(context, column, *types[column.name]) for column in context.keys]
    if len(casts) == 1:
        where = sql.SQL(" WHERE {} = ANY(%s::{}[])").format(_column(context.keys[0].name), sql.SQL(casts[0]))
    else:
        arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(cast)) for cast in casts)
        key_columns = sql.SQL(", ").join(_column(column.name) for column in context.keys)
        where = sql.SQL(" WHERE ({}) IN (SELECT * FROM unnest({}))").format(key_columns, arrays)
    return KeyQuery(
        scan=ScanQuery(
            statement=scan.statement + where + sql.SQL(" LIMIT {}").format(sql.Literal(MOST_ROWS + 1)),
            columns=scan.columns,
            decoders=scan.decoders,
            table=context.table,
        ),
        shape=shape,
        uuids=tuple(index for index, cast in enumerate(casts) if cast == "uuid"),
        texts=tuple(index for index, cast in enumerate(casts) if cast in ("text", "bpchar")),
    )


def _selection(context: LookupContext, columns: tuple[Column, ...], types: Mapping[str, tuple[int, str]]) -> ScanQuery:
    parts, decoders = [], []
    for column in columns:
        parts.append(_read(context, column, types))
        decoders.append(_reading(context, column, *types[column.name])[1])
    statement = sql.SQL("SELECT {} FROM {} AS t").format(sql.SQL(", ").join(parts), _table(context))
    return ScanQuery(statement=statement, columns=columns, decoders=tuple(decoders), table=context.table)


def _reading(context: LookupContext, column: Column, oid: int, name: str) -> tuple[bool, Decoder | None]:
    """Return true if the column is read as text, and the decoder of its values."""
    data_type = parse_type(column.type)
    root = data_type.root
    if data_type.is_text:
        return oid not in (_TEXT, _VARCHAR), None
    if root in NESTED:
        if oid in (_JSON, _JSONB):
            return True, text_decoder(column.type)
        raise _refusal(context, column, name, "read it from a json column, or as STRING")
    if root in ("BYTES", "BINARY", "VARBINARY"):
        if oid == _BYTEA:
            return False, None
        raise _refusal(context, column, name, f"declare it {_DECLARE.get(oid, 'STRING')}")
    if oid not in _ACCEPTED[root]:
        raise _refusal(context, column, name, f"declare it {_DECLARE.get(oid, 'STRING')}")
    return False, _decoder(column, data_type, oid)


def _decoder(column: Column, data_type: DataType, oid: int) -> Decoder | None:
    if data_type.root == "DECIMAL":
        fit = decimal_decoder(column.type)
        return fit if oid == _NUMERIC else lambda value: fit(Decimal(value))
    if data_type.root == "DOUBLE" and oid == _NUMERIC:
        return float
    return integer_decoder(column.type) if data_type.root == "TINYINT" else None


def _key_cast(context: LookupContext, column: Column, oid: int, name: str) -> str:
    """Return the type of the array that is compared with the column, so that an index on the column is used."""
    data_type = parse_type(column.type)
    if data_type.is_text:
        if oid in (_TEXT, _VARCHAR):
            return "text"
        if oid in (_BPCHAR, _UUID):
            return "bpchar" if oid == _BPCHAR else "uuid"
        raise _refusal(context, column, name, "look up by a column of a text type, or through a view that casts it")
    if data_type.root in _KEY_CASTS:
        return _KEY_CASTS[data_type.root]
    if oid == _BYTEA:
        return "bytea"
    raise _refusal(context, column, name, "look up by a column of a plain type")


def _refusal(context: LookupContext, column: Column, found: str, hint: str) -> RunError:
    return RunError(
        f"column {column.name!r} is {column.type} here, but {found} in PostgreSQL",
        hint=hint,
        path=f"tables.{context.table}",
    )


def _table(context: LookupContext) -> sql.Identifier:
    return sql.Identifier(*map(_escaped, split_name(context.options["table-name"])))


def _column(name: str) -> sql.Composed:
    return sql.SQL("t.{}").format(sql.Identifier(_escaped(name)))


def _escaped(name: str) -> str:
    # psycopg parses placeholders in the whole statement, even in identifiers.
    return name.replace("%", "%%")


def _is_uuid(text: str) -> bool:
    # PostgreSQL accepts other spellings, but always returns this one, and the engine compares keys as texts.
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
