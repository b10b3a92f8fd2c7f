"""A model as a kernel: a pipeline whose operators are models tests the pipeline itself, and no operator of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pyarrow as pa

from hintplan.runtime.operator import KIND, InputSpec, Result, SegmentStore, Watermarks
from tests.runtime.changelog import events_of
from tests.runtime.event_time.models import Model, Row
from tests.runtime.event_time.recorded import SIGNS
from tests.runtime.event_time.times import EPOCH, FOREVER, milliseconds


class ModelKernel:
    """A kernel whose state is a model.

    ``row`` are the columns of the input with the key, the value and the time of a row of the model. ``names`` are the
    columns of ``output`` in the order in which the model puts them out.
    """

    def __init__(
        self, spec: InputSpec, make: Callable[[], Model], output: pa.Schema, *, row: Sequence[str], names: Sequence[str]
    ) -> None:
        self.inputs, self.row = (spec,), row
        self.output, self.names = output, names
        self.make = make

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        model = self.make() if manifest is None else deepcopy(STATES[int(manifest)])
        late = getattr(model, "late", 0)
        rows = [row for delta in deltas if delta is not None for row in self.rows(delta)]
        results = model.batch(rows, watermarks.before, watermarks.after)
        STATES.append(model)
        return Result(
            output=pa.Table.from_pylist([self.shown(row) for _, row in results], self.output),
            manifest=str(len(STATES) - 1).encode(),
            rows_in=len(rows),
            state_rows=0,
            state_bytes=0,
            oldest_write=None,
            late_rows=getattr(model, "late", 0) - late,
            waiting_rows=0 if watermarks.after == FOREVER else len(getattr(model, "open", ())),
        )

    def rows(self, delta: pa.Table) -> list[Row]:
        names = [*self.row, *([KIND] if KIND in delta.column_names else [])]
        return [
            Row(milliseconds(time.isoformat()), key, value, SIGNS[kind])
            for kind, (key, value, time) in events_of(delta.select(names))
        ]

    def shown(self, row: tuple[Any, ...]) -> dict[str, Any]:
        is_time = {field.name: pa.types.is_timestamp(field.type) for field in self.output}
        return {name: _time(value) if is_time[name] else value for name, value in zip(self.names, row, strict=True)}

    def inherit(self, store: Any) -> bytes | None:
        raise NotImplementedError("the state of a model cannot be divided")


STATES: list[Model] = []
"""The states of all models; a manifest is a position."""


def _time(value: int) -> Any:
    return (EPOCH + timedelta(milliseconds=value)).replace(tzinfo=None)
