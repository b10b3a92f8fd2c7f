"""Changes of an Iceberg table by key (copy on write): files that contain a changed row are rewritten in one snapshot.

Files whose partitions or column bounds exclude all changed keys are not read. Runs where batches are committed: on the
driver. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile as Entry
from pyiceberg.table import FileScanTask, Table

from hintplan.runtime.connectors.iceberg.catalog import iceberg_failures
from hintplan.runtime.connectors.iceberg.snapshots import commit_files, writing_of
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.connectors.netted_rows import DELETED
from hintplan.runtime.state.identity import encode_groups, without_chunks

_OF: Any = expressions
"""pyiceberg's expressions, untyped: its type hints do not allow column names as text."""
_MOST_VALUES = 200
"""Above this number of values, pyiceberg does not compare an IN condition with the column bounds of a file."""


def upsert_changes(target: LakeTarget, table: Table, changes: pa.Table, commit: Commit) -> bool:
    """Commit a snapshot with ``changes``, one per key: updates, inserts and deletes. Return false if none apply.

    In that case, nothing is committed. Raises Changed if another writer has changed the table since it was opened.
    """
    column_names = [top.name for top in table.schema().fields]
    with iceberg_failures(target):
        merging = _Merging(table=table, changes=changes, key=target.primary_key, names=tuple(column_names))
        files = list(writing_of(target, table, column_names).written(merging.rows()))
        if files or merging.replaced:
            commit_files(target, table, files, commit, instead_of=merging.replaced)
        return bool(files or merging.replaced)


@dataclass(slots=True, kw_only=True)
class _Merging:
    """The unchanged rows of the files with a changed row, followed by the new rows."""

    table: Table
    changes: pa.Table
    key: tuple[str, ...]
    names: tuple[str, ...]
    replaced: list[Entry] = field(default_factory=list)

    def rows(self) -> Iterator[pa.Table]:
        undeclared = [name for name in self.names if name not in self.changes.column_names]
        before: list[pa.Table] = []
        change_numbers: list[np.ndarray] = []
        for task in self.table.scan(row_filter=_possible(self.changes, self.key)).plan_files():
            existing = self._read(task)
            change = self._changes_of(existing)
            is_changed = change >= 0
            if is_changed.any():
                self.replaced.append(task.file)
                before.append(existing.select(undeclared).filter(pa.array(is_changed)).cast(self._types(undeclared)))
                change_numbers.append(change[is_changed])
                yield existing.filter(pa.array(~is_changed))
        yield self._new(undeclared, before, change_numbers)

    def _read(self, task: FileScanTask) -> pa.Table:
        scan = ArrowScan(self.table.metadata, self.table.io, self.table.schema(), _OF.AlwaysTrue())
        return scan.to_table([task])

    def _types(self, names: list[str]) -> pa.Schema:
        schema = self.table.schema().as_arrow()
        return pa.schema([schema.field(name).with_nullable(True) for name in names])

    def _changes_of(self, there: pa.Table) -> np.ndarray:
        """Return the index of the change for each row, -1 for an unchanged row."""
        size = self.changes.num_rows
        keys = [_together(self.changes[name], there[name]) for name in self.key]
        groups, _ = encode_groups(keys)
        numbers = np.full(int(groups.max(initial=-1)) + 1, -1, np.int64)
        numbers[groups[:size]] = np.arange(size)
        return numbers[groups[size:]]

    def _new(self, undeclared: list[str], before: list[pa.Table], whose: list[np.ndarray]) -> pa.Table:
        """Return the new rows; columns that are not declared keep the values of the replaced rows."""
        rows = self.changes
        if undeclared and before:
            positions = np.full(rows.num_rows, -1, np.int64)
            numbers = np.concatenate(whose)
            positions[numbers] = np.arange(len(numbers))
            old = pa.concat_tables(before).take(pa.array(positions, mask=positions < 0))
            for name in undeclared:
                rows = rows.append_column(name, old[name])
        elif undeclared:
            for part in self._types(undeclared):
                rows = rows.append_column(part.name, pa.nulls(rows.num_rows, part.type))
        return rows.filter(pc.invert(rows[DELETED])).select(list(self.names))


def _together(some: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([without_chunks(some), without_chunks(others.cast(some.type))])


def _possible(changes: pa.Table, key: tuple[str, ...]) -> Any:
    """Return a condition that all rows with a changed key satisfy, by which files are pruned."""
    conditions = [_within(name, changes[name]) for name in key if not pa.types.is_floating(changes[name].type)]
    return reduce(_OF.And, conditions, _OF.AlwaysTrue())


def _within(name: str, column: pa.ChunkedArray) -> Any:
    values = pc.unique(column)
    if len(values) <= _MOST_VALUES:
        return _OF.In(name, values.to_pylist())
    if pa.types.is_binary(column.type):
        return _OF.AlwaysTrue()
    bounds = pc.min_max(values).as_py()
    return _OF.And(_OF.GreaterThanOrEqual(name, bounds["min"]), _OF.LessThanOrEqual(name, bounds["max"]))
