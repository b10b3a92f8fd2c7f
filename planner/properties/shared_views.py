"""Notes on shared views, which are computed once for all readers: cases where this may cost more than it saves."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.planner.syntax.source import Diagnostics
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc


def note_dear_views(report: Diagnostics, views: Mapping[str, str], places: Mapping[str, int], plan: Plan) -> None:
    """Note each of ``views`` whose readers all filter its rows.

    If the view were not shared, each reader's filter would move below the state. ``views`` is by operator. ``places``
    has the offsets of the views.
    """
    for operator, view in views.items():
        readers = [reader for reader in plan.readers[operator] if isinstance(reader, Calc)]
        held = [reader.filter for reader in readers if reader.filter is not None]
        if len(held) == len(plan.readers[operator]) > 1:
            report.note(
                f"view '{view}' is kept once with all its rows, though each of its {len(held)} readers takes only some",
                places.get(view),
                f"if they take few, leave out SET '{SHARED_VIEWS}': each then keeps the rows that it takes",
            )
