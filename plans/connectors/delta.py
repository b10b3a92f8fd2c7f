"""The delta connector: a table of Delta Lake, which consists of Parquet files and a log of its versions.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> options = {"connector": "delta", "table-path": "totals"}
>>> table = Table(columns=(TableColumn(name="id", type="INT"),), partitioned_by=("id",), options=options)
>>> print(*DELTA.check("tables.totals.options", table))
tables.totals.partitioned-by: all columns are of the partitions, so that files would have none
  hint: leave one out of PARTITIONED BY
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.connector import Connector, Reading, Writing
from hintplan.plans.connectors.lakes.columns import check_columns
from hintplan.plans.connectors.lakes.sinks import SINK_OPTIONS
from hintplan.plans.connectors.lakes.storage import S3_OPTIONS, check_place, reached
from hintplan.plans.connectors.options import option
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

PATH = "table-path"
VERSION = "versionAsOf"


def _sink_kinds(table: Table) -> RowKinds:
    return UPSERT_KINDS if table.primary_key else INSERT_ONLY


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    yield from check_place(path, table, PATH)
    yield from check_columns(path, table)


DELTA = Connector(
    name="delta",
    description="A table of Delta Lake.",
    options=(
        option(PATH, required=True, description="The directory of the table, or s3://bucket/path."),
        option(VERSION, "int", minimum=0, description="The version that is read; the newest if absent."),
        *SINK_OPTIONS,
        *S3_OPTIONS,
    ),
    reading=Reading(in_streams=False),
    writing=Writing(
        kinds=_sink_kinds, upserts=lambda table: bool(table.primary_key), place=PATH,
        overwrites=True,
        takes_updates="with a PRIMARY KEY",
    ),
    check=_check,
    reaches=lambda table: reached(table, PATH),
    overlaps=lambda source, sink: source.options.get(PATH) == sink.options.get(PATH),
    extras=("delta",),
    extras_of=lambda table: ("delta",),
    refused={"partitioned-by": "write PARTITIONED BY (...) after the columns"},
    partitions=True,
    stands_in=dict.fromkeys(("delta-lake", "deltalake"), "write 'connector' = 'delta'"),
)  # fmt: skip
