"""The files of a Delta table, and the rows of each that deletion vectors mark as deleted."""

from __future__ import annotations

import json
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.confined import data_file_path, refuse_outer_links, refuse_parts_elsewhere
from hintplan.runtime.connectors.delta.features import unread_features
from hintplan.runtime.connectors.delta.table import check_delta_columns, delta_failures, store_options
from hintplan.runtime.connectors.lakes.deleted_rows import packed_places
from hintplan.runtime.connectors.lakes.reading import ListedFile
from hintplan.runtime.connectors.lakes.target import LakeTarget


def files_of(target: LakeTarget, version: int | None) -> tuple[ListedFile, ...]:
    """Return the files of a version of the table, or of the newest version if None.

    Raises RunError in three cases:

    - The table or the version does not exist.
    - The columns are not as declared.
    - The table has a feature that this reader does not support.
    """
    refuse_outer_links(target)
    with delta_failures(target):
        try:
            table = DeltaTable(target.storage.root, version=version, storage_options=store_options(target))
        except TableNotFoundError:
            raise RunError(
                f"table {target.name} cannot be read: there is no Delta table at {target.storage.root}",
                hint="correct the path; a relative one starts where the run starts",
                path=f"{target.path}.options.table-path",
            ) from None
        check_delta_columns(target, {field.name: json.loads(field.to_json()) for field in table.schema().fields})
        if unread := unread_features(table):
            raise RunError(
                f"table {target.name} cannot be read: {target.storage.root} has the feature {unread[0]}, which "
                f"hintplan does not support",
                hint="copy the rows into a table without it, or drop the feature in a way that rewrites the files",
                path=target.path,
            )
        refuse_parts_elsewhere(target, table)
        deleted = deleted_rows(table)
        actions = pa.table(table.get_add_actions()).to_pylist()
    files = tuple(
        ListedFile(path=path, partition=action.get("partition") or {}, deleted=deleted.pop(path, None))
        for action in actions
        for path in [data_file_path(target, action["path"])]
    )
    assert not deleted, f"rows are deleted of files that are not listed: {sorted(deleted)}"
    return files


def deleted_rows(table: DeltaTable) -> dict[str, bytes]:
    """Return the deleted rows of each file that has a deletion vector, packed by ``packed_places``."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    root, vectors = table.table_uri, pa.table(table.deletion_vectors())
    return {
        unquote(path.removeprefix(root)): packed_places(np.flatnonzero(~np.asarray(kept.as_py(), np.bool_)))
        for path, kept in zip(vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True)
    }
