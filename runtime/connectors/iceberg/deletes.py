"""Row-level deletes in an Iceberg table (merge on read), which other engines write next to its data files.

Position deletes are read. Equality deletes, as Flink's upserts write them, and the deletion vectors of format version 3
are refused. Runs where files are listed: on the driver. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import FileScanTask, Table

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.iceberg.catalog import iceberg_failures, storage_at
from hintplan.runtime.connectors.iceberg.confined import is_below, plain_place
from hintplan.runtime.connectors.lakes.deleted_rows import packed_places
from hintplan.runtime.connectors.lakes.target import LakeTarget

_FILE, _PLACE = "file_path", "pos"


def refuse_equality_deletes(target: LakeTarget, table: Table, snapshot_id: int | None, what: str) -> None:
    """Raise RunError if the snapshot, or the newest one if None, has equality deletes; ``what`` is the refused action.

    Equality deletes affect rows in older files only, so appending can ignore them.
    """
    snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    with iceberg_failures(target):
        deletes = [
            entry.data_file
            for manifest in (() if snapshot is None else snapshot.manifests(table.io))
            if manifest.content == ManifestContent.DELETES
            for entry in manifest.fetch_manifest_entry(table.io)
        ]
    if any(file.content == DataFileContent.EQUALITY_DELETES for file in deletes):
        raise RunError(
            f"table {target.name} cannot be {what}: {target.called} has equality deletes, as Flink's upserts write "
            "them",
            hint="rewrite its files with the engine that writes them, as rewrite_data_files does",
            path=target.path,
        )


def deleted_places(target: LakeTarget, table: Table, tasks: Sequence[FileScanTask]) -> Mapping[str, bytes]:
    """Return the positions of deleted rows, by the table's path of each file; raise RunError for other deletes."""
    delete_files = {file.file_path: file for task in tasks for file in task.delete_files}
    tables = [_read(target, table, file) for file in delete_files.values()]
    if not tables:
        return {}
    deletes = pa.concat_tables(tables)
    return {
        path: packed_places(deletes.filter(pc.equal(deletes[_FILE], path))[_PLACE].to_numpy())
        for path in (task.file.file_path for task in tasks if task.delete_files)
    }


def _read(target: LakeTarget, table: Table, file: DataFile) -> pa.Table:
    path, storage = plain_place(file.file_path), storage_at(target, table)
    if file.file_format != FileFormat.PARQUET:
        raise RunError(
            f"table {target.name} cannot be read: {target.called} has deletes of single rows in files of "
            f"{file.file_format.value}",
            hint="rewrite its files with the engine that writes them, as rewrite_data_files does",
            path=target.path,
        )
    if not path.startswith(f"{storage.root}/") or not is_below(path, storage.root):
        raise RunError(
            f"table {target.name} cannot be read: {target.called} has a file at {file.file_path}, outside of "
            f"{table.location()}",
            hint="rewrite the table without it, as a copy does",
            path=target.path,
        )
    system, root = storage.files()
    rows = pq.read_table(root + path.removeprefix(storage.root), filesystem=system, columns=[_FILE, _PLACE])
    return rows.cast(pa.schema([(_FILE, pa.string()), (_PLACE, pa.int64())]))
