"""The dialect of PostgreSQL: its types, its catalog, and its statements.

COPY loads the rows into an unlogged staging table. Types are compared in the form of ``format_type``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from hintplan.plans.connectors.jdbc import split_name
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.dialect import ServerDialect
from hintplan.runtime.connectors.jdbc.target import (
    OP,
    PART,
    DatabaseCursor,
    DatabaseTarget,
    Row,
    ServerTable,
    Stage,
    moments,
)
from hintplan.runtime.lookup.source import source_of_classes
from hintplan.runtime.lookup.sources.failures import import_extra

if TYPE_CHECKING:
    import psycopg

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
_COLUMNS = """
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


class Postgres(ServerDialect):
    """PostgreSQL."""

    title = "PostgreSQL"
    lookup = source_of_classes(
        "jdbc:postgresql",
        "hintplan.runtime.connectors.jdbc.postgres_lookup",
        {"sync": "PostgresLookup", "async": "AsyncPostgresLookup", "full": "PostgresScan"},
        extra="postgres",
        packages=("psycopg", "psycopg_pool"),
    )
    create_commits = (
        "CREATE TABLE IF NOT EXISTS {commits} (sink text NOT NULL, query_id text NOT NULL, "
        "batch_id bigint NOT NULL, PRIMARY KEY (sink, query_id))"
    )
    remember = (
        "INSERT INTO {commits} AS c VALUES (%s, %s, %s) "
        "ON CONFLICT (sink, query_id) DO UPDATE SET batch_id = GREATEST(c.batch_id, excluded.batch_id)"
    )
    create_stage = (
        f"CREATE UNLOGGED TABLE {{stage}} AS SELECT {{columns}}, 0::smallint AS {OP}, ''::text AS {PART} "
        "FROM {target} AS t WITH NO DATA"
    )
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE %s"
    among = "= ANY(%s)"
    delete = "DELETE FROM {target} AS t USING {stage} AS s WHERE"

    def quote(self, name: str) -> str:
        return _postgres_name(name).replace("%", "%%")

    def transaction(self, target: DatabaseTarget) -> AbstractContextManager[DatabaseCursor]:
        connections = import_extra("hintplan.runtime.connectors.jdbc.postgres_connection", "postgres", "jdbc")
        transaction: AbstractContextManager[DatabaseCursor] = connections.postgres_transaction(target)
        return transaction

    def find(self, cursor: DatabaseCursor, target: DatabaseTarget) -> ServerTable | None:
        cursor.execute(_COLUMNS, (_name(target),))
        columns = cursor.fetchall()
        if not columns:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (_name(target),))
            ((exists,),) = cursor.fetchall()
            if exists:
                raise RunError(
                    f"{target.options['table-name']!r} in PostgreSQL is no table that a sink can write to",
                    hint="write to a table, not to a view, a foreign table or a sequence",
                    path=target.path,
                )
            return None
        cursor.execute(_UNIQUE, (_name(target),))
        unique = cursor.fetchall()
        return ServerTable(
            schema=columns[0][0],
            table=columns[0][1],
            columns={name: type_ for _, _, name, type_, *_ in columns},
            required=frozenset(name for _, _, name, _, required, _ in columns if required),
            unique=tuple(frozenset(index_columns) for (index_columns,) in unique),
            made=columns[0][5],
        )

    def create(self, cursor: DatabaseCursor, target: DatabaseTarget) -> None:
        name = ".".join(map(self.quote, split_name(target.options["table-name"])))
        cursor.execute(f"CREATE TABLE {name} ({self.definitions(target.columns, target.primary_key)})", ())

    def column_type(self, column: Column) -> str:
        data_type = parse_type(column.type)
        if data_type.root == "DECIMAL":
            return f"numeric({data_type.precision},{data_type.scale})"
        if data_type.root in ("CHAR", "VARCHAR"):
            return "text" if (data_type.precision or 0) > 10_485_760 else f"character varying({data_type.precision})"
        if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            zone = "with" if data_type.root == "TIMESTAMP_LTZ" else "without"
            return f"timestamp({min(data_type.precision or 0, 6)}) {zone} time zone"
        return _TYPES[data_type.root]

    def fits(self, column: Column, actual: str) -> bool:
        data_type = parse_type(column.type)
        if data_type.is_text:
            return _TEXTS.fullmatch(actual) is not None
        if actual == "numeric" and (data_type.root == "DECIMAL" or data_type.is_integer):
            return True
        if data_type.root == "DECIMAL":
            digits = re.fullmatch(r"numeric\(([0-9]+),([0-9]+)\)", actual)
            scale, precision = data_type.scale or 0, data_type.precision or 0
            return (
                digits is not None and int(digits[2]) >= scale and int(digits[1]) - int(digits[2]) >= precision - scale
            )
        if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            zone = "with" if data_type.root == "TIMESTAMP_LTZ" else "without"
            match = re.fullmatch(rf"timestamp(?:\(([0-6])\))? {zone} time zone", actual)
            return match is not None and int(match[1] or 6) >= min(data_type.precision or 0, 6)
        return actual in _WIDER[_TYPES[data_type.root]]

    def storage(self, values: pa.ChunkedArray, column: Column, target: DatabaseTarget) -> Sequence[object]:
        root = parse_type(column.type).root
        if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return moments(values, in_utc=root == "TIMESTAMP_LTZ")
        stored: list[Any] = values.to_pylist()
        return [NAN if value != value else value for value in stored] if root in ("FLOAT", "DOUBLE") else stored

    def load(self, cursor: DatabaseCursor, stage: Stage, names: Sequence[str], rows: Sequence[Row]) -> None:
        columns = ", ".join(map(_postgres_name, names))
        of_driver = cast("psycopg.Cursor[Any]", cursor)
        with of_driver.copy(f"COPY {stage.sql.replace('%%', '%')} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def lock(self, cursor: DatabaseCursor, number: int) -> None:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (number - (1 << 63),))


def _name(target: DatabaseTarget) -> str:
    return ".".join(map(_postgres_name, split_name(target.options["table-name"])))


def _postgres_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
