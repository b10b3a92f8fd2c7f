"""User-defined aggregate functions over groups with collected rows, as batch jobs use them: Arrow in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.functions.aggregates import UserAggregate
from hintplan.runtime.kernels.accumulators import GivenRows


def aggregate_collected(
    batches: Iterable[pa.RecordBatch], *, users: Mapping[str, tuple[UserAggregate, int]], output: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield ``batches`` of one row per group in the schema ``output``, with results in the columns of ``users``.

    In the input, these columns hold lists of structs: the arguments of each row. ``users`` has, by column, the function
    and its number of arguments.
    """
    for batch in batches:
        columns = [
            _result(batch.column(field.name), *users[field.name]) if field.name in users else batch.column(field.name)
            for field in output
        ]
        yield pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(columns, output, strict=True)], schema=output)


def _result(lists: pa.ListArray, user: UserAggregate, arguments: int) -> pa.Array:
    rows = pc.list_flatten(lists)
    collected = GivenRows(
        groups=np.asarray(pc.list_parent_indices(lists)).astype(np.int64),
        arguments=tuple(rows.field(index) for index in range(arguments)),
        used=np.ones(len(rows), np.bool_),
    )
    accumulators = user.folded(collected, pa.nulls(len(lists), user.type), np.zeros(len(lists), np.bool_))
    return user.values(accumulators, np.ones(len(lists), np.bool_))
