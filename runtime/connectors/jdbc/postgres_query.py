"""The SQL that looks keys up in PostgreSQL, made from the types that the table has.

Identifiers are quoted and values bound; statements are to be executed with parameters, if only with ``()``. One key
column is compared with ``= ANY(array)``, several with the rows of unnested arrays. How a declared column may
be stored is in ``_ACCEPTED``; a text column may be anything that PostgreSQL can write as text, and arrays, maps and
rows may be JSON. What would lose digits is refused, with the type to declare.
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
from hintplan.runtime.expressions.asked import Asked, asked_sql
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
    """A query and what turns its values into those of the columns; None where they are that already."""

    statement: sql.Composed
    columns: tuple[Column, ...]
    decoders: tuple[Decoder | None, ...]
    table: str

    def decode(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with every value as its column's type has it; RunError naming the column if one does not fit."""
        changing = [(at, decode) for at, decode in enumerate(self.decoders) if decode is not None]
        if not changing:
            return rows
        return [self._decoded(list(row), changing) for row in rows]

    def _decoded(self, row: list[Any], changing: list[tuple[int, Decoder]]) -> Row:
        for at, decode in changing:
            try:
                row[at] = None if row[at] is None else decode(row[at])
            except ValueError as error:
                raise RunError(
                    f"column {self.columns[at].name!r} in PostgreSQL holds a value that does not fit: {error}",
                    hint="declare the column wide enough",
                    path=f"tables.{self.table}",
                ) from None
        return tuple(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyQuery:
    """A query for many keys at once: one array for each key column."""

    scan: ScanQuery
    shape: RowShape
    uuids: tuple[int, ...]
    texts: tuple[int, ...]

    def parameters(self, keys: Sequence[Key]) -> tuple[list[Any], ...] | None:
        """An array for each key column, of the keys that the database could have at all; None if there are none."""
        if self.uuids or self.texts:
            keys = [key for key in keys if self._possible(key)]
        return tuple(list(values) for values in zip(*keys, strict=True)) if keys else None

    def _possible(self, key: Key) -> bool:
        # PostgreSQL has no NUL in texts and answers one with an error, which would fail every other key as well.
        return not any("\0" in key[at] for at in self.texts) and all(_is_uuid(key[at]) for at in self.uuids)

    def match(self, keys: Sequence[Key], rows: Sequence[Row]) -> list[list[Row]]:
        refuse_excess(rows, self.scan.table)
        return self.shape.match(keys, self.scan.decode(rows))


def probe_query(context: LookupContext) -> sql.Composed:
    """A query without rows, whose description tells the types of the fetched columns."""
    names = sql.SQL(", ").join(_column(name) for name in RowShape.of(context).fetched)
    return sql.SQL("SELECT {} FROM {} AS t LIMIT 0").format(names, _table(context))


def scan_query(
    context: LookupContext,
    types: Mapping[str, tuple[int, str]],
    part: ScanPart | None = None,
    asked: Asked | None = None,
) -> tuple[ScanQuery, tuple[Any, ...]]:
    """The rows of ``part``, or all, for which ``asked`` is true, and the parameters; ``types`` are oid and name of the
    type of each column, as probed.
    """
    scan = _selection(context, context.columns, types)
    conditions: list[sql.Composed] = []
    bound: tuple[Any, ...] = ()
    if part is not None:
        conditions.append(sql.SQL("{} BETWEEN %s AND %s").format(_column(part.column)))
        bound = (part.low, part.high)
    if asked is not None:
        read = {column.name: _read(context, column, types) for column in context.columns}
        text, values = asked_sql(asked, lambda name: read[name].as_string())
        conditions.append(sql.SQL("({})").format(sql.SQL(text)))
        bound += values
    if conditions:
        scan = replace(scan, statement=scan.statement + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions))
    return scan, bound


def _read(context: LookupContext, column: Column, types: Mapping[str, tuple[int, str]]) -> sql.Composed:
    """The value of a column as it is read."""
    as_text, _ = _reading(context, column, *types[column.name])
    return _column(column.name) + sql.SQL("::text" if as_text else "")


def key_query(context: LookupContext, types: Mapping[str, tuple[int, str]]) -> KeyQuery:
    """The rows of many keys; RunError if a column cannot be read, or not be looked up by."""
    shape = RowShape.of(context)
    declared = {column.name: column for column in (*context.keys, *context.columns)}
    scan = _selection(context, tuple(declared[name] for name in shape.fetched), types)
    casts = [_key_cast(context, column, *types[column.name]) for column in context.keys]
    if len(casts) == 1:
        where = sql.SQL(" WHERE {} = ANY(%s::{}[])").format(_column(context.keys[0].name), sql.SQL(casts[0]))
    else:
        arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(cast)) for cast in casts)
        names = sql.SQL(", ").join(_column(column.name) for column in context.keys)
        where = sql.SQL(" WHERE ({}) IN (SELECT * FROM unnest({}))").format(names, arrays)
    return KeyQuery(
        scan=ScanQuery(
            statement=scan.statement + where + sql.SQL(" LIMIT {}").format(sql.Literal(MOST_ROWS + 1)),
            columns=scan.columns,
            decoders=scan.decoders,
            table=context.table,
        ),
        shape=shape,
        uuids=tuple(at for at, cast in enumerate(casts) if cast == "uuid"),
        texts=tuple(at for at, cast in enumerate(casts) if cast in ("text", "bpchar")),
    )


def _selection(context: LookupContext, columns: tuple[Column, ...], types: Mapping[str, tuple[int, str]]) -> ScanQuery:
    parts, decoders = [], []
    for column in columns:
        parts.append(_read(context, column, types))
        decoders.append(_reading(context, column, *types[column.name])[1])
    statement = sql.SQL("SELECT {} FROM {} AS t").format(sql.SQL(", ").join(parts), _table(context))
    return ScanQuery(statement=statement, columns=columns, decoders=tuple(decoders), table=context.table)


def _reading(context: LookupContext, column: Column, oid: int, name: str) -> tuple[bool, Decoder | None]:
    """Whether the column is read as text, and what decodes its values."""
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
    """The type whose array is compared with the column, so that an index on the column serves."""
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
    # psycopg looks for placeholders in the whole statement, in identifiers too.
    return name.replace("%", "%%")


def _is_uuid(text: str) -> bool:
    # PostgreSQL reads other spellings too, but writes this one, and texts are equal if their characters are.
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
