"""The iceberg connector: a table of Apache Iceberg, which a catalog finds by its name.

>>> table = Table(columns=(), options={"connector": "iceberg", "catalog-type": "jdbc", "uri": "jdbc:sqlite:x.db"})
>>> print(*ICEBERG.check("tables.totals.options", table))
tables.totals.options.connector: where the files of the table may be is not said, by 'warehouse' or 'location'
  hint: write 'location' = 's3://bucket/path', or the path of a directory
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.connector import Connector, Reading, Writing
from hintplan.plans.connectors.lakes.catalogs import (
    CATALOG_OPTIONS,
    SNAPSHOT_OPTIONS,
    check_catalog,
    check_snapshot,
    reached_by_catalog,
)
from hintplan.plans.connectors.lakes.columns import check_columns
from hintplan.plans.connectors.lakes.sinks import SINK_OPTIONS
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

_SAME_TABLE = ("uri", "catalog-name", "catalog-database", "catalog-table")


def _sink_kinds(table: Table) -> RowKinds:
    return UPSERT_KINDS if table.primary_key else INSERT_ONLY


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    yield from check_catalog(path, table)
    yield from check_columns(path, table)
    yield from check_snapshot(path, table)


ICEBERG = Connector(
    name="iceberg",
    description="A table of Apache Iceberg.",
    options=(
        *CATALOG_OPTIONS,
        *SNAPSHOT_OPTIONS,
        *SINK_OPTIONS,
    ),
    reading=Reading(in_streams=False),
    writing=Writing(
        kinds=_sink_kinds, upserts=lambda table: bool(table.primary_key), place="catalog-table",
        overwrites=True,
        takes_updates="with a PRIMARY KEY",
    ),
    check=_check,
    reaches=reached_by_catalog,
    overlaps=lambda source, sink: all(source.options.get(name) == sink.options.get(name) for name in _SAME_TABLE),
    extras=("iceberg",),
    extras_of=lambda table: ("iceberg",),
    refused={
        "catalog-impl": "code of a catalog is not loaded; see 'catalog-type'",
        "write-format": "files are of Parquet",
        "write-parallelism": "it is called 'sink.parallelism' here",
        "upsert-enabled": "a PRIMARY KEY says it",
        "overwrite-enabled": "rows are added",
        "streaming": "tables of Iceberg are not read in streams",
        "partitioned-by": "write PARTITIONED BY (...) after the columns",
    },
    partitions=True,
    stands_in=dict.fromkeys(
        ("hudi", "paimon"), "write 'connector' = 'iceberg', whose tables Flink reads, too"
    ),
)  # fmt: skip
