"""Reads the messages of a batch in bulk where that is possible, and the others row by row, in the batch's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Read = Callable[[pa.RecordBatch], tuple[pa.Table, npt.NDArray[np.int64]] | None]
"""Returns the rows of a batch of messages, and the position of each row's message; or None.

None means no rows to a reader of rows, and to one in bulk that it does not read the batch.
"""

_PIECE = 1024
"""The number of messages that are read row by row, at least, if it is not known which of them are not plain."""
_MOST_ODD = 1 / 4


def read_apart(
    batch: pa.RecordBatch, in_bulk: Read, by_row: Read, odd: Callable[[pa.RecordBatch], pa.Array | None]
) -> Iterator[pa.Table]:
    """Yield the rows of ``batch``, in order.

    ``odd`` returns some of the messages that ``in_bulk`` does not read, or None. If ``in_bulk`` reads all others, only
    these messages are read ``by_row``; otherwise all messages of the pieces that ``in_bulk`` does not read.
    """
    found = in_bulk(batch) or _all_but_odd(batch, in_bulk, by_row, odd)
    if found is not None:
        if found[0].num_rows:
            yield found[0]
        return
    for start in range(0, batch.num_rows, _PIECE):
        piece = batch.slice(start, _PIECE)
        found = in_bulk(piece) if batch.num_rows > _PIECE else None
        found = by_row(piece) if found is None else found
        if found is not None and found[0].num_rows:
            yield found[0]


def _all_but_odd(
    batch: pa.RecordBatch, in_bulk: Read, by_row: Read, odd: Callable[[pa.RecordBatch], pa.Array | None]
) -> tuple[pa.Table, npt.NDArray[np.int64]] | None:
    """Return the rows of ``batch``, of which the ``odd`` messages are read ``by_row``; None if that is not enough."""
    which = odd(batch)
    if which is None:
        return None
    is_odd = np.asarray(which)
    if not 0 < np.count_nonzero(is_odd) <= batch.num_rows * _MOST_ODD:
        return None
    plain = in_bulk(batch.filter(pa.array(~is_odd)))
    if plain is None:
        return None
    others = by_row(batch.filter(which))
    if others is None:
        return plain
    messages = np.concatenate([np.flatnonzero(~is_odd)[plain[1]], np.flatnonzero(is_odd)[others[1]]])
    order = np.argsort(messages, kind="stable")
    return pa.concat_tables([plain[0], others[0]]).take(pa.array(order)), messages[order]
