"""The order of the rows of a source, as metadata columns, and the sort by these columns.

Scans of changes add the columns (:mod:`hintplan.plans.analysis.row_order`). The operators up to a stateful operator
pass them on, and the engine sorts a delta before the operator reads it. Knows no Spark.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.identity import encode_groups

ROW_ORDER = pa.schema(
    [
        ("__arrival_time", pa.int64()),
        ("__arrival_path", pa.string()),
        ("__arrival_block", pa.int64()),
    ]
)
"""The time at which the file of a row was written, the path of the file, and the start of the piece that a task read.

The rows of one piece always stay in order.
"""


def in_row_order(delta: pa.Table, *, keep: bool = False) -> pa.Table:
    """Return ``delta`` in the order of its rows, without the columns of ``ROW_ORDER``; unchanged if it has none.

    With ``keep``, these columns stay.
    """
    if ROW_ORDER.names[0] not in delta.column_names:
        return delta
    order = _places(delta.select(ROW_ORDER.names))
    delta = delta if keep else delta.drop_columns(ROW_ORDER.names)
    return delta if bool((np.diff(order) > 0).all()) else delta.take(pa.array(order))


def _places(columns: pa.Table) -> npt.NDArray[np.int64]:
    """Return the indices that sort the rows.

    A batch has few pieces of files, and many rows of each.
    """
    if not columns.num_rows:
        return np.empty(0, np.int64)
    pieces, first = encode_groups([column.combine_chunks() for column in columns.columns])
    by_time = [(name, "ascending") for name in columns.column_names]
    order = pc.sort_indices(columns.take(first), sort_keys=by_time).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    places: npt.NDArray[np.int64] = np.argsort(rank[pieces], kind="stable")
    return places
