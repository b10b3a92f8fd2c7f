"""PostgreSQL as a sink target: its types, its catalog, and the statements in its dialect.

COPY loads the rows into an unlogged staging table. Types are compared in the form of ``format_type``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa

from hintplan.plans.connectors.jdbc import split_name
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.postgres_connection import REFUSED_HINT, connection_settings, is_refused, passes
from hintplan.runtime.connectors.jdbc.target import OP, PART, Found, Passing, Row, Server, Stage, Target, moments
from hintplan.runtime.lookup.sources.failures import redacted

NAN = math.nan
"""A single NaN object, so that rows that contain it compare equal."""

_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "INT": "integer", "BIGINT": "bigint",
    "FLOAT": "real", "DOUBLE": "double precision", "DATE": "date", "STRING": "text", "BYTES": "bytea",
    "BINARY": "bytea", "VARBINARY": "bytea", "ARRAY": "jsonb", "MAP": "jsonb", "MULTISET": "jsonb",
    "ROW": "jsonb",
}  # fmt: skip
_WIDER = {
    "boolean": ("boolean",),
    "smallint": ("smallint", "integer", "bigint"),
    "integer": ("integer", "bigint"),
    "bigint": ("bigint",),
    "real": ("real", "double precision"),
    "double precision": ("double precision",),
    "date": ("date",),
    "bytea": ("bytea",),
    "jsonb": ("jsonb", "json", "text"),
}
_TEXTS = re.compile(r"text|character varying(\([0-9]+\))?|character\([0-9]+\)|uuid|json|jsonb")
_HINTS = {
    "42501": "grant the user CREATE on the schema, for staging tables, and SELECT, INSERT, UPDATE, DELETE on the table",
    "3F000": "check the schema in 'table-name'",
    "23505": "another unique index of the table refuses the row",
}
_FOUND = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    pg_relation_filenode(c.oid)::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')
"""
_UNIQUE = """
SELECT array_agg(a.attname::text)
FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""


@contextmanager
def _transaction(target: Target) -> Iterator[Any]:
    settings = connection_settings(target.options, target.name, "-c timezone=UTC -c client_min_messages=error")
    try:
        with psycopg.connect(**settings) as connection, connection.cursor() as cursor:
            yield cursor
    except psycopg.Error as error:
        state = error.sqlstate or ""
        text = redacted(error.diag.message_primary or " ".join(str(error).split()), target.options)
        if is_refused(error):
            raise RunError(f"PostgreSQL refused a connection: {text}", hint=REFUSED_HINT, path=target.path) from None
        if passes(error):
            raise Passing(f"PostgreSQL did not write to table {target.options['table-name']!r}: {text}") from None
        message = f"PostgreSQL refused to write to table {target.options['table-name']!r}: {text}"
        raise RunError(message, hint=_HINTS.get(state), path=target.path) from None


def _name(target: Target) -> str:
    return ".".join(map(_plainly, split_name(target.options["table-name"])))


def _plainly(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(name: str) -> str:
    return _plainly(name).replace("%", "%%")


def _find(cursor: Any, target: Target) -> Found | None:
    columns = cursor.execute(_FOUND, (_name(target),)).fetchall()
    if not columns:
        exists = cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (_name(target),)).fetchone()
        if exists[0]:
            raise RunError(
                f"{target.options['table-name']!r} in PostgreSQL is no table that a sink can write to",
                hint="write to a table, not to a view, a foreign table or a sequence",
                path=target.path,
            )
        return None
    unique = cursor.execute(_UNIQUE, (_name(target),)).fetchall()
    return Found(
        schema=columns[0][0],
        table=columns[0][1],
        columns={name: type_ for _, _, name, type_, *_ in columns},
        required=frozenset(name for _, _, name, _, required, _ in columns if required),
        unique=tuple(frozenset(index_columns) for (index_columns,) in unique),
        made=columns[0][5],
    )


def _create(cursor: Any, target: Target) -> None:
    parts = []
    for column in target.columns:
        required = not parse_type(column.type).nullable or column.name in target.primary_key
        parts.append(f"{_quoted(column.name)} {_type(column)}" + (" NOT NULL" if required else ""))
    if target.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(_quoted, target.primary_key))})")
    name = ".".join(map(_quoted, split_name(target.options["table-name"])))
    cursor.execute(f"CREATE TABLE {name} ({', '.join(parts)})", ())


def _type(column: Column) -> str:
    data_type = parse_type(column.type)
    if data_type.root == "DECIMAL":
        return f"numeric({data_type.precision},{data_type.scale})"
    if data_type.root in ("CHAR", "VARCHAR"):
        return "text" if (data_type.precision or 0) > 10_485_760 else f"character varying({data_type.precision})"
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        zone = "with" if data_type.root == "TIMESTAMP_LTZ" else "without"
        return f"timestamp({min(data_type.precision or 0, 6)}) {zone} time zone"
    return _TYPES[data_type.root]


def _fits(column: Column, found: str) -> bool:
    data_type = parse_type(column.type)
    if data_type.is_text:
        return _TEXTS.fullmatch(found) is not None
    if found == "numeric" and (data_type.root == "DECIMAL" or data_type.is_integer):
        return True
    if data_type.root == "DECIMAL":
        digits = re.fullmatch(r"numeric\(([0-9]+),([0-9]+)\)", found)
        scale, precision = data_type.scale or 0, data_type.precision or 0
        return digits is not None and int(digits[2]) >= scale and int(digits[1]) - int(digits[2]) >= precision - scale
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        zone = "with" if data_type.root == "TIMESTAMP_LTZ" else "without"
        match = re.fullmatch(rf"timestamp(?:\(([0-6])\))? {zone} time zone", found)
        return match is not None and int(match[1] or 6) >= min(data_type.precision or 0, 6)
    return found in _WIDER[_TYPES[data_type.root]]


def _storage(values: pa.ChunkedArray, column: Column, target: Target) -> list[Any]:
    root = parse_type(column.type).root
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return moments(values, in_utc=root == "TIMESTAMP_LTZ")
    stored: list[Any] = values.to_pylist()
    return [NAN if value != value else value for value in stored] if root in ("FLOAT", "DOUBLE") else stored


def _load(cursor: Any, stage: Stage, names: Sequence[str], rows: Sequence[Row]) -> None:
    columns = ", ".join(map(_plainly, names))
    with cursor.copy(f"COPY {stage.sql.replace('%%', '%')} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _lock(cursor: Any, number: int) -> None:
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (number - (1 << 63),))


def _upsert(keys: Sequence[str], values: Sequence[str]) -> str:
    update = ", ".join(f"{name} = excluded.{name}" for name in values)
    return f"ON CONFLICT ({', '.join(keys)}) DO {f'UPDATE SET {update}' if update else 'NOTHING'}"


POSTGRES = Server(
    title="PostgreSQL",
    transaction=_transaction,
    quoted=_quoted,
    find=_find,
    create=_create,
    fits=_fits,
    storage=_storage,
    create_commits="CREATE TABLE IF NOT EXISTS {commits} (sink text NOT NULL, query_id text NOT NULL, "
    "batch_id bigint NOT NULL, PRIMARY KEY (sink, query_id))",
    remember="INSERT INTO {commits} AS c VALUES (%s, %s, %s) "
    "ON CONFLICT (sink, query_id) DO UPDATE SET batch_id = GREATEST(c.batch_id, excluded.batch_id)",
    create_stage=f"CREATE UNLOGGED TABLE {{stage}} AS SELECT {{columns}}, 0::smallint AS {OP}, ''::text AS {PART} "
    "FROM {target} AS t WITH NO DATA",
    tables="SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE %s",
    load=_load,
    among="= ANY(%s)",
    lock=_lock,
    upsert=_upsert,
    delete="DELETE FROM {target} AS t USING {stage} AS s WHERE",
)
