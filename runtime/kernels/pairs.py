"""Which candidate pairs of a join satisfy its residual condition, as a mask over two equally long tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.state.identity import Mask

__all__ = ["JoinCondition"]

_ROW = "__row"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCondition:
    """A compiled condition and the columns it needs of either side."""

    expression: pc.Expression
    left: tuple[str, ...]
    right: tuple[str, ...]

    def holds(self, left: pa.Table, right: pa.Table) -> Mask:
        """Whether each pair, given as equally long tables, satisfies the condition; NULL does not."""
        columns = {f"l.{name}": left[name] for name in self.left} | {f"r.{name}": right[name] for name in self.right}
        rows = left.num_rows if self.left else right.num_rows
        pairs = pa.table({**columns, _ROW: pa.array(np.arange(rows))})
        result = np.zeros(rows, np.bool_)
        result[pairs.filter(self.expression)[_ROW].to_numpy()] = True
        return result
