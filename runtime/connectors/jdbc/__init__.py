"""The jdbc connector: a sink of SQLite databases, and lookups in these and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from plans.connectors.jdbc import JDBC, POSTGRES_URL
from runtime.connectors.connector import ConnectorCode
from runtime.connectors.jdbc.write import batch_writer, batches_had, micro_batch_writer, writer
from runtime.lookup.source import LookupSource, source_of_classes

__all__ = ["CODE"]

_POSTGRES = source_of_classes(
    "jdbc:postgresql",
    f"{__name__}.postgres_lookup",
    {"sync": "PostgresLookup", "async": "AsyncPostgresLookup", "full": "PostgresScan"},
    extra=JDBC.extra,
    packages=("psycopg", "psycopg_pool"),
)
_SQLITE = source_of_classes("jdbc:sqlite", f"{__name__}.sqlite_lookup", {"sync": "SqliteLookup", "full": "SqliteScan"})


def _lookup(options: Mapping[str, str]) -> LookupSource:
    return _POSTGRES if options["url"].startswith(POSTGRES_URL) else _SQLITE


CODE = ConnectorCode(
    connector=JDBC,
    writer=writer,
    micro_batch_writer=micro_batch_writer,
    batch_writer=batch_writer,
    batches_had=batches_had,
    lookup=_lookup,
)
