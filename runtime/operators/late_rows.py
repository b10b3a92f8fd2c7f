"""An operator that goes by event time, and also emits the rows that it drops because they are late.

Its rows carry rows of sources: next to its own columns, each has a struct per source, which is NULL in rows of other
sources (:data:`LATE`). The operator inside decides which rows are late, and sees none of these columns. Its output has
the carried columns, too. They are NULL in its results; in late rows, its own columns are NULL, and ``LATE_BY`` has the
watermark that the row was behind. Tasks do not sum up rows before the shuffle, because a sum has no row of a source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, TimeOperator, Watermarks

LATE = "__late_"
"""The prefix of the columns with rows of a source; the id of the scan follows."""
LATE_BY = "__late_by_ms"
"""The column with the watermark that a late row was behind, in ms; NULL in results."""


def late_column(scan: str) -> str:
    """Return the name of the column with the rows of ``scan``."""
    return f"{LATE}{scan}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitsLateRows:
    """``operator`` with its late rows; ``carried`` has the columns of each input with rows of sources."""

    operator: TimeOperator
    carried: tuple[pa.Schema, ...]

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return tuple(
            replace(spec, columns=pa.schema([*spec.columns, *carried]), presum=None)
            for spec, carried in zip(self.operator.inputs, self.carried, strict=True)
        )

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.operator.output, *late_fields(self.carried)])

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        own = [
            None if delta is None else delta.drop_columns(carried.names)
            for delta, carried in zip(deltas, self.carried, strict=True)
        ]
        result = self.operator.process(own, manifest, store, now, watermarks)
        assert result.late_places or not result.late_rows  # else late rows would be lost
        late = (
            [
                delta.select(carried.names).take(pa.array(places))
                for delta, carried, places in zip(deltas, self.carried, result.late_places, strict=True)
                if delta is not None and carried.names and len(places)
            ]
            if result.late_places
            else []
        )
        rows = pa.concat_tables(late, promote_options="default") if late else None
        return replace(
            result,
            output=_completed(result.output, self.output),
            late=None if rows is None else _completed(_with_watermark(rows, watermarks.before), self.output),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return self.operator.inherit(store)


def late_fields(carried: Sequence[pa.Schema]) -> tuple[pa.Field, ...]:
    """Return the columns that the output of an operator with late rows has besides its own."""
    by_name = {field.name: field for schema in carried for field in schema}
    return (*by_name.values(), pa.field(LATE_BY, pa.int64()))


def _with_watermark(rows: pa.Table, watermark: int) -> pa.Table:
    return rows.append_column(LATE_BY, pa.array([watermark] * rows.num_rows, pa.int64()))


def _completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``rows`` with the columns of ``schema``, NULL where they have none."""
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class WithSourceRows:
    """A step at a scan that adds the column ``name`` with its ``row``, and keeps the columns of ``schema``."""

    name: str
    row: pa.StructType
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        fields = [self.row.field(index) for index in range(self.row.num_fields)]
        arrays = [rows[field.name].cast(field.type).combine_chunks() for field in fields]
        whole = pa.StructArray.from_arrays(
            [array.chunk(0) if isinstance(array, pa.ChunkedArray) else array for array in arrays], fields=fields
        )
        return rows.append_column(pa.field(self.name, self.row), whole).select(self.schema.names).cast(self.schema)


@dataclass(frozen=True, slots=True)
class Columns:
    """A step that keeps some columns."""

    names: list[str]

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.names)


@dataclass(frozen=True, slots=True)
class OnTime:
    """A step that returns the results of an operator with late rows, in the columns of ``schema``."""

    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        late = rows[LATE_BY]
        if late.null_count < rows.num_rows:
            rows = rows.filter(pc.is_null(late))
        return rows.select(self.schema.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A step that returns the late rows of ``scans``, which ``operator`` has dropped, in the columns of ``schema``.

    ``names`` are the columns with the name of the operator and with the watermark.
    """

    operator: str
    scans: tuple[str, ...]
    names: tuple[str, str]
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        late = rows.filter(pc.is_valid(rows[LATE_BY]))
        present = [late_column(scan) for scan in self.scans if late_column(scan) in rows.column_names]
        return pa.concat_tables(
            [self.schema.empty_table(), *(self._of(late.filter(pc.is_valid(late[name])), name) for name in present)]
        )

    def _of(self, rows: pa.Table, name: str) -> pa.Table:
        operator, watermark = self.names
        values = {
            operator: pa.array([self.operator] * rows.num_rows, pa.string()),
            watermark: pc.multiply(rows[LATE_BY], 1000),
        }
        columns = [
            (values[field.name] if field.name in values else pc.struct_field(rows[name], field.name)).cast(field.type)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)
