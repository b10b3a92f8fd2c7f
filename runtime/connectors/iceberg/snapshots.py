"""Snapshots of an Iceberg table: what is committed, by whom, and as which batch.

Only where batches are committed: on the driver. Knows no Spark.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as iceberg
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile as Entry
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.typedef import Record
from pyiceberg.utils.datetime import datetime_to_micros

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.iceberg.catalog import failures, storage_at
from hintplan.runtime.connectors.iceberg.types import in_files
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.data_files import DataFile, FileWriting
from hintplan.runtime.connectors.lakes.divisions import Division
from hintplan.runtime.connectors.lakes.target import Target

_DATA = "data/"
_QUERY, _BATCH = "hintplan.query", "hintplan.batch"
_EPOCH = date(1970, 1, 1)


def writing_of(target: Target, table: Table, names: Sequence[str]) -> FileWriting:
    """How files of the table are written, which have the columns ``names``."""
    storage = storage_at(target, table)
    if storage.is_local:
        os.makedirs(f"{storage.root}/{_DATA}", exist_ok=True)
    schema = table.schema()
    return FileWriting(
        table=target.name, storage=storage, schema=in_files(schema, names),
        required=frozenset(top.name for top in schema.fields if top.required),
        divisions=tuple(each for each in _divisions(table) if each.column in names),
        directory=_DATA, whole=True,
    )  # fmt: skip


def _divisions(table: Table) -> tuple[Division, ...]:
    schema = table.schema()
    return tuple(
        Division(name=field.name, column=schema.find_field(field.source_id).name, transform=str(field.transform))
        for field in table.spec().fields
    )


def shape_of(table: Table) -> tuple[str, int, int]:
    """What files that are written for the table depend on."""
    metadata = table.metadata
    return metadata.location, metadata.current_schema_id, metadata.default_spec_id


def is_empty(table: Table) -> bool:
    """Whether the table has no files, as far as that is known without reading them."""
    snapshot = table.current_snapshot()
    return snapshot is None or (snapshot.summary is not None and snapshot.summary.get("total-data-files") == "0")


def commit_files(
    target: Target, table: Table, files: Sequence[DataFile], commit: Commit, *, instead_of: Sequence[Entry] = ()
) -> None:
    """Commit a snapshot with ``files`` more, some of them ``instead_of`` others.

    Changed if somebody else has changed the table since it was opened.
    """
    with failures(target), _alone(table).transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties=_told(commit))
        merged = update.merge_append if _merges(table) else update.fast_append
        with update.overwrite() if instead_of else merged() as snapshot:
            for other in instead_of:
                snapshot.delete_data_file(other)
            for file in files:
                snapshot.append_data_file(_entry(table, file))
        transaction.set_properties(_noted(commit, snapshot.snapshot_id))


def replaced_by(target: Target, table: Table, files: Sequence[DataFile]) -> list[Entry]:
    """The files of the table that ``files`` take away: those of their partitions.

    All if PARTITIONED BY is not declared; RunError if files are divided otherwise, so that their rows are of several.
    """
    with failures(target):
        there = [task.file for task in table.scan().plan_files()]
        if not target.partitioned_by:
            return there
        gone = {_partition(table, file.partition) for file in files}
        if any(file.spec_id != table.metadata.default_spec_id for file in there):
            raise RunError(
                f"the Iceberg table {target.called} has files from before its partitions were others",
                hint="rewrite them by the newest partitions, as rewrite_data_files does",
                path=target.path,
            )
        return [file for file in there if file.partition in gone]


def _partition(table: Table, texts: Mapping[str, str | None]) -> Record:
    values = table.spec().partition_type(table.schema()).fields
    return Record(*(_value(texts.get(field.name), field.field_type) for field in values))


def last_batch(target: Target, table: Table, writer: str) -> int:
    """The last batch of ``writer`` that the table has, -1 if it has none.

    Snapshots may be expired, so a property of the table says it, too; that of one that was rolled back is not true.
    """
    metadata = table.metadata
    line = list(ancestors_of(metadata.current_snapshot(), metadata))
    noted = metadata.properties.get(_property(writer))
    if noted is not None:
        found = json.loads(noted)
        rolled_back = metadata.snapshot_by_id(found["snapshot"]) is not None
        if not rolled_back or found["snapshot"] in {snapshot.snapshot_id for snapshot in line}:
            return int(found["batch"])
    summaries = (snapshot.summary.additional_properties for snapshot in line if snapshot.summary is not None)
    return max((int(each[_BATCH]) for each in summaries if each.get(_QUERY) == writer), default=-1)


def _alone(table: Table) -> Table:
    """The table, which pyiceberg does not commit to a second time: that its batch is the next would not be known."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _merges(table: Table) -> bool:
    return table.metadata.properties.get("commit.manifest-merge.enabled", "true").lower() == "true"


def _told(commit: Commit) -> dict[str, str]:
    writer, batch = commit
    return {_QUERY: writer, _BATCH: str(batch)}


def _noted(commit: Commit, snapshot: int) -> dict[str, str]:
    """What the table remembers beside its snapshots: not of batch jobs, each of which is a writer of its own."""
    writer, batch = commit
    return {} if writer.startswith("job-") else {_property(writer): json.dumps({"batch": batch, "snapshot": snapshot})}


def _property(writer: str) -> str:
    return f"hintplan.last-batch.{writer}"


def _entry(table: Table, file: DataFile) -> Entry:
    """What a manifest says of a file, whose footer has come with it."""
    metadata, schema = table.metadata, table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(pa.BufferReader(base64.b64decode(file.stats))),
        stats_columns=compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return Entry.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location().rstrip('/')}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=_partition(table, file.partition),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _value(text: str | None, kind: iceberg.IcebergType) -> Any:
    """The value of a partition."""
    if text is None or isinstance(kind, iceberg.StringType):
        return text
    if isinstance(kind, iceberg.BooleanType):
        return text == "true"
    if isinstance(kind, iceberg.DateType):
        return (date.fromisoformat(text) - _EPOCH).days
    if isinstance(kind, (iceberg.TimestampType, iceberg.TimestamptzType)):
        return datetime_to_micros(datetime.fromisoformat(text))
    if isinstance(kind, iceberg.DecimalType):
        return Decimal(text)
    return bytes.fromhex(text) if isinstance(kind, iceberg.BinaryType) else int(text)
