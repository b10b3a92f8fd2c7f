"""The delta connector: a table of Delta Lake, which consists of Parquet files and a log of its versions.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> options = {"connector": "delta", "table-path": "totals"}
>>> table = Table(columns=(TableColumn(name="id", type="INT"),), partitioned_by=("id",), options=options)
>>> print(*DELTA.check("tables.totals.options", table))
tables.totals.partitioned-by: all columns are of the partitions, so that files would have none
  hint: leave one out of PARTITIONED BY
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.lakes.columns import check_columns
from hintplan.plans.connectors.lakes.connector import SINK_OPTIONS, LakeConnector
from hintplan.plans.connectors.lakes.storage import S3_OPTIONS, check_place, places_of_storage
from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

PATH = "table-path"
VERSION = "versionAsOf"


class Delta(LakeConnector):
    """Tables of Delta Lake."""

    name = "delta"
    description = "A table of Delta Lake."
    options = (
        option(PATH, required=True, description="The directory of the table, or s3://bucket/path."),
        option(VERSION, "int", minimum=0, description="The version that is read; the newest if absent."),
        *SINK_OPTIONS,
        *S3_OPTIONS,
    )
    destination = PATH
    extras = ("delta",)
    refused: ClassVar[Mapping[str, str]] = {"partitioned-by": "write PARTITIONED BY (...) after the columns"}
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(("delta-lake", "deltalake"), "write 'connector' = 'delta'")

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        yield from check_place(path, table, PATH)
        yield from check_columns(path, table)

    def reaches(self, table: Table) -> Iterable[Place]:
        return places_of_storage(table, PATH)

    def overlaps(self, source: Table, sink: Table) -> bool:
        return source.options.get(PATH) == sink.options.get(PATH)

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("delta",)


DELTA = Delta()
