"""Commits to a Delta table that add files, replace files, or merge changes by key."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.features import refuse_to_replace
from hintplan.runtime.connectors.delta.files import deleted_rows
from hintplan.runtime.connectors.delta.table import delta_failures, partitions
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.data_files import DataFile, partition_text
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.connectors.netted_rows import DELETED


def add_files(
    target: LakeTarget, table: DeltaTable, files: Sequence[DataFile], commit: Commit, *, sole: bool = False
) -> None:
    """Commit a version that adds ``files``; raise Changed if ``sole`` and the table has changed since it was opened."""
    divided_by = partitions(table)
    with delta_failures(target):
        table.create_write_transaction(
            [*_added(files, divided_by)], mode="append", schema=table.schema(), partition_by=list(divided_by),
            commit_properties=_properties(commit, 0 if sole else None),
        )  # fmt: skip


def replace_files(target: LakeTarget, table: DeltaTable, files: Sequence[DataFile], commit: Commit) -> None:
    """Commit a version that replaces all files with ``files``.

    With PARTITIONED BY, only the files in the same partitions as ``files`` are replaced. Raises Changed if the table
    has changed since it was opened.
    """
    refuse_to_replace(target, table)
    divided_by = partitions(table)
    actions: list[AddAction | RemoveAction] = [*_added(files, divided_by)]
    if target.partitioned_by:
        actions += _removed(target, table, files, divided_by)
    if files or not target.partitioned_by:
        with delta_failures(target):
            table.create_write_transaction(
                actions, mode="append" if target.partitioned_by else "overwrite", schema=table.schema(),
                partition_by=list(divided_by), commit_properties=_properties(commit, 0),
            )  # fmt: skip


def _removed(
    target: LakeTarget, table: DeltaTable, files: Sequence[DataFile], divided_by: Sequence[str]
) -> list[RemoveAction]:
    """Return the actions that remove the existing files in the partitions of ``files``."""
    if deleted_rows(table):
        raise RunError(
            f"the Delta table {target.storage.root} has files with deletion vectors, which one partition at a time of "
            "it cannot lose",
            hint="rewrite its files without them, as REORG TABLE ... APPLY (PURGE) does",
            path=target.path,
        )
    written = {tuple(file.partition.get(name) for name in divided_by) for file in files}
    removed = []
    for action in pa.table(table.get_add_actions()).to_pylist():
        texts = {name: partition_text(action["partition"][name]) for name in divided_by}
        if tuple(texts.values()) in written:
            when = max(file.modified for file in files)
            removed.append(RemoveAction(unquote(action["path"]), True, when, action["size_bytes"], texts))
    return removed


def merge_into_delta(target: LakeTarget, table: DeltaTable, changes: pa.Table, commit: Commit) -> bool:
    """Commit a version that applies ``changes``, one per key: updates, inserts and deletes. Return false if none apply.

    In that case, delta-rs makes no version. Raises Changed if the table cannot be committed to as it was opened.
    delta-rs rewrites the files that contain an affected row. It skips files whose column bounds exclude all keys.
    """
    column_names = [column.name for column in target.columns]
    # Generated column names: unlike the source's names, they need no quoting in a condition.
    source = changes.select([*column_names, DELETED]).rename_columns(
        [*(f"c{i}" for i in range(len(column_names))), "deleted"]
    )
    same = " AND ".join(f"t.{_quoted(name)} = s.c{column_names.index(name)}" for name in target.primary_key)
    values = {_quoted(name): f"s.c{i}" for i, name in enumerate(column_names)}
    before = table.version()
    with delta_failures(target):
        merging = table.merge(
            source, same, source_alias="s", target_alias="t", streamed_exec=False,
            commit_properties=_properties(commit, None),
        )  # fmt: skip
        merging = merging.when_matched_delete("s.deleted").when_matched_update(values, predicate="NOT s.deleted")
        merging.when_not_matched_insert(values, predicate="NOT s.deleted").execute()
    return table.version() > before


def _added(files: Sequence[DataFile], divided_by: Sequence[str]) -> list[AddAction]:
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={name: file.partition.get(name) for name in divided_by},
            modification_time=file.modified,
            data_change=True,
            stats=file.stats,
        )
        for file in files
    ]


def _properties(commit: Commit, retries: int | None) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(*commit)], max_commit_retries=retries)


def _quoted(name: str) -> str:
    return f"`{name}`"  # a table with a backtick in a name is refused before this
