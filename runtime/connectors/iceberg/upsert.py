"""Changes of an Iceberg table by key: files that hold a row that changes are written anew, all in one snapshot.

Files that cannot hold one, by their partitions and the bounds of their columns, are not read. Only where batches are
committed: on the driver. Knows no Spark.
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

from hintplan.runtime.connectors.iceberg.catalog import failures
from hintplan.runtime.connectors.iceberg.snapshots import commit_files, writing_of
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.target import Target
from hintplan.runtime.connectors.netted_rows import DELETED
from hintplan.runtime.state.identity import encode_groups, without_chunks

_OF: Any = expressions
"""Conditions, which take columns by their names, as their types do not say."""
_MOST_VALUES = 200
"""Of more values, pyiceberg does not look whether they are within the bounds of a file."""


def merge(target: Target, table: Table, changes: pa.Table, commit: Commit) -> bool:
    """Commit a snapshot in which ``changes``, one of each key, replace, add and delete rows; false if nothing changes.

    Nothing is committed then. Changed if somebody else has changed the table since it was opened.
    """
    names = [top.name for top in table.schema().fields]
    with failures(target):
        merging = _Merging(table=table, changes=changes, key=target.primary_key, names=tuple(names))
        files = list(writing_of(target, table, names).written(merging.rows()))
        if files or merging.replaced:
            commit_files(target, table, files, commit, instead_of=merging.replaced)
        return bool(files or merging.replaced)


@dataclass(slots=True, kw_only=True)
class _Merging:
    """What is left of files that hold a changed row, and then the new rows."""

    table: Table
    changes: pa.Table
    key: tuple[str, ...]
    names: tuple[str, ...]
    replaced: list[Entry] = field(default_factory=list)

    def rows(self) -> Iterator[pa.Table]:
        undeclared = [name for name in self.names if name not in self.changes.column_names]
        before: list[pa.Table] = []
        whose: list[np.ndarray] = []
        for task in self.table.scan(row_filter=_possible(self.changes, self.key)).plan_files():
            there = self._read(task)
            change = self._changes_of(there)
            hit = change >= 0
            if hit.any():
                self.replaced.append(task.file)
                before.append(there.select(undeclared).filter(pa.array(hit)).cast(self._types(undeclared)))
                whose.append(change[hit])
                yield there.filter(pa.array(~hit))
        yield self._new(undeclared, before, whose)

    def _read(self, task: FileScanTask) -> pa.Table:
        scan = ArrowScan(self.table.metadata, self.table.io, self.table.schema(), _OF.AlwaysTrue())
        return scan.to_table([task])

    def _types(self, names: list[str]) -> pa.Schema:
        schema = self.table.schema().as_arrow()
        return pa.schema([schema.field(name).with_nullable(True) for name in names])

    def _changes_of(self, there: pa.Table) -> np.ndarray:
        """The number of the change of each row, -1 if it has none."""
        size = self.changes.num_rows
        keys = [_together(self.changes[name], there[name]) for name in self.key]
        groups, _ = encode_groups(keys)
        numbers = np.full(int(groups.max(initial=-1)) + 1, -1, np.int64)
        numbers[groups[:size]] = np.arange(size)
        return numbers[groups[size:]]

    def _new(self, undeclared: list[str], before: list[pa.Table], whose: list[np.ndarray]) -> pa.Table:
        """The rows that the changes leave; in columns that are not declared, what the replaced rows had."""
        rows = self.changes
        if undeclared and before:
            at = np.full(rows.num_rows, -1, np.int64)
            numbers = np.concatenate(whose)
            at[numbers] = np.arange(len(numbers))
            old = pa.concat_tables(before).take(pa.array(at, mask=at < 0))
            for name in undeclared:
                rows = rows.append_column(name, old[name])
        elif undeclared:
            for part in self._types(undeclared):
                rows = rows.append_column(part.name, pa.nulls(rows.num_rows, part.type))
        return rows.filter(pc.invert(rows[DELETED])).select(list(self.names))


def _together(some: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([without_chunks(some), without_chunks(others.cast(some.type))])


def _possible(changes: pa.Table, key: tuple[str, ...]) -> Any:
    """A condition that all rows of the keys that change fulfil, for files to be found by it."""
    found = [_within(name, changes[name]) for name in key if not pa.types.is_floating(changes[name].type)]
    return reduce(_OF.And, found, _OF.AlwaysTrue())


def _within(name: str, column: pa.ChunkedArray) -> Any:
    values = pc.unique(column)
    if len(values) <= _MOST_VALUES:
        return _OF.In(name, values.to_pylist())
    if pa.types.is_binary(column.type):
        return _OF.AlwaysTrue()
    bounds = pc.min_max(values).as_py()
    return _OF.And(_OF.GreaterThanOrEqual(name, bounds["min"]), _OF.LessThanOrEqual(name, bounds["max"]))
