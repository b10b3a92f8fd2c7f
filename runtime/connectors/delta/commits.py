"""Commits to a Delta table: files more, files in place of others, changes by key."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.features import refuse_to_replace
from hintplan.runtime.connectors.delta.files import deleted_rows
from hintplan.runtime.connectors.delta.table import failures, partitions
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.data_files import DataFile, partition_text
from hintplan.runtime.connectors.lakes.target import Target
from hintplan.runtime.connectors.netted_rows import DELETED


def add_files(
    target: Target, table: DeltaTable, files: Sequence[DataFile], commit: Commit, *, sole: bool = False
) -> None:
    """Commit a version with ``files`` more; Changed if ``sole`` and the table is not as it was when it was opened."""
    divided_by = partitions(table)
    with failures(target):
        table.create_write_transaction(
            [*_added(files, divided_by)], mode="append", schema=table.schema(), partition_by=list(divided_by),
            commit_properties=_properties(commit, 0 if sole else None),
        )  # fmt: skip


def replace_files(target: Target, table: DeltaTable, files: Sequence[DataFile], commit: Commit) -> None:
    """Commit a version with ``files`` in place of all others, or if PARTITIONED BY is declared, of those beside them.

    Changed if the table is not as it was when it was opened.
    """
    refuse_to_replace(target, table)
    divided_by = partitions(table)
    actions: list[AddAction | RemoveAction] = [*_added(files, divided_by)]
    if target.partitioned_by:
        actions += _removed(target, table, files, divided_by)
    if files or not target.partitioned_by:
        with failures(target):
            table.create_write_transaction(
                actions, mode="append" if target.partitioned_by else "overwrite", schema=table.schema(),
                partition_by=list(divided_by), commit_properties=_properties(commit, 0),
            )  # fmt: skip


def _removed(
    target: Target, table: DeltaTable, files: Sequence[DataFile], divided_by: Sequence[str]
) -> list[RemoveAction]:
    """What takes the files away that are in the partitions of ``files``."""
    if deleted_rows(table):
        raise RunError(
            f"the Delta table {target.storage.root} has files with deletion vectors, which one partition at a time of "
            "it cannot lose",
            hint="rewrite its files without them, as REORG TABLE ... APPLY (PURGE) does",
            path=target.path,
        )
    written = {tuple(file.partition.get(name) for name in divided_by) for file in files}
    removed = []
    for each in pa.table(table.get_add_actions()).to_pylist():
        texts = {name: partition_text(each["partition"][name]) for name in divided_by}
        if tuple(texts.values()) in written:
            when = max(file.modified for file in files)
            removed.append(RemoveAction(unquote(each["path"]), True, when, each["size_bytes"], texts))
    return removed


def merge(target: Target, table: DeltaTable, changes: pa.Table, commit: Commit) -> bool:
    """Commit a version in which ``changes``, one of each key, replace, add and delete rows; false if nothing changes.

    delta-rs makes no version then. Changed if the table cannot be committed to as it was opened. Files that hold such
    a row are written anew; those that cannot, by the bounds of their columns, are not read.
    """
    names = [column.name for column in target.columns]
    # Names of our own, for what others mean in a condition would have to be quoted.
    source = changes.select([*names, DELETED]).rename_columns([*(f"c{i}" for i in range(len(names))), "deleted"])
    same = " AND ".join(f"t.{_quoted(name)} = s.c{names.index(name)}" for name in target.primary_key)
    values = {_quoted(name): f"s.c{i}" for i, name in enumerate(names)}
    before = table.version()
    with failures(target):
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
    return f"`{name}`"  # names with a backtick are refused with the table
