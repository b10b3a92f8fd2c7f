"""The jdbc connector: a table of a database.

A URL and the name of the table identify it. An SQLite database is ``jdbc:sqlite:<path>``. PostgreSQL is
``jdbc:postgresql://host:port/database``; MySQL and MariaDB use ``jdbc:mysql:`` or ``jdbc:mariadb:`` instead. The URL of
a server may have some parameters. This module opens no connection, and its messages repeat no secret of a URL.

>>> address = parse_server_url("jdbc:postgresql://db.example.com/shop?sslmode=require")
>>> address.host, address.port, address.database, dict(address.parameters)
('db.example.com', 5432, 'shop', {'sslmode': 'require'})
>>> split_name('sales."2024.orders"')
('sales', '2024.orders')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from urllib.parse import parse_qsl, unquote

from hintplan.plans.connectors.columns import NESTED, physical, refuse_types
from hintplan.plans.connectors.connector import BATCHES_WRITE, LookedUp, Readable, Writable
from hintplan.plans.connectors.options import ENVIRONMENT, option
from hintplan.plans.connectors.reach import HostPlace, Place, local_file
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen

SQLITE_URL = "jdbc:sqlite:"
POSTGRES_URL = "jdbc:postgresql:"

MYSQL_URLS = ("jdbc:mysql:", "jdbc:mariadb:")

_SHAPE = re.compile(
    r"//(?P<host>\[[0-9A-Fa-f:.%]+\]|[^/?#:@\[\]\s,]+)(?::(?P<port>[0-9]{1,5}))?/(?P<database>[^/?#]+)"
    r"(?:\?(?P<query>[^#]*))?"
)
_SERVERS = (POSTGRES_URL, *MYSQL_URLS)
_REFERRED_PORT = re.compile(rf"((?:{'|'.join(_SERVERS)})//[^/?#@]*):{ENVIRONMENT.pattern}(?=/)")
_CERTIFICATES = ("sslrootcert", "sslCa")
_OF_POSTGRES: Mapping[str, tuple[str, ...]] = {
    "application_name": (),
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslrootcert": (),
}
_OF_MYSQL: Mapping[str, tuple[str, ...]] = {
    "sslMode": ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"),
    "sslCa": (),
}
"""The parameters of a URL, each with its allowed values. If there are none, any value is allowed."""
_BATCHES = "remove it, rows go to the server in batches"
_ELSEWHERE: Mapping[str, str] = {
    "ssl": "write sslmode=require",
    "useSSL": "write sslMode=REQUIRED",
    "requireSSL": "write sslMode=REQUIRED",
    "currentSchema": "write 'table-name' = 'schema.table'",
    "connectTimeout": "write 'connection.timeout'",
    "socketTimeout": "write 'statement.timeout'",
    "reWriteBatchedInserts": _BATCHES,
    "rewriteBatchedStatements": _BATCHES,
    **dict.fromkeys(("useUnicode", "characterEncoding"), "remove it, text is in Unicode"),
    **dict.fromkeys(("autoReconnect", "failOverReadOnly"), "remove it, a lost connection is reopened"),
}
"""Hints for parameters that only Java drivers have."""
_OF_PARTS = (
    "scan.partition.column",
    "scan.partition.num",
    "scan.partition.lower-bound",
    "scan.partition.upper-bound",
)
_DIVIDED = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_BOUND = 2**63 - 1
_OF_SERVERS = (
    "connection.pool-size",
    "connection.timeout",
    "statement.timeout",
    "sink.buffer-flush.max-rows",
    "sink.max-retries",
    "sink.parallelism",
)


@frozen
class ServerAddress:
    """The address of a database on a server. ``parameters`` are the parameters of its URL."""

    host: str
    port: int
    database: str
    parameters: Mapping[str, str]


def _is_postgres(table: Table) -> bool:
    return table.options.get("url", "").startswith(POSTGRES_URL)


def _is_on_server(table: Table) -> bool:
    """Return True unless the table is in SQLite."""
    return table.options.get("url", "").startswith(_SERVERS)


def parse_server_url(url: str) -> ServerAddress:
    """Return the address in a URL such as ``jdbc:postgresql://host[:port]/database[?parameter=value&...]``.

    The server is PostgreSQL, MySQL or MariaDB. Raise ValueError with the reason if the URL is wrong.
    """
    start = next(start for start in _SERVERS if url.startswith(start))
    match = _SHAPE.fullmatch(url.removeprefix(start))
    if match is None:
        if "@" in url:
            raise ValueError("a user does not belong into the url")
        raise ValueError(f"{start} must be followed by //host:port/database")
    parameters = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    allowed = _OF_POSTGRES if start == POSTGRES_URL else _OF_MYSQL
    if not parameters.keys() <= allowed.keys():
        raise _UnsupportedParameters([name for name in parameters if name not in allowed], allowed)
    for name, value in parameters.items():
        if allowed[name] and value not in allowed[name]:
            raise ValueError(f"{name} in the url must be one of {', '.join(allowed[name])}")
    port = int(match["port"] or _usual_port(url))
    if not 1 <= port <= 65535:
        raise ValueError(f"the port in the url must be from 1 to 65535, not {port}")
    return ServerAddress(
        host=match["host"].strip("[]"), port=port, database=unquote(match["database"]), parameters=parameters
    )


class _UnsupportedParameters(ValueError):
    """Parameters of drivers in Java that a URL has; ``hint`` names the replacement of each."""

    def __init__(self, names: Sequence[str], allowed: Collection[str]) -> None:
        # Only names of known parameters are repeated: others may be parts of a password.
        known = [name for name in names if name in _ELSEWHERE]
        super().__init__(f"the url has parameters that are not supported{': ' * bool(known)}{', '.join(known)}")
        others = [f"the parameters are {', '.join(allowed)}"] if len(known) < len(names) else []
        self.hint = "; ".join([*(f"{name}: {_ELSEWHERE[name]}" for name in known), *others])


def _usual_port(url: str) -> int:
    return 5432 if url.startswith(POSTGRES_URL) else 3306


def split_name(name: str) -> tuple[str, ...]:
    """Return the parts of ``schema.table``; a part may be in double quotes. Raise ValueError for any other name."""
    if not re.fullmatch(r'(?:"(?:[^"]|"")+"|[^".]+)(?:\.(?:"(?:[^"]|"")+"|[^".]+))?', name) or "\0" in name:
        raise ValueError('expected a table, or schema.table; quote a part with dots or quotes: "..."')
    parts = re.findall(r'"(?:[^"]|"")+"|[^".]+', name)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)


def _check_url(path: str, table: Table) -> Iterator[Diagnostic]:
    """Check the URL and the options that depend on it."""
    url = table.options.get("url", SQLITE_URL + "x")
    if url.startswith(_SERVERS):
        yield from _check_server(path, table, url)
        return
    file = url.removeprefix(SQLITE_URL)
    if not url.startswith(SQLITE_URL):
        scheme = ":".join(url.split(":")[:2]) + ":" if url.startswith("jdbc:") else "the url"
        yield Diagnostic(
            message=f"{scheme} is not supported in this version; only {SQLITE_URL}<path> and "
            f"//host:port/database after {', '.join(_SERVERS)} are",
            hint=f"write 'url' = '{SQLITE_URL}results.db'",
            path=f"{path}.url",
        )
    elif "${" in file:
        yield Diagnostic(
            message="the environment must not set the path of a database", hint="write its path", path=f"{path}.url"
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


def _check_server(path: str, table: Table, url: str) -> Iterator[Diagnostic]:
    start = next(start for start in _SERVERS if url.startswith(start))
    try:
        url = _REFERRED_PORT.sub(r"\1:1", url)
        if "${" in url:
            raise ValueError("the environment may set the port of a url, but not the host or the database")
        parse_server_url(url)
    except _UnsupportedParameters as error:
        yield Diagnostic(message=str(error), hint=error.hint, path=f"{path}.url")
    except ValueError as error:
        yield Diagnostic(
            message=str(error),
            hint=f"write 'url' = '{start}//host:{_usual_port(start)}/database', and the user and password as "
            "'username' and 'password'",
            path=f"{path}.url",
        )
    try:
        split_name(table.options.get("table-name", "x"))
    except ValueError as error:
        yield Diagnostic(message=str(error), hint="write 'table-name' = 'public.rates'", path=f"{path}.table-name")


@frozen
class ScanPart:
    """A range of rows: ``column`` is between ``low`` and ``high``, both included."""

    column: str
    low: int
    high: int


def scan_parts(table: Table) -> tuple[ScanPart, ...]:
    """Return the ranges into which a scan of a checked table is divided, with Flink's bounds, or none.

    >>> options = dict(zip(_OF_PARTS, ("id", "3", "1", "10"), strict=True))
    >>> [(part.low, part.high) for part in scan_parts(Table(columns=(), options=options))]
    [(1, 4), (5, 7), (8, 10)]
    """
    if _OF_PARTS[0] not in table.options:
        return ()
    column, number, low, high = (table.options[name] for name in _OF_PARTS)
    first, values = int(low), int(high) - int(low) + 1
    parts = min(int(number), values)
    size, larger = divmod(values, parts)
    ranges = []
    for index in range(parts):
        last = first + size - (index >= larger)
        ranges.append(ScanPart(column=column, low=first, high=last))
        first = last + 1
    return tuple(ranges)


def _check_parts(path: str, table: Table) -> Iterator[Diagnostic]:
    """Check the options that divide a scan. A table must have all of them or none."""
    present = [name for name in _OF_PARTS if name in table.options]
    if not present:
        return
    for name in _OF_PARTS:
        if name not in present:
            yield Diagnostic(
                message=f"{present[0]!r} needs {name!r}, which the table does not have",
                hint=f"add '{name}' = '...'",
                path=f"{path}.{present[0]}",
            )
    column, _, low, high = (table.options.get(name, "") for name in _OF_PARTS)
    types = {
        physical_column.name: physical_column.type.removesuffix(" NOT NULL") for physical_column in physical(table)
    }
    if _OF_PARTS[0] in present and types.get(column) not in _DIVIDED:
        reason = f"is {types[column]}" if column in types else "is no physical column of the table"
        yield Diagnostic(
            message=f"the scan cannot be divided by {column!r}, which {reason}",
            hint=f"name a column of {', '.join(_DIVIDED)}",
            path=f"{path}.{_OF_PARTS[0]}",
        )
    try:
        is_empty = int(low) > int(high)
    except ValueError:
        return  # The option's own check reports a text that is no number.
    if is_empty:
        yield Diagnostic(
            message=f"'scan.partition.lower-bound' is {low}, and 'scan.partition.upper-bound' is {high}, which is less",
            hint="swap them",
            path=f"{path}.scan.partition.lower-bound",
        )


def _check_key(path: str, table: Table) -> Iterator[Diagnostic]:
    computed = [column.name for column in table.columns if column.expression is not None]
    keys = tuple(column for column in table.columns if column.name in table.primary_key)
    if _is_on_server(table):
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


_CACHE = "write 'lookup.cache' = 'PARTIAL' and "


class Jdbc(Readable, Writable, LookedUp):
    """Tables of databases."""

    name = "jdbc"
    description = "A table in SQLite, PostgreSQL, MySQL or MariaDB."
    options = (
        option(
            "url",
            required=True,
            environment=True,
            description="jdbc:sqlite:<path>, or jdbc:postgresql://host:port/database, or likewise of mysql or mariadb.",
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
            "connection.timeout",
            "duration",
            default="30 s",
            description="The time for which a lookup waits for a connection.",
        ),
        option(
            "statement.timeout", "duration", default="30 s", description="The time after which the server ends a query."
        ),
        option(
            "scan.fetch-size",
            "int",
            maximum=1_000_000,
            default="10000",
            description="The number of rows fetched at once by a scan, and for a full cache.",
        ),
        option("scan.partition.column", description="The column of integers by whose values a scan is divided."),
        option("scan.partition.num", "int", maximum=10_000, description="Into how many parts a scan is divided."),
        option(
            "scan.partition.lower-bound",
            "int",
            minimum=-_BOUND,
            maximum=_BOUND,
            description="The smallest value of the column that is read.",
        ),
        option(
            "scan.partition.upper-bound",
            "int",
            minimum=-_BOUND,
            maximum=_BOUND,
            description="The largest value of the column that is read.",
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
            description="The number of retries of a sink after temporary errors, such as a lost connection.",
        ),
        option(
            "sink.parallelism",
            "int",
            maximum=10_000,
            description="The most tasks that write a micro-batch; without it as many as make its rows.",
        ),
    )
    reads_current_rows = True
    reads_once = True
    destination = "table-name"
    updates_condition = "with a PRIMARY KEY"
    lookup_modes = ("sync", "async", "full")
    extras = ("mysql", "postgres")
    idle: ClassVar[Mapping[str, str]] = {
        "connection.max-retry-timeout": "a lost connection is reopened; lookups wait up to 'connection.timeout'",
        "driver": "the URL names the kind of database, and hintplan includes its driver",
        "scan.auto-commit": "each part of a table is read by one query, in a transaction of its own",
        "sink.buffer-flush.interval": BATCHES_WRITE,
    }
    instead: ClassVar[Mapping[str, str]] = {
        "lookup.cache.caching-missing-key": f"{_CACHE}'lookup.partial-cache.cache-missing-key'",
        "lookup.cache.max-rows": f"{_CACHE}'lookup.partial-cache.max-rows'",
        "lookup.cache.ttl": f"{_CACHE}'lookup.partial-cache.expire-after-write'",
    }
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("mysql", "postgres", "postgresql", "mariadb", "sqlite"), "write 'connector' = 'jdbc'"
    )

    def takes_filters(self, table: Table) -> bool:
        return _is_on_server(table)

    def sink_kinds(self, table: Table) -> RowKinds:
        return UPSERT_KINDS if table.primary_key else INSERT_ONLY

    def upserts(self, table: Table) -> bool:
        return bool(table.primary_key)

    def lookup_modes_of(self, table: Table) -> tuple[LookupMode, ...]:
        return ("sync", "async", "full") if _is_postgres(table) else ("sync", "full")

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        yield from _check_url(path, table)
        if not _is_on_server(table):
            yield from refuse_types(path, table, NESTED, "an SQLite table cannot hold", "write its parts as columns")
        yield from _check_key(path, table)
        yield from _check_parts(path, table)

    def reaches(self, table: Table) -> Iterator[Place]:
        """Yield the server and certificates of a checked table's URL, or the file of its SQLite database."""
        url = table.options["url"]
        if not _is_on_server(table):
            yield local_file("url", url.removeprefix(SQLITE_URL))
            return
        address = parse_server_url(_REFERRED_PORT.sub(r"\1:1", url))
        port = None if _REFERRED_PORT.match(url) else address.port
        yield HostPlace("url", address.host.lower(), port, usual=_usual_port(url))
        for name in _CERTIFICATES:
            if name in address.parameters:
                yield local_file("url", address.parameters[name])

    def overlaps(self, source: Table, sink: Table) -> bool:
        return all(source.options.get(name) == sink.options.get(name) for name in ("url", "table-name"))

    def extras_of(self, table: Table) -> tuple[str, ...]:
        if not _is_on_server(table):
            return ()
        return ("postgres",) if _is_postgres(table) else ("mysql",)


JDBC = Jdbc()
