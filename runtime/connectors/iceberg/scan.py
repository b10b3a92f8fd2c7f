"""Lists the files in a snapshot of an Iceberg table, and maps their column ids to names.

Runs where files are listed: on the driver. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform

from hintplan.plans.connectors.lakes.catalogs import SNAPSHOT, TAG, TIMESTAMP
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.iceberg.catalog import check_iceberg_columns, iceberg_failures, loaded, storage_at
from hintplan.runtime.connectors.iceberg.confined import is_below, plain_place
from hintplan.runtime.connectors.iceberg.deletes import deleted_places, refuse_equality_deletes
from hintplan.runtime.connectors.lakes.reading import ListedFile
from hintplan.runtime.connectors.lakes.storage import Storage
from hintplan.runtime.connectors.lakes.target import LakeTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFiles:
    """The files of a snapshot, for :class:`~hintplan.runtime.connectors.lakes.reading.FileReading`."""

    storage: Storage
    files: tuple[ListedFile, ...]
    ids: Mapping[int, str]


def snapshot_files(target: LakeTarget) -> SnapshotFiles:
    """Return the files of the newest snapshot, or of the snapshot in the table's options.

    Raises RunError in three cases:

    - There is no such snapshot.
    - The columns are not as declared.
    - The snapshot has features that this reader does not support.
    """
    with iceberg_failures(target):
        table = loaded(target)
        if table is None:
            raise RunError(
                f"table {target.name} cannot be read: there is no Iceberg table {target.called}",
                hint="correct the names; the path of a catalog starts where the run starts",
                path=target.path,
            )
        snapshot_id = _chosen(target, table)
        scan = table.scan(snapshot_id=snapshot_id)
        schema = scan.projection()
        check_iceberg_columns(target, schema)
        _refuse_defaults(target, schema)
        storage = storage_at(target, table)
        refuse_equality_deletes(target, table, snapshot_id, "read")
        tasks = tuple(scan.plan_files())
        deleted = deleted_places(target, table, tasks)
        files = tuple(_file(target, table, schema, storage, task, deleted) for task in tasks)
        ids = {number: schema.find_field(number).name for number in schema.field_ids}
        return SnapshotFiles(storage=storage, files=files, ids=ids)


def _chosen(target: LakeTarget, table: Table) -> int | None:
    """Return the id of the snapshot in the options, or None for the newest one."""
    snapshot: Snapshot | None = None
    for name in (SNAPSHOT, TIMESTAMP, TAG):
        text = target.options.get(name)
        if text is None:
            continue
        if name == TAG:
            snapshot = table.snapshot_by_name(text)
        elif name == SNAPSHOT:
            snapshot = table.snapshot_by_id(int(text))
        else:
            snapshot = table.snapshot_as_of_timestamp(int(text))
        if snapshot is None:
            raise RunError(
                f"table {target.name} cannot be read: {target.called} has no snapshot for {name!r} = {text!r}",
                hint="has it been expired? The table's metadata has the snapshots that are left",
                path=f"{target.path}.options.{name}",
            )
    return None if snapshot is None else snapshot.snapshot_id


def _file(
    target: LakeTarget,
    table: Table,
    schema: Schema,
    storage: Storage,
    task: FileScanTask,
    deleted: Mapping[str, bytes],
) -> ListedFile:
    path = plain_place(task.file.file_path)
    if task.file.file_format != "PARQUET":
        raise _unread(target, f"has files of {task.file.file_format}, not of Parquet", "rewrite_data_files")
    if not path.startswith(f"{storage.root}/") or not is_below(path, storage.root):
        raise _unread(target, f"has a file at {task.file.file_path}, outside of {table.location()}", "a copy")
    partition = {
        schema.find_column_name(field.source_id) or "": task.file.partition[index]
        for index, field in enumerate(table.specs()[task.file.spec_id].fields)
        if isinstance(field.transform, IdentityTransform)
    }
    return ListedFile(
        path=path.removeprefix(f"{storage.root}/"), partition=partition, deleted=deleted.get(task.file.file_path)
    )


def _refuse_defaults(target: LakeTarget, schema: Schema) -> None:
    for field in schema.fields:
        if field.initial_default is not None and field.name in target.schema.names:
            raise _unread(target, f"has a default for column {field.name!r} in older files", "rewrite_data_files")


def _unread(target: LakeTarget, what: str, how: str) -> RunError:
    return RunError(
        f"table {target.name} cannot be read: {target.called} {what}",
        hint=f"rewrite the table without it, as {how} does",
        path=target.path,
    )
