"""The residual condition of a join, evaluated over candidate pairs: a mask over two tables of equal length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.evaluation import EvaluatedRows, Node, as_array
from hintplan.runtime.state.identity import Mask, without_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCondition:
    """A compiled condition over columns ``l.<name>`` and ``r.<name>``, with the names that it needs of either side."""

    expression: Node
    left: tuple[str, ...]
    right: tuple[str, ...]

    def holds(self, left: pa.Table, right: pa.Table, pairs: int) -> Mask:
        """Return a mask of the ``pairs`` that satisfy the condition; NULL does not.

        Row i of both tables is pair i; a table of which the condition needs no columns may have no rows. RunError if
        the condition divides by zero, or converts a value that does not fit.
        """
        answers = self.answers(left, right, pairs)
        if pa.types.is_null(answers.type):
            return np.zeros(pairs, np.bool_)
        result: Mask = answers.fill_null(False).to_numpy(zero_copy_only=False)
        return result

    def answers(self, left: pa.Table, right: pa.Table, pairs: int) -> pa.Array:
        """Return true, false or NULL for each pair; arguments and errors are the same as for :meth:`holds`."""
        if not pairs:
            return pa.nulls(0, self.expression.kind)
        sides = {"l": left, "r": right}
        rows = EvaluatedRows(lambda name: without_chunks(sides[name[0]][name[2:]]), pairs)
        return as_array(self.expression.on(rows), pairs)
