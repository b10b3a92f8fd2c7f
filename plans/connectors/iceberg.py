"""The iceberg connector: a table of Apache Iceberg, which a catalog finds by its name.

>>> table = Table(columns=(), options={"connector": "iceberg", "catalog-type": "jdbc", "uri": "jdbc:sqlite:x.db"})
>>> print(*ICEBERG.check("tables.totals.options", table))
tables.totals.options.connector: the place of the table's files is set neither by 'warehouse' nor by 'location'
  hint: write 'location' = 's3://bucket/path', or the path of a directory
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.lakes.catalogs import (
    CATALOG_OPTIONS,
    SNAPSHOT_OPTIONS,
    check_catalog,
    check_snapshot,
    reached_by_catalog,
)
from hintplan.plans.connectors.lakes.columns import check_columns
from hintplan.plans.connectors.lakes.connector import SINK_OPTIONS, LakeConnector
from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

_SAME_TABLE = ("uri", "catalog-name", "catalog-database", "catalog-table")


class Iceberg(LakeConnector):
    """Tables of Apache Iceberg."""

    name = "iceberg"
    description = "A table of Apache Iceberg."
    options = (
        *CATALOG_OPTIONS,
        *SNAPSHOT_OPTIONS,
        *SINK_OPTIONS,
    )
    destination = "catalog-table"
    extras = ("iceberg",)
    refused: ClassVar[Mapping[str, str]] = {
        "catalog-impl": "code of a catalog is not loaded; see 'catalog-type'",
        "write-format": "files are of Parquet",
        "write-parallelism": "it is called 'sink.parallelism' here",
        "upsert-enabled": "a PRIMARY KEY declares it",
        "overwrite-enabled": "rows are added",
        "streaming": "tables of Iceberg are not read in streams",
        "partitioned-by": "write PARTITIONED BY (...) after the columns",
    }
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("hudi", "paimon"), "write 'connector' = 'iceberg', whose tables Flink reads, too"
    )

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        yield from check_catalog(path, table)
        yield from check_columns(path, table)
        yield from check_snapshot(path, table)

    def reaches(self, table: Table) -> Iterable[Place]:
        return reached_by_catalog(table)

    def overlaps(self, source: Table, sink: Table) -> bool:
        return all(source.options.get(name) == sink.options.get(name) for name in _SAME_TABLE)

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("iceberg",)


ICEBERG = Iceberg()
