"""The jdbc connector: a table of a database, which a url and a table's name say.

An SQLite database is ``jdbc:sqlite:<path>``; PostgreSQL is ``jdbc:postgresql://host:port/database``, with parameters
from a short list. Nothing here opens a connection, and no message repeats what a url may hold of secrets.

>>> address = parse_postgres_url("jdbc:postgresql://db.example.com/shop?sslmode=require")
>>> address.host, address.port, address.database, dict(address.parameters)
('db.example.com', 5432, 'shop', {'sslmode': 'require'})
>>> split_name('sales."2024.orders"')
('sales', '2024.orders')
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, unquote

from plans.connectors.columns import NESTED, refuse_types
from plans.connectors.connector import INSERT_ONLY, UPSERT_KINDS, Connector, LookingUp, LookupMode, Writing
from plans.connectors.options import ENVIRONMENT, option
from plans.connectors.reach import HostPlace, Place, local_file
from plans.declarations.row_kinds import RowKind
from plans.declarations.tables import Table
from plans.errors import Diagnostic

SQLITE_URL = "jdbc:sqlite:"
POSTGRES_URL = "jdbc:postgresql:"

_PARAMETERS = ("application_name", "sslmode", "sslrootcert")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SHAPE = re.compile(
    r"//(?P<host>\[[0-9A-Fa-f:.%]+\]|[^/?#:@\[\]\s,]+)(?::(?P<port>[0-9]{1,5}))?/(?P<database>[^/?#]+)"
    r"(?:\?(?P<query>[^#]*))?"
)
_REFERRED_PORT = re.compile(rf"({POSTGRES_URL}//[^/?#@]*):{ENVIRONMENT.pattern}(?=/)")
_OF_SERVERS = (
    "connection.pool-size",
    "connection.timeout",
    "statement.timeout",
    "sink.buffer-flush.max-rows",
    "sink.max-retries",
    "sink.parallelism",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a PostgreSQL database is; ``parameters`` are libpq's."""

    host: str
    port: int
    database: str
    parameters: Mapping[str, str]


def _is_postgres(table: Table) -> bool:
    """Whether a table is in a PostgreSQL database."""
    return table.options.get("url", "").startswith(POSTGRES_URL)


def parse_postgres_url(url: str) -> PostgresAddress:
    """The address in ``jdbc:postgresql://host[:port]/database[?parameter=value&...]``; ValueError with the reason."""
    match = _SHAPE.fullmatch(url.removeprefix(POSTGRES_URL))
    if match is None:
        if "@" in url:
            raise ValueError("a user does not belong into the url")
        raise ValueError(f"{POSTGRES_URL} must be followed by //host:port/database")
    parameters = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    for name in parameters:
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise ValueError(f"the url has a parameter that is not supported; known are {known}")
    if parameters.get("sslmode", "prefer") not in _SSL_MODES:
        raise ValueError(f"sslmode in the url must be one of {', '.join(_SSL_MODES)}")
    port = int(match["port"] or 5432)
    if not 1 <= port <= 65535:
        raise ValueError(f"the port in the url must be from 1 to 65535, not {port}")
    return PostgresAddress(
        host=match["host"].strip("[]"), port=port, database=unquote(match["database"]), parameters=parameters
    )


def _reaches(table: Table) -> Iterator[Place]:
    """The server of a checked table and the certificates that its url names, or the file of its database."""
    url = table.options["url"]
    if not _is_postgres(table):
        yield local_file("url", url.removeprefix(SQLITE_URL))
        return
    address = parse_postgres_url(_REFERRED_PORT.sub(r"\1:1", url))
    port = None if _REFERRED_PORT.match(url) else address.port
    yield HostPlace("url", address.host.lower(), port, usual=5432)
    if "sslrootcert" in address.parameters:
        yield local_file("url", address.parameters["sslrootcert"])


def split_name(name: str) -> tuple[str, ...]:
    """The parts of ``schema.table``, of which each may stand in double quotes; ValueError if it is not such a name."""
    if not re.fullmatch(r'(?:"(?:[^"]|"")+"|[^".]+)(?:\.(?:"(?:[^"]|"")+"|[^".]+))?', name) or "\0" in name:
        raise ValueError('expected a table, or schema.table; a part that holds dots or quotes stands in "..."')
    parts = re.findall(r'"(?:[^"]|"")+"|[^".]+', name)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    yield from _check_url(path, table)
    if not _is_postgres(table):
        yield from refuse_types(path, table, NESTED, "an SQLite table cannot hold", "write its parts as columns")
    yield from _check_key(path, table)


def _check_url(path: str, table: Table) -> Iterator[Diagnostic]:
    """What is wrong with the url and what depends on it, with paths below ``path``."""
    url = table.options.get("url", SQLITE_URL + "x")
    if url.startswith(POSTGRES_URL):
        yield from _check_postgres(path, table, url)
        return
    file = url.removeprefix(SQLITE_URL)
    if not url.startswith(SQLITE_URL):
        scheme = ":".join(url.split(":")[:2]) + ":" if url.startswith("jdbc:") else "the url"
        yield Diagnostic(
            message=f"{scheme} is not supported in this version; only {SQLITE_URL}<path> and "
            f"{POSTGRES_URL}//host:port/database are",
            hint=f"write 'url' = '{SQLITE_URL}results.db'",
            path=f"{path}.url",
        )
    elif "${" in file:
        yield Diagnostic(
            message="the environment must not say where a database is", hint="write its path", path=f"{path}.url"
        )
    elif not file or file.startswith(":") or "?" in file:
        yield Diagnostic(
            message=f"{SQLITE_URL} must be followed by the path of a file, without parameters",
            hint=f"write 'url' = '{SQLITE_URL}results.db'",
            path=f"{path}.url",
        )
    for name in _OF_SERVERS:
        if name in table.options:
            yield Diagnostic(
                message=f"{name!r} has no effect on an SQLite database", hint="remove it", path=f"{path}.{name}"
            )


def _check_postgres(path: str, table: Table, url: str) -> Iterator[Diagnostic]:
    try:
        url = _REFERRED_PORT.sub(r"\1:1", url)
        if "${" in url:
            raise ValueError("the environment may say the port in a url, but not which host or database it is")
        parse_postgres_url(url)
    except ValueError as error:
        yield Diagnostic(
            message=str(error),
            hint=f"write 'url' = '{POSTGRES_URL}//host:5432/database', and the user and password as 'username' and "
            "'password'",
            path=f"{path}.url",
        )
    try:
        split_name(table.options.get("table-name", "x"))
    except ValueError as error:
        yield Diagnostic(message=str(error), hint="write 'table-name' = 'public.rates'", path=f"{path}.table-name")


def _check_key(path: str, table: Table) -> Iterator[Diagnostic]:
    computed = [column.name for column in table.columns if column.expression is not None]
    keys = tuple(column for column in table.columns if column.name in table.primary_key)
    if _is_postgres(table):
        key = replace(table, columns=keys)
        yield from refuse_types(
            path, key, NESTED, "a database has no key of", "use columns of plain types in PRIMARY KEY"
        )
    for name in table.primary_key:
        if name in computed:
            yield Diagnostic(
                message=f"the primary key column {name!r} is computed, so it is not in the database",
                hint="use physical columns in PRIMARY KEY",
                path=f"{path}.connector",
            )


def _upserts(table: Table) -> bool:
    return bool(table.primary_key)


def _sink_kinds(table: Table) -> tuple[RowKind, ...]:
    return UPSERT_KINDS if _upserts(table) else INSERT_ONLY


def _lookup_modes(table: Table) -> tuple[LookupMode, ...]:
    return ("sync", "async", "full") if _is_postgres(table) else ("sync", "full")


def _overlaps(source: Table, sink: Table) -> bool:
    return all(source.options.get(name) == sink.options.get(name) for name in ("url", "table-name"))


JDBC = Connector(
    name="jdbc",
    description="A table in SQLite or PostgreSQL.",
    options=(
        option(
            "url",
            required=True,
            environment=True,
            description="jdbc:sqlite:<path> or jdbc:postgresql://host:port/database.",
        ),
        option("table-name", required=True, description="The table in the database."),
        option("username", environment=True, description="The user of the database; SQLite has none."),
        option("password", secret=True, description="The password, as ${env:NAME}."),
        option(
            "connection.pool-size",
            "int",
            maximum=1_000,
            default="10",
            description="The most connections of a Python worker for asynchronous lookups.",
        ),
        option(
            "connection.timeout", "duration", default="30 s", description="How long a lookup waits for a connection."
        ),
        option("statement.timeout", "duration", default="30 s", description="When the server ends a query."),
        option(
            "scan.fetch-size",
            "int",
            maximum=1_000_000,
            default="10000",
            description="The number of rows fetched at once for a full cache.",
        ),
        option(
            "sink.buffer-flush.max-rows",
            "int",
            maximum=1_000_000,
            default="10000",
            description="The most rows that a task of a sink hands to the server in one transaction.",
        ),
        option(
            "sink.max-retries",
            "int",
            minimum=0,
            maximum=1_000,
            default="3",
            description="How often a sink tries again what may be over then, such as a lost connection.",
        ),
        option(
            "sink.parallelism",
            "int",
            maximum=10_000,
            description="The most tasks that write a micro-batch; without it as many as make its rows.",
        ),
    ),
    writing=Writing(kinds=_sink_kinds, upserts=_upserts, place="table-name", takes_updates="with a PRIMARY KEY"),
    looking_up=LookingUp(modes=("sync", "async", "full"), modes_of=_lookup_modes),
    check=_check,
    reaches=_reaches,
    overlaps=_overlaps,
    extra="postgres",
)
