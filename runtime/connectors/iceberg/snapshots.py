"""Commits snapshots to an Iceberg table, each with its writer and batch, and finds the last batch of a writer.

Runs where batches are committed: on the driver. Knows no Spark.
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
from hintplan.runtime.connectors.iceberg.catalog import iceberg_failures, storage_at
from hintplan.runtime.connectors.iceberg.types import in_files
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.data_files import DataFile, FileWriting
from hintplan.runtime.connectors.lakes.divisions import Division
from hintplan.runtime.connectors.lakes.target import LakeTarget

_DATA = "data/"
_QUERY, _BATCH = "hintplan.query", "hintplan.batch"
_EPOCH = date(1970, 1, 1)


def writing_of(target: LakeTarget, table: Table, names: Sequence[str]) -> FileWriting:
    """Return the settings with which tasks write files of the table with the columns ``names``."""
    storage = storage_at(target, table)
    if storage.is_local:
        os.makedirs(f"{storage.root}/{_DATA}", exist_ok=True)
    schema = table.schema()
    return FileWriting(
        table=target.name, storage=storage, schema=in_files(schema, names),
        required=frozenset(field.name for field in schema.fields if field.required),
        divisions=tuple(division for division in _divisions(table) if division.column in names),
        directory=_DATA, whole=True,
    )  # fmt: skip


def _divisions(table: Table) -> tuple[Division, ...]:
    schema = table.schema()
    return tuple(
        Division(name=field.name, column=schema.find_field(field.source_id).name, transform=str(field.transform))
        for field in table.spec().fields
    )


def shape_of(table: Table) -> tuple[str, int, int]:
    """Return the facts of the table on which the content of new files depends: location, schema and partition spec."""
    metadata = table.metadata
    return metadata.location, metadata.current_schema_id, metadata.default_spec_id


def is_iceberg_table_empty(table: Table) -> bool:
    """Return true if the table certainly has no files, according to the summary of its snapshot."""
    snapshot = table.current_snapshot()
    return snapshot is None or (snapshot.summary is not None and snapshot.summary.get("total-data-files") == "0")


def commit_files(
    target: LakeTarget, table: Table, files: Sequence[DataFile], commit: Commit, *, instead_of: Sequence[Entry] = ()
) -> None:
    """Commit a snapshot that adds ``files`` and removes the files in ``instead_of``.

    Raises Changed if another writer has changed the table since it was opened.
    """
    with iceberg_failures(target), _alone(table).transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties=_commit_properties(commit))
        merged = update.merge_append if _merges(table) else update.fast_append
        with update.overwrite() if instead_of else merged() as snapshot:
            for other in instead_of:
                snapshot.delete_data_file(other)
            for file in files:
                snapshot.append_data_file(_entry(table, file))
        transaction.set_properties(_noted(commit, snapshot.snapshot_id))


def replaced_by(target: LakeTarget, table: Table, files: Sequence[DataFile]) -> list[Entry]:
    """Return the files of the table that ``files`` replace: the files in the same partitions.

    Without PARTITIONED BY, these are all files. Raises RunError if a file has another partition spec, because its rows
    may belong to several partitions.
    """
    with iceberg_failures(target):
        current = [task.file for task in table.scan().plan_files()]
        if not target.partitioned_by:
            return current
        written_partitions = {_partition(table, file.partition) for file in files}
        if any(file.spec_id != table.metadata.default_spec_id for file in current):
            raise RunError(
                f"the Iceberg table {target.called} has files from before its partitions were others",
                hint="rewrite them by the newest partitions, as rewrite_data_files does",
                path=target.path,
            )
        return [file for file in current if file.partition in written_partitions]


def _partition(table: Table, texts: Mapping[str, str | None]) -> Record:
    values = table.spec().partition_type(table.schema()).fields
    return Record(*(_value(texts.get(field.name), field.field_type) for field in values))


def last_snapshot_batch(target: LakeTarget, table: Table, writer: str) -> int:
    """Return the last batch of ``writer`` that the table has, or -1 if it has none.

    Snapshots may expire, so a table property also holds the batch. The property does not count if its snapshot was
    rolled back.
    """
    metadata = table.metadata
    ancestry = list(ancestors_of(metadata.current_snapshot(), metadata))
    recorded = metadata.properties.get(_property(writer))
    if recorded is not None:
        entry = json.loads(recorded)
        rolled_back = metadata.snapshot_by_id(entry["snapshot"]) is not None
        if not rolled_back or entry["snapshot"] in {snapshot.snapshot_id for snapshot in ancestry}:
            return int(entry["batch"])
    summaries = (snapshot.summary.additional_properties for snapshot in ancestry if snapshot.summary is not None)
    return max((int(properties[_BATCH]) for properties in summaries if properties.get(_QUERY) == writer), default=-1)


def _alone(table: Table) -> Table:
    """Return the table without pyiceberg's own retries: a retry would not check again that the batch is next."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _merges(table: Table) -> bool:
    return table.metadata.properties.get("commit.manifest-merge.enabled", "true").lower() == "true"


def _commit_properties(commit: Commit) -> dict[str, str]:
    writer, batch = commit
    return {_QUERY: writer, _BATCH: str(batch)}


def _noted(commit: Commit, snapshot: int) -> dict[str, str]:
    """Return the table properties that record a batch; none for a batch job, whose writer never writes again."""
    writer, batch = commit
    return {} if writer.startswith("job-") else {_property(writer): json.dumps({"batch": batch, "snapshot": snapshot})}


def _property(writer: str) -> str:
    return f"hintplan.last-batch.{writer}"


def _entry(table: Table, file: DataFile) -> Entry:
    """Return the manifest entry of a file, built from the Parquet footer that came with it."""
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
    """Return a partition value from its text."""
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
