"""Connections to MySQL and MariaDB for lookups, scans and sinks, and the classification of transient errors.

Sessions are in UTC and in strict mode: a value that does not fit raises an error, and is never truncated or rounded.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymysql

from hintplan.plans.connectors.jdbc import parse_server_url
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.target import DatabaseTarget, TransientError
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve

_TRANSIENT = frozenset((0, 1040, 1053, 1080, 1152, 1159, 1161, 1203, 1205, 1213, 1317, 1927, 1969, 2002, 2003, 2006))
_TRANSIENT |= frozenset((2013, 2055, 3024, 4031))
"""Transient errors: lost or failed connections, conflicts, timeouts, lack of resources and shutdowns."""


_HINTS = {
    1142: "grant the user CREATE and DROP on the database, for staging tables, and SELECT, INSERT, UPDATE, DELETE",
    1044: "grant the user the right to use the database",
    1146: "check 'table-name'",
    1062: "another unique index of the table refuses the row",
}


def mysql_connection(options: Mapping[str, str], table: str, **more: Any) -> pymysql.Connection[Any]:
    """Return a connection for ``table``, which the caller must close; ``more`` are further arguments for PyMySQL.

    Raises RunError if the url is invalid, if its host has a link-local address, or if the server does not support the
    requested encryption.
    """
    path = f"tables.{table}.options.url"
    try:
        address = parse_server_url(resolve(options["url"]))
    except ValueError as error:
        raise RunError(redacted(str(error), options), path=path) from None
    refuse_link_local(address.host, address.port, path=path)
    mode = address.parameters.get("sslMode", "PREFERRED")
    session = pymysql.connect(
        host=address.host,
        port=address.port,
        database=address.database,
        user=resolve(options.get("username", "")),
        password=resolve(options.get("password", "")),
        charset="utf8mb4",
        sql_mode="STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        init_command="SET time_zone = '+00:00'",
        connect_timeout=max(2, round(parse_duration(options.get("connection.timeout", "30 s")) / 1000)),
        ssl=_encryption(mode, address.parameters.get("sslCa")),
        ssl_disabled=mode == "DISABLED",
        program_name="hintplan",
        **more,
    )
    if mode not in ("DISABLED", "PREFERRED"):
        with session.cursor(pymysql.cursors.Cursor) as cursor:
            cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            row = cursor.fetchone()
        if row is None or not row[1]:
            session.close()
            raise RunError(
                "MySQL has no encrypted connections", hint="set them up there, or leave sslMode out", path=path
            )
    return session


def _encryption(mode: str, authority: str | None) -> ssl.SSLContext | None:
    if mode in ("DISABLED", "PREFERRED"):
        return None
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = mode == "VERIFY_IDENTITY"
    context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("VERIFY") else ssl.CERT_NONE
    return context


def is_transient_mysql_error(error: pymysql.MySQLError) -> bool:
    """Return true if another attempt may succeed."""
    code = error.args[0] if error.args else 0
    return isinstance(error, pymysql.OperationalError | pymysql.InterfaceError | pymysql.InternalError) and (
        not isinstance(code, int) or code in _TRANSIENT
    )


def mysql_message(error: pymysql.MySQLError, options: Mapping[str, str]) -> str:
    """Return the message of the server or the driver, without values from the environment."""
    return redacted(" ".join(str(error.args[-1] if error.args else error).split()) or "the connection is lost", options)


def mysql_error_code(error: pymysql.MySQLError) -> int:
    """Return the number of the error, 0 if it has none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


@contextmanager
def mysql_transaction(target: DatabaseTarget) -> Iterator[Any]:
    """Open a connection, yield a cursor, and commit or roll back at the end; raise TransientError or RunError."""
    try:
        session = mysql_connection(target.options, target.name)
        try:
            with session.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                cursor.execute("BEGIN")
                yield cursor
            session.commit()
        finally:
            session.close()  # rolls back an uncommitted transaction
    except pymysql.MySQLError as error:
        text, name = mysql_message(error, target.options), target.options["table-name"]
        if is_transient_mysql_error(error):
            raise TransientError(f"MySQL did not write to table {name!r}: {text}") from None
        message = f"MySQL refused to write to table {name!r}: {text}"
        raise RunError(message, hint=_HINTS.get(mysql_error_code(error)), path=target.path) from None
