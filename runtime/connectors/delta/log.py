"""The log of a Delta table, through delta-rs: opening, creating, committing files, merging changes.

Only where batches are committed: on the driver. Knows no Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from plans.errors import RunError
from runtime.connectors.delta.features import refuse_to_write, unread_features
from runtime.connectors.lakes.commits import Changed, Commit
from runtime.connectors.lakes.data_files import DataFile, partition_text
from runtime.connectors.lakes.deleted_rows import packed_places
from runtime.connectors.lakes.reading import ListedFile
from runtime.connectors.lakes.target import Target
from runtime.connectors.netted_rows import DELETED
from runtime.lookup.sources.failures import redacted

_STORE = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}
_IGNORED = ("nullable", "containsNull", "valueContainsNull", "metadata")


def opened(target: Target) -> DeltaTable | None:
    """The table as it is now, None if it is not there; RunError if the sink cannot write to it."""
    _refuse_file(target)
    with failures(target):
        try:
            table = DeltaTable(target.storage.root, storage_options=_store(target))
        except TableNotFoundError:
            _refuse_other_files(target)
            return None
        _check(target, table)
        return table


def files_of(target: Target, version: int | None) -> tuple[ListedFile, ...]:
    """The files of a version of the table, the newest if None.

    RunError if there is no such table or version, if its columns are not as declared, or if it has a feature of which
    readers have to know more.
    """
    with failures(target):
        try:
            table = DeltaTable(target.storage.root, version=version, storage_options=_store(target))
        except TableNotFoundError:
            raise RunError(
                f"table {target.name} cannot be read: there is no Delta table at {target.storage.root}",
                hint="correct the path; a relative one starts where the run starts",
                path=f"{target.path}.options.table-path",
            ) from None
        _check_columns(target, {field.name: json.loads(field.to_json()) for field in table.schema().fields})
        if unknown := unread_features(table):
            raise RunError(
                f"table {target.name} cannot be read: {target.storage.root} has the feature {unknown[0]}, of which "
                "only other readers know",
                hint="copy the rows into a table without it, or have what drops the feature rewrite the files",
                path=target.path,
            )
        deleted = _deleted(table)
        found = pa.table(table.get_add_actions()).to_pylist()
    files = tuple(
        ListedFile(path=path, partition=each.get("partition") or {}, deleted=deleted.pop(path, None))
        for each in found
        for path in [unquote(each["path"])]  # which the log has as of a url
    )
    assert not deleted, f"rows are deleted of files that are not listed: {sorted(deleted)}"
    return files


def _deleted(table: DeltaTable) -> dict[str, bytes]:
    """The rows of each file that a deletion vector takes away."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    root, found = table.table_uri, pa.table(table.deletion_vectors())
    return {
        unquote(path.removeprefix(root)): packed_places(np.flatnonzero(~np.asarray(kept.as_py(), np.bool_)))
        for path, kept in zip(found["filepath"].to_pylist(), found["selection_vector"], strict=True)
    }


def prepared(target: Target) -> DeltaTable:
    """The table, which is created if it is not there."""
    found = opened(target)
    if found is not None:
        return found
    with failures(target):
        if target.storage.is_local:
            os.makedirs(target.storage.root, exist_ok=True)
        DeltaTable.create(
            target.storage.root, schema=target.schema, mode="ignore", partition_by=list(target.partitioned_by),
            storage_options=_store(target), configuration=_configuration(target),
        )  # fmt: skip
    made = opened(target)
    assert made is not None
    return made


def _configuration(target: Target) -> dict[str, str | None]:
    """What makes delta-rs list all features of the table: with TIMESTAMP it forgets NOT NULL, and Spark reads none."""
    ntz = '"timestamp_ntz"' in Schema.from_arrow(target.schema).to_json()
    return {"delta.minWriterVersion": "7"} if ntz else {}


def partitions(table: DeltaTable) -> tuple[str, ...]:
    """The columns by which the table is divided."""
    return tuple(table.metadata().partition_columns)


def is_empty(table: DeltaTable) -> bool:
    """Whether the table has no files."""
    return not table.file_uris()


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
    if _deleted(table):
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
            removed.append(RemoveAction(each["path"], True, when, each["size_bytes"], texts))
    return removed


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


def merge(target: Target, table: DeltaTable, changes: pa.Table, commit: Commit) -> None:
    """Commit a version in which ``changes``, one of each key, replace, add and delete rows; Changed if that cannot be.

    Files that hold such a row are written anew; those that cannot, by the bounds of their columns, are not read.
    """
    names = [column.name for column in target.columns]
    # Names of our own, for what others mean in a condition would have to be quoted.
    source = changes.select([*names, DELETED]).rename_columns([*(f"c{i}" for i in range(len(names))), "deleted"])
    same = " AND ".join(f"t.{_quoted(name)} = s.c{names.index(name)}" for name in target.primary_key)
    values = {_quoted(name): f"s.c{i}" for i, name in enumerate(names)}
    with failures(target):
        merging = table.merge(
            source, same, source_alias="s", target_alias="t", streamed_exec=False,
            commit_properties=_properties(commit, None),
        )  # fmt: skip
        merging = merging.when_matched_delete("s.deleted").when_matched_update(values, predicate="NOT s.deleted")
        merging.when_not_matched_insert(values, predicate="NOT s.deleted").execute()


def last_batch(target: Target, table: DeltaTable, writer: str) -> int:
    """The last batch of ``writer`` that the table has, -1 if it has none."""
    with failures(target):
        found = table.transaction_version(writer)
    return -1 if found is None else int(found)


@contextmanager
def failures(target: Target) -> Iterator[None]:
    """Raises what delta-rs says as :class:`Changed` or as a RunError, without what came out of the environment."""
    try:
        yield
    except CommitFailedError as error:
        raise Changed(_told(error, target)) from None
    except (DeltaError, OSError, ValueError) as error:
        raise _failed(error, target) from None
    except Exception as error:
        if type(error) is not Exception:  # as which delta-rs raises what its engine says
            raise
        raise _failed(error, target) from None


def _failed(error: Exception, target: Target) -> RunError:
    return RunError(f"table {target.name}, {target.storage.root}: {_told(error, target)}", path=target.path)


def _told(error: Exception, target: Target) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return redacted(" ".join(plain.split()), target.options)


def _store(target: Target) -> dict[str, str] | None:
    if target.storage.is_local:
        return None
    given = target.storage.resolved()
    options = {theirs: given[ours] for ours, theirs in _STORE.items() if ours in given}
    return {**options, **({"AWS_ALLOW_HTTP": "true"} if given.get("s3.endpoint", "").startswith("http:") else {})}


def _properties(commit: Commit, retries: int | None) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(*commit)], max_commit_retries=retries)


def _quoted(name: str) -> str:
    return f"`{name}`"  # names with a backtick are refused with the table


def _refuse_file(target: Target) -> None:
    if target.storage.is_local and os.path.exists(target.storage.root) and not os.path.isdir(target.storage.root):
        raise _no_table(target, "is a file")


def _refuse_other_files(target: Target) -> None:
    root = target.storage.root
    if target.storage.is_local and os.path.isdir(root) and os.listdir(root):
        raise _no_table(target, "has files, but no log of a Delta table")


def _no_table(target: Target, why: str) -> RunError:
    return RunError(
        f"{target.storage.root} {why}",
        hint="give the table a directory of its own",
        path=f"{target.path}.options.table-path",
    )


def _check(target: Target, table: DeltaTable) -> None:
    """RunError if the sink cannot write to the table."""
    there = {field.name: json.loads(field.to_json()) for field in table.schema().fields}
    metadata = table.metadata()
    refuse_to_write(target, table, there)
    _check_columns(target, there)
    for name, field in there.items():
        if name not in target.schema.names and not field["nullable"]:
            raise RunError(
                f"column {name!r} of the Delta table {target.storage.root} must have a value, and is not declared",
                hint="declare it in CREATE TABLE",
                path=target.path,
            )
    if target.partitioned_by and list(target.partitioned_by) != metadata.partition_columns:
        raise RunError(
            f"the Delta table {target.storage.root} is partitioned by "
            f"{', '.join(metadata.partition_columns) or 'nothing'}",
            hint="leave PARTITIONED BY out, or write to another table",
            path=f"{target.path}.partitioned-by",
        )


def _check_columns(target: Target, there: Mapping[str, Any]) -> None:
    """RunError unless the declared columns are there, with their types."""
    wanted = {field.name: json.loads(field.to_json()) for field in Schema.from_arrow(target.schema).fields}
    types = {column.name: column.type for column in target.columns}
    for name, field in wanted.items():
        if name not in there:
            raise RunError(
                f"the Delta table {target.storage.root} has no column {name!r}",
                hint="add it there, or leave it out of CREATE TABLE",
                path=target.path,
            )
        if _plain(there[name]["type"]) != _plain(field["type"]):
            raise RunError(
                f"column {name!r} is {types[name]} here, but {json.dumps(there[name]['type'])} in the Delta table "
                f"{target.storage.root}",
                hint="declare it as the table has it, or name another table",
                path=target.path,
            )


def _plain(kind: Any) -> Any:
    """A type without what is said of NULLs."""
    if isinstance(kind, dict):
        return {name: _plain(value) for name, value in kind.items() if name not in _IGNORED}
    return [_plain(each) for each in kind] if isinstance(kind, list) else kind
