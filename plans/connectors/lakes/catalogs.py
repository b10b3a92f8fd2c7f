"""The catalog of a data lake, which finds a table by its name: a REST service, or an SQLite database.

>>> from hintplan.plans.declarations.tables import Table
>>> table = Table(columns=(), options={"connector": "x", "catalog-type": "hadoop"})
>>> print(*check_catalog("tables.orders.options", table))
tables.orders.options.catalog-type: 'catalog-type' is 'hadoop', which keeps no two writers apart: files are its catalog
  hint: write 'rest' or 'jdbc', and register the table there
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hintplan.plans.connectors.lakes.storage import S3_OPTIONS, check_place, places_of_storage
from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import Place, http_host, local_file
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.setting import MAX_LONG

TYPE = "catalog-type"
URI = "uri"
WAREHOUSE = "warehouse"
LOCATION = "location"
SNAPSHOT, TIMESTAMP, TAG = "snapshot-id", "as-of-timestamp", "tag"
SQLITE_URL = "jdbc:sqlite:"

CATALOG_OPTIONS = (
    option(
        "catalog-name", required=True, description="The name of the catalog, by which a catalog in SQLite is found."
    ),
    option(TYPE, required=True, description="The kind of catalog: rest, or jdbc for a SQLite database."),
    option(URI, required=True, description="The address: http(s)://host/path, or jdbc:sqlite:path."),
    option("catalog-database", required=True, description="The database of the table in the catalog."),
    option("catalog-table", required=True, description="The name of the table in its database."),
    option(
        WAREHOUSE, description="The directory of the tables, or s3://bucket/path; for REST, the catalog's name of it."
    ),
    option(LOCATION, description="The directory of the table, or s3://bucket/path, or of all that it may be in."),
    option("credential", secret=True, description="The client and its secret for a token of a REST catalog."),
    option("token", secret=True, description="The token for a REST catalog."),
    option("oauth2-server-uri", description="The server of tokens for a REST catalog; the catalog itself if absent."),
    *S3_OPTIONS,
)
SNAPSHOT_OPTIONS = (
    option(SNAPSHOT, "int", minimum=0, maximum=MAX_LONG, description="The snapshot to read; the newest if absent."),
    option(TIMESTAMP, "int", minimum=0, maximum=MAX_LONG, description="The time of which the newest is read, in ms."),
    option(TAG, description="The tag, or the branch, whose snapshot is read."),
)
_OF_REST = ("credential", "token", "oauth2-server-uri")
_OTHERS = {
    "hadoop": "which keeps no two writers apart: files are its catalog",
    "hive": "which nobody has tried here",
    "glue": "which nobody has tried here",
    "nessie": "which speaks REST, too",
}


def chosen_snapshot(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options in ``options`` that select a snapshot."""
    return tuple(snapshot_option.name for snapshot_option in SNAPSHOT_OPTIONS if snapshot_option.name in options)


def root_option(table: Table) -> str:
    """Return the name of the option with the root directory of a checked table's files."""
    return LOCATION if LOCATION in table.options else WAREHOUSE


def is_rest(table: Table) -> bool:
    """Return True if the catalog is a REST service."""
    return table.options.get(TYPE, "").lower() == "rest"


def reached_by_catalog(table: Table) -> tuple[Place, ...]:
    """Return the catalog of a checked table, its token server, and the location of the table's files."""
    uri = table.options[URI]
    catalog_places = [http_host(URI, uri) if is_rest(table) else local_file(URI, uri.removeprefix(SQLITE_URL))]
    if (tokens := table.options.get("oauth2-server-uri")) is not None:
        catalog_places.append(http_host("oauth2-server-uri", tokens))
    return (*catalog_places, *places_of_storage(table, root_option(table)))


def check_catalog(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of the catalog and of the location of the files, with paths below ``path``."""
    kind = table.options.get(TYPE, "")
    if kind.lower() not in ("rest", "jdbc"):
        yield Diagnostic(
            message=f"{TYPE!r} is {kind!r}, {_OTHERS.get(kind.lower(), 'which is unknown')}",
            hint="write 'rest' or 'jdbc', and register the table there",
            path=f"{path}.{TYPE}",
        )
        return
    yield from _check_uri(path, table)
    for name in _OF_REST:
        if name in table.options and not is_rest(table):
            yield Diagnostic(
                message=f"{name!r} has no effect on a catalog of SQLite", hint="remove it", path=f"{path}.{name}"
            )
    if not _is_place(table):
        yield Diagnostic(
            message=f"the place of the table's files is set neither by {WAREHOUSE!r} nor by {LOCATION!r}",
            hint=f"write '{LOCATION}' = 's3://bucket/path', or the path of a directory",
            path=f"{path}.{WAREHOUSE if WAREHOUSE in table.options else 'connector'}",
        )
        return
    yield from check_place(path, table, root_option(table))


def check_snapshot(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield a problem for each option that selects a second snapshot."""
    for name in chosen_snapshot(table.options)[1:]:
        yield Diagnostic(
            message=f"{name!r} and {chosen_snapshot(table.options)[0]!r} both name a snapshot",
            hint="leave one of them",
            path=f"{path}.{name}",
        )


def _check_uri(path: str, table: Table) -> Iterator[Diagnostic]:
    uri = table.options.get(URI, "")
    wanted, example = ("http:// or https://", "https://catalog.example.com") if is_rest(table) else (
        SQLITE_URL, "jdbc:sqlite:/lake/catalog.db",
    )  # fmt: skip
    if not (_is_address(uri) if is_rest(table) else re.fullmatch(rf"{SQLITE_URL}[^?#%$]+", uri)):
        yield Diagnostic(
            message=f"{URI!r} must start with {wanted}, and name no user",
            hint=f"write '{URI}' = '{example}'",
            path=f"{path}.{URI}",
        )
    tokens = table.options.get("oauth2-server-uri", "https://x")
    if not _is_address(tokens):
        yield Diagnostic(
            message="'oauth2-server-uri' must start with http:// or https://, and name no user",
            hint="write 'oauth2-server-uri' = 'https://login.example.com/token'",
            path=f"{path}.oauth2-server-uri",
        )


def _is_place(table: Table) -> bool:
    if LOCATION in table.options:
        return True
    text = table.options.get(WAREHOUSE, "")
    return bool(text) and (not is_rest(table) or text.startswith("/") or ":/" in text)


def _is_address(text: str) -> bool:
    try:
        host = http_host(URI, text)
    except ValueError:
        return False
    return bool(host.usual and host.host) and not any(character in text for character in "@?#$ ")
