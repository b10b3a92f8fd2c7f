"""Connections to PostgreSQL for lookups, scans and sinks, and the classification of transient errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from hintplan.plans.connectors.jdbc import parse_server_url
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.target import DatabaseTarget, TransientError
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.lookup.sources.hosts import refuse_link_local
from hintplan.runtime.secrets import resolve

_TRANSIENT = ("08", "40", "53", "55P03", "57", "58")
"""Prefixes of the SQLSTATEs of transient errors: connections, conflicts, lack of resources and shutdowns."""

_REFUSED = re.compile(
    r"authentication failed|no password supplied|(?:role|user|database) .* does not exist|no pg_hba\.conf entry"
    r"|not permitted to log in|permission denied for database|does not support SSL|certificate"
)
"""libpq's messages for a connection that is refused permanently; such an error has no SQLSTATE."""

REFUSED_HINT = "check 'username', the variable that 'password' refers to, and the database in 'url'"


_HINTS = {
    "42501": "grant the user CREATE on the schema, for staging tables, and SELECT, INSERT, UPDATE, DELETE on the table",
    "3F000": "check the schema in 'table-name'",
    "23505": "another unique index of the table refuses the row",
}


def is_refused(error: psycopg.Error) -> bool:
    """Return true if the server refused the user, the database or the kind of connection, and would do so again."""
    return error.sqlstate is None and _REFUSED.search(str(error)) is not None


def is_transient_postgres_error(error: psycopg.Error) -> bool:
    """Return true if another attempt may succeed: the server was unreachable, or its error is transient."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_TRANSIENT)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not is_refused(error)


def connection_settings(options: Mapping[str, str], table: str, session: str) -> dict[str, Any]:
    """Return psycopg's connection arguments for ``table``; ``session`` are server settings for the session.

    Raises RunError if the url is invalid, or if its host has a link-local address.
    """
    path = f"tables.{table}.options.url"
    try:
        address = parse_server_url(resolve(options["url"]))
    except ValueError as error:
        raise RunError(redacted(str(error), options), path=path) from None
    refuse_link_local(address.host, address.port, path=path)
    settings: dict[str, Any] = {
        "application_name": "hintplan",
        **address.parameters,
        "host": address.host,
        "port": address.port,
        "dbname": address.database,
        "connect_timeout": max(2, round(parse_duration(options.get("connection.timeout", "30 s")) / 1000)),
        "options": session,
    }
    for option, setting in (("username", "user"), ("password", "password")):
        if option in options:
            settings[setting] = resolve(options[option])
    return settings


@contextmanager
def postgres_transaction(target: DatabaseTarget) -> Iterator[Any]:
    """Open a connection, yield a cursor, and commit or roll back at the end; raise TransientError or RunError."""
    settings = connection_settings(target.options, target.name, "-c timezone=UTC -c client_min_messages=error")
    try:
        with psycopg.connect(**settings) as connection, connection.cursor() as cursor:
            yield cursor
    except psycopg.Error as error:
        state = error.sqlstate or ""
        text = redacted(error.diag.message_primary or " ".join(str(error).split()), target.options)
        if is_refused(error):
            raise RunError(f"PostgreSQL refused a connection: {text}", hint=REFUSED_HINT, path=target.path) from None
        if is_transient_postgres_error(error):
            raise TransientError(
                f"PostgreSQL did not write to table {target.options['table-name']!r}: {text}"
            ) from None
        message = f"PostgreSQL refused to write to table {target.options['table-name']!r}: {text}"
        raise RunError(message, hint=_HINTS.get(state), path=target.path) from None
