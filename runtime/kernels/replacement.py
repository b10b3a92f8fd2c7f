"""A changelog from the rows of keys before and after a batch: +I, -U directly followed by +U, -D."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.state.identity import Mask, equal_columns


def replaced(
    before: pa.Table, after: pa.Table, was: Mask, is_: Mask, *, updates_before: bool, equal_rows: bool
) -> pa.Table:
    """Return the changelog from ``before`` to ``after``; row i exists in them where ``was`` and ``is_`` are true.

    ``updates_before`` adds -U rows, ``equal_rows`` adds updates that change nothing.
    """
    updated = was & is_
    if not equal_rows:
        updated &= ~equal_columns(before, after)
    emit_old = (was & ~is_) | (updated & updates_before)
    emit_new = (is_ & ~was) | updated
    size = len(was)
    # Row 2i is key i before, row 2i+1 after: an update's -U directly precedes its +U.
    emitted = np.column_stack((emit_old, emit_new)).ravel()
    place = np.column_stack((np.arange(size), np.arange(size, 2 * size))).ravel()[emitted]
    kinds = np.column_stack((np.where(is_, UPDATE_BEFORE, DELETE), np.where(was, UPDATE_AFTER, INSERT))).ravel()
    rows = pa.concat_tables([before, after]).combine_chunks().take(place)
    return rows.append_column(pa.field(KIND, pa.int8()), pa.array(kinds[emitted].astype(np.int8)))
