"""MySQL and MariaDB as sink targets: their types, their catalog, and the statements in their dialect.

Tables must use InnoDB, because other engines cannot roll back a micro-batch. Types are compared in the catalog's form,
such as ``decimal(10,2)``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymysql

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.jdbc import split_name
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.mysql_connection import code_of, connection, passes, quoted, told
from hintplan.runtime.connectors.jdbc.target import OP, PART, Found, Passing, Row, Server, Stage, Target, moments

_TYPES = {
    "BOOLEAN": "tinyint(1)", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "DATE": "date", "STRING": "longtext", "BYTES": "longblob", "ARRAY": "json",
    "MAP": "json", "MULTISET": "json", "ROW": "json",
}  # fmt: skip
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_LONG_TEXTS = ("text", "mediumtext", "longtext", "json")
_TEXTS = ("char", "varchar", "tinytext", "enum", "uuid", *_LONG_TEXTS)
_BLOBS = ("varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "BOOLEAN": ("tinyint",),
    "FLOAT": ("float", "double"),
    "DOUBLE": ("double",),
    "DATE": ("date",),
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), _TEXTS),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), _BLOBS),
    **dict.fromkeys(NESTED, _LONG_TEXTS),
}
_LONGEST_KEY = 768
_HINTS = {
    1142: "grant the user CREATE and DROP on the database, for staging tables, and SELECT, INSERT, UPDATE, DELETE",
    1044: "grant the user the right to use the database",
    1146: "check 'table-name'",
    1062: "another unique index of the table refuses the row",
}
_LOCK_SECONDS = 3600


@contextmanager
def _transaction(target: Target) -> Iterator[Any]:
    try:
        session = connection(target.options, target.name)
        try:
            with session.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                cursor.execute("BEGIN")
                yield cursor
            session.commit()
        finally:
            session.close()  # rolls back an uncommitted transaction
    except pymysql.MySQLError as error:
        text, name = told(error, target.options), target.options["table-name"]
        if passes(error):
            raise Passing(f"MySQL did not write to table {name!r}: {text}") from None
        message = f"MySQL refused to write to table {name!r}: {text}"
        raise RunError(message, hint=_HINTS.get(code_of(error)), path=target.path) from None


def _place(cursor: Any, target: Target) -> tuple[str, str]:
    """Return the names of the database and the table."""
    *database, table = split_name(target.options["table-name"])
    if not database:
        cursor.execute("SELECT DATABASE()", ())
        database = [cursor.fetchone()[0]]
    return database[0], table


def _find(cursor: Any, target: Target) -> Found | None:
    schema_and_table = _place(cursor, target)
    where = "WHERE table_schema = %s AND table_name = %s"
    cursor.execute(f"SELECT table_type, engine, create_time FROM information_schema.tables {where}", schema_and_table)
    description = cursor.fetchone()
    if description is None:
        return None
    if description[0] != "BASE TABLE" or description[1] != "InnoDB":
        raise RunError(
            f"{target.options['table-name']!r} in MySQL is no table of InnoDB, which could take a batch back",
            hint="write to a table, and not to a view; ALTER TABLE ... ENGINE = InnoDB",
            path=target.path,
        )
    selected = "column_name, column_type, is_nullable, collation_name, extra"
    cursor.execute(
        f"SELECT {selected} FROM information_schema.columns {where} ORDER BY ordinal_position", schema_and_table
    )
    columns = cursor.fetchall()
    cursor.execute(
        f"SELECT index_name, column_name, sub_part FROM information_schema.statistics {where} AND non_unique = 0",
        schema_and_table,
    )
    indexes: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for index, column, part in cursor.fetchall():
        indexes[index].append((column, part))
    numbered = {column[0] for column in columns if "auto_increment" in column[4].lower()}
    unique = [frozenset(name for name, _ in parts) for parts in indexes.values()]
    _refuse_key(target, {column[0]: column[3] for column in columns}, unique, numbered)
    return Found(
        schema=schema_and_table[0],
        table=schema_and_table[1],
        columns={column[0]: str(column[1]) for column in columns},
        required=frozenset(column[0] for column in columns if column[2] == "NO"),
        unique=tuple(
            frozenset(name for name, _ in parts) for parts in indexes.values() if all(part is None for _, part in parts)
        ),
        made=None if description[2] is None else str(description[2]),
    )


def _refuse_key(
    target: Target, collations: Mapping[str, str | None], unique: Sequence[frozenset[str]], numbered: set[str]
) -> None:
    """Raise RunError if MySQL would treat two keys as equal, or replace rows by columns other than the key."""
    key = frozenset(target.primary_key)
    for name in target.primary_key:
        collation = collations.get(name)
        if collation is not None and not collation.endswith("_bin"):
            raise RunError(
                f"column {name!r} of the key has the collation {collation} in MySQL, to which different keys are equal",
                hint="give it a binary one there, such as utf8mb4_bin",
                path=target.path,
            )
    for columns in unique if key in unique else ():
        if columns != key and not columns & numbered - {column.name for column in target.columns}:
            index, name = ", ".join(sorted(columns)), target.options["table-name"]
            raise RunError(
                f"table {name!r} in MySQL has a unique index on ({index}), by which it would replace other rows",
                hint="drop the index, or declare these columns as the PRIMARY KEY",
                path=target.path,
            )


def _create(cursor: Any, target: Target) -> None:
    parts = []
    for column in target.columns:
        required = not parse_type(column.type).nullable or column.name in target.primary_key
        parts.append(f"{quoted(column.name)} {_type(column, target)} {'NOT NULL' if required else 'NULL'}")
    if target.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, target.primary_key))})")
    name = ".".join(map(quoted, _place(cursor, target)))
    cursor.execute(f"CREATE TABLE {name} ({', '.join(parts)}) ENGINE = InnoDB {_BINARY}", ())


_BINARY = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def _type(column: Column, target: Target) -> str:
    data_type = parse_type(column.type)
    root, digits = data_type.root, data_type.precision or 0
    if root == "DECIMAL":
        return f"decimal({data_type.precision},{data_type.scale})"
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return f"datetime({min(digits, 6)})"
    if root in ("CHAR", "VARCHAR") and digits <= _LONGEST_KEY:
        return f"varchar({digits})"
    if root in ("BINARY", "VARBINARY") and digits <= _LONGEST_KEY:
        return f"varbinary({digits})"
    sql_type = _TYPES["STRING" if data_type.is_text else "BYTES" if "BINARY" in root else root]
    if column.name in target.primary_key and sql_type in ("longtext", "longblob"):
        raise RunError(
            f"column {column.name!r} of the key is {column.type}: MySQL has no key of that length",
            hint=f"declare it VARCHAR(n) or VARBINARY(n) of at most {_LONGEST_KEY}, or create the table in MySQL",
            path=target.path,
        )
    return sql_type


def _fits(column: Column, found: str) -> bool:
    data_type = parse_type(column.type)
    match = re.fullmatch(r"([a-z]+)(?:\((.*)\))?( unsigned)?.*", found)
    if match is None or match[3]:
        return False
    base, root = match[1], data_type.root
    if base == "decimal" and (root == "DECIMAL" or data_type.is_integer):
        precision, scale = (int(part) for part in match[2].split(","))
        wanted, after = (data_type.precision or 0, data_type.scale or 0) if root == "DECIMAL" else (_DIGITS[root], 0)
        return scale >= after and precision - scale >= wanted - after
    if data_type.is_integer:
        return base in _INTEGERS and _INTEGERS.index(base) >= _INTEGERS.index(_TYPES[root])
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        kinds = ("datetime", "timestamp") if root == "TIMESTAMP_LTZ" else ("datetime",)
        return base in kinds and int(match[2] or 0) >= min(data_type.precision or 0, 6)
    return base in _ACCEPTED.get(root, ())


def _storage(values: pa.ChunkedArray, column: Column, target: Target) -> list[Any]:
    root = parse_type(column.type).root
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return moments(values, in_utc=False)
    stored: list[Any] = values.to_pylist()
    if root not in ("FLOAT", "DOUBLE"):
        return stored
    if any(value is not None and math.isinf(value) for value in stored):
        raise RunError(
            f"column {column.name!r} has an infinite number, which MySQL cannot hold",
            hint="make it NULL in the query",
            path=target.path,
        )
    return [None if value != value else value for value in stored]


def _load(cursor: Any, stage: Stage, names: Sequence[str], rows: Sequence[Row]) -> None:
    columns = ", ".join(map(quoted, names))
    cursor.executemany(f"INSERT INTO {stage.sql} ({columns}) VALUES ({', '.join(['%s'] * len(names))})", rows)


def _lock(cursor: Any, number: int) -> None:
    # The lock belongs to the connection, which each transaction opens for itself. It is released after the commit.
    cursor.execute("SELECT GET_LOCK(%s, %s)", (f"hintplan {number:016x}", _LOCK_SECONDS))
    if cursor.fetchone()[0] != 1:
        raise Passing("MySQL did not give the lock of the sink: another run writes to the table")


def _upsert(keys: Sequence[str], values: Sequence[str]) -> str:
    return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = s.{name}" for name in values or keys)


MYSQL = Server(
    title="MySQL",
    transaction=_transaction,
    quoted=quoted,
    find=_find,
    create=_create,
    fits=_fits,
    storage=_storage,
    create_commits="CREATE TABLE IF NOT EXISTS {commits} (sink varchar(256) NOT NULL, query_id varchar(256) NOT NULL, "
    f"batch_id bigint NOT NULL, PRIMARY KEY (sink, query_id)) ENGINE = InnoDB {_BINARY}",
    remember="INSERT INTO {commits} VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE "
    "batch_id = GREATEST(batch_id, VALUES(batch_id))",
    # The outer join makes all columns nullable, because a row to be deleted has only its key.
    create_stage=f"CREATE TABLE {{stage}} ENGINE = InnoDB AS SELECT {{columns}}, CAST(0 AS SIGNED) AS {OP}, "
    f"CAST('' AS CHAR(40)) AS {PART} FROM (SELECT 1 AS one) AS o LEFT JOIN {{target}} AS t ON FALSE LIMIT 0",
    tables="SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s",
    load=_load,
    among="IN %s",
    lock=_lock,
    upsert=_upsert,
    delete="DELETE t FROM {target} AS t JOIN {stage} AS s ON",
)
