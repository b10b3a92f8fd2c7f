"""Reports each lookup and call that the query has once, but that runs once for each reader of its view or CTE.

Readers select and filter in different ways, and may be separate queries, so they cannot share one result. A lookup gets
a warning, because its source changes, and so does a random value. A call gets a note, because a function usually
returns the same value again.

A shared view is computed once for all readers. A note reports the cases where this may cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from hintplan.planner.relations import LogicalScan, LogicalValues, Relation, inputs_of
from hintplan.planner.syntax.source import Diagnostics
from hintplan.plans.analysis.repeated import times_computed
from hintplan.plans.declarations.built_in import DRAWN
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOccurrence:
    """One occurrence of a lookup or call in a job: its operator, the table or function, and the views that read it.

    ``readings`` are the views and CTEs around it, outermost first, with the offset at which each is read.
    """

    operator: str
    target: str
    is_lookup: bool
    readings: tuple[tuple[str, int], ...]


def readings_of(relation: Relation) -> tuple[tuple[str, int], ...]:
    """Return the views and CTEs through which the first table below ``relation`` is read."""
    while not isinstance(relation, LogicalScan | LogicalValues):
        relation = inputs_of(relation)[0]
    return relation.readings if isinstance(relation, LogicalScan) else ()


def warn_of_repeated_reads(
    report: Diagnostics, by_offset: Mapping[int, Sequence[ReadOccurrence]], plan: Plan, sharable: Container[str]
) -> None:
    """Report each lookup and call that ``plan`` makes for several readers. The keys of ``by_offset`` are offsets.

    ``sharable`` are the views that a setting would compute once for all readers.
    """
    computed = times_computed(plan)
    for offset, occurrences in by_offset.items():
        operators = tuple(dict.fromkeys(occurrence.operator for occurrence in occurrences))
        drawn = occurrences[0].target in DRAWN
        # A batch job draws random values once for all readers of an operator.
        times = len(operators) if drawn and plan.mode == "batch" else sum(computed[name] for name in operators)
        second = next(
            (reading for occurrence in occurrences[1:] if (reading := _second(occurrences[0], occurrence))), None
        )
        if times > 1 and second is not None:
            _warn(
                report,
                occurrences[0],
                second,
                offset,
                operators,
                times,
                batch=plan.mode == "batch",
                sharable=sharable,
            )


def _second(first: ReadOccurrence, other: ReadOccurrence) -> tuple[str, int] | None:
    """Return the innermost view or CTE through which both are read, with the offset at which only ``other`` is read."""
    names = {name for name, _ in first.readings}
    apart = (r for r in reversed(other.readings) if r not in first.readings and r[0] in names)
    return next(apart, None)


def _warn(
    report: Diagnostics,
    read: ReadOccurrence,
    reading: tuple[str, int],
    offset: int,
    operators: Sequence[str],
    times: int,
    *,
    batch: bool,
    sharable: Container[str],
) -> None:
    view, place = reading
    at = report.source.where(offset)
    listed = ", ".join(operators)
    if batch:
        cure = f"write SELECT /*+ CACHED */ in '{view}', or CACHE TABLE {view} if it is a view: one result for all"
    elif view in sharable and read.target not in DRAWN:
        cure = f"SET '{SHARED_VIEWS}' = 'true' makes it once for all readers of '{view}'"
    else:
        cure = f"if they must agree, write the rows of '{view}' to a table, and read that"
    if read.target in DRAWN:
        report.warn(
            f"'{view}' is read again here, and each reader draws {read.target} at {at} for itself: {times} branches "
            "have other values",
            place,
            cure,
        )
        return
    if len(operators) > 1:
        cure += f"; in the plan, each of {listed} has settings of its own"
    if read.is_lookup:
        report.warn(
            f"'{view}' is read again here, and each reader makes its lookup join with '{read.target}' at {at} "
            f"separately: the source gets a request for each of {times} branches, and the responses may differ",
            place,
            cure,
        )
    else:
        report.note(
            f"'{view}' is read again here, and each reader makes its call of '{read.target}' at {at} separately: it "
            f"is called once for each of {times} branches, and its results may differ",
            place,
            cure,
        )


def note_costly_views(report: Diagnostics, views: Mapping[str, str], places: Mapping[str, int], plan: Plan) -> None:
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
                f"if they take few, remove SET '{SHARED_VIEWS}': then each of them keeps only the rows that it takes",
            )
