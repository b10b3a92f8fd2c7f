"""The dialect of MySQL and MariaDB: their types, their catalog, and their statements.

Tables must use InnoDB, because other engines cannot roll back a micro-batch. Types are compared in the catalog's form,
such as ``decimal(10,2)``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pyarrow as pa

from hintplan.plans.connectors.columns import NESTED
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
    TransientError,
    moments,
)
from hintplan.runtime.lookup.source import source_of_classes
from hintplan.runtime.lookup.sources.failures import import_extra

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
_LOCK_SECONDS = 3600
_BINARY = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


class Mysql(ServerDialect):
    """MySQL and MariaDB."""

    title = "MySQL"
    lookup = source_of_classes(
        "jdbc:mysql",
        "hintplan.runtime.connectors.jdbc.mysql_lookup",
        {"sync": "MysqlLookup", "full": "MysqlScan"},
        extra="mysql",
        packages=("pymysql",),
    )
    nullable: ClassVar[str] = " NULL"
    create_commits = (
        "CREATE TABLE IF NOT EXISTS {commits} (sink varchar(256) NOT NULL, query_id varchar(256) NOT NULL, "
        f"batch_id bigint NOT NULL, PRIMARY KEY (sink, query_id)) ENGINE = InnoDB {_BINARY}"
    )
    remember = (
        "INSERT INTO {commits} VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE "
        "batch_id = GREATEST(batch_id, VALUES(batch_id))"
    )
    # The outer join makes all columns nullable, because a row to be deleted has only its key.
    create_stage = (
        f"CREATE TABLE {{stage}} ENGINE = InnoDB AS SELECT {{columns}}, CAST(0 AS SIGNED) AS {OP}, "
        f"CAST('' AS CHAR(40)) AS {PART} FROM (SELECT 1 AS one) AS o LEFT JOIN {{target}} AS t ON FALSE LIMIT 0"
    )
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s"
    among = "IN %s"
    delete = "DELETE t FROM {target} AS t JOIN {stage} AS s ON"

    def quote(self, name: str) -> str:
        return mysql_name(name)

    def transaction(self, target: DatabaseTarget) -> AbstractContextManager[DatabaseCursor]:
        connections = import_extra("hintplan.runtime.connectors.jdbc.mysql_connection", "mysql", "jdbc")
        transaction: AbstractContextManager[DatabaseCursor] = connections.mysql_transaction(target)
        return transaction

    def find(self, cursor: DatabaseCursor, target: DatabaseTarget) -> ServerTable | None:
        schema_and_table = _place(cursor, target)
        where = "WHERE table_schema = %s AND table_name = %s"
        cursor.execute(
            f"SELECT table_type, engine, create_time FROM information_schema.tables {where}", schema_and_table
        )
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
        return ServerTable(
            schema=schema_and_table[0],
            table=schema_and_table[1],
            columns={column[0]: str(column[1]) for column in columns},
            required=frozenset(column[0] for column in columns if column[2] == "NO"),
            unique=tuple(
                frozenset(name for name, _ in parts)
                for parts in indexes.values()
                if all(part is None for _, part in parts)
            ),
            made=None if description[2] is None else str(description[2]),
        )

    def create(self, cursor: DatabaseCursor, target: DatabaseTarget) -> None:
        for column in target.columns:
            if column.name in target.primary_key and self.column_type(column) in ("longtext", "longblob"):
                raise RunError(
                    f"column {column.name!r} of the key is {column.type}: MySQL has no key of that length",
                    hint=f"declare it VARCHAR(n) or VARBINARY(n) of at most {_LONGEST_KEY}, or create the table in "
                    "MySQL",
                    path=target.path,
                )
        name = ".".join(map(self.quote, _place(cursor, target)))
        columns = self.definitions(target.columns, target.primary_key)
        cursor.execute(f"CREATE TABLE {name} ({columns}) ENGINE = InnoDB {_BINARY}", ())

    def column_type(self, column: Column) -> str:
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
        return _TYPES["STRING" if data_type.is_text else "BYTES" if "BINARY" in root else root]

    def fits(self, column: Column, actual: str) -> bool:
        data_type = parse_type(column.type)
        match = re.fullmatch(r"([a-z]+)(?:\((.*)\))?( unsigned)?.*", actual)
        if match is None or match[3]:
            return False
        base, root = match[1], data_type.root
        if base == "decimal" and (root == "DECIMAL" or data_type.is_integer):
            precision, scale = (int(part) for part in match[2].split(","))
            wanted, after = (
                (data_type.precision or 0, data_type.scale or 0) if root == "DECIMAL" else (_DIGITS[root], 0)
            )
            return scale >= after and precision - scale >= wanted - after
        if data_type.is_integer:
            return base in _INTEGERS and _INTEGERS.index(base) >= _INTEGERS.index(_TYPES[root])
        if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            kinds = ("datetime", "timestamp") if root == "TIMESTAMP_LTZ" else ("datetime",)
            return base in kinds and int(match[2] or 0) >= min(data_type.precision or 0, 6)
        return base in _ACCEPTED.get(root, ())

    def storage(self, values: pa.ChunkedArray, column: Column, target: DatabaseTarget) -> Sequence[object]:
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

    def load(self, cursor: DatabaseCursor, stage: Stage, names: Sequence[str], rows: Sequence[Row]) -> None:
        columns = ", ".join(map(self.quote, names))
        cursor.executemany(f"INSERT INTO {stage.sql} ({columns}) VALUES ({', '.join(['%s'] * len(names))})", rows)

    def lock(self, cursor: DatabaseCursor, number: int) -> None:
        # The lock belongs to the connection, which each transaction opens for itself. It is released after the commit.
        cursor.execute("SELECT GET_LOCK(%s, %s)", (f"hintplan {number:016x}", _LOCK_SECONDS))
        ((is_locked,),) = cursor.fetchall()
        if is_locked != 1:
            raise TransientError("MySQL did not give the lock of the sink: another run writes to the table")

    def upsert(self, keys: Sequence[str], values: Sequence[str]) -> str:
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = s.{name}" for name in values or keys)


def mysql_name(name: str) -> str:
    """Return ``name`` as a quoted identifier, for a statement that is executed with parameters."""
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


def _place(cursor: DatabaseCursor, target: DatabaseTarget) -> tuple[str, str]:
    """Return the names of the database and the table."""
    *database, table = split_name(target.options["table-name"])
    if not database:
        cursor.execute("SELECT DATABASE()", ())
        ((current,),) = cursor.fetchall()
        database = [current]
    return database[0], table


def _refuse_key(
    target: DatabaseTarget, collations: Mapping[str, str | None], unique: Sequence[frozenset[str]], numbered: set[str]
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
