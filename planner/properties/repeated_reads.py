"""Says of each lookup and call that is written once, and made again for each reader of the view or CTE it stands in.

Readers select and filter otherwise, and may be queries of their own, so nothing makes them share one answer. A lookup
is warned of, since its source changes, and so is a random value; a call is a note, since a function may well return the
same again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from hintplan.planner.relations import Relation, Scan, Values, inputs_of
from hintplan.planner.syntax.source import Report
from hintplan.plans.analysis.repeated import times_computed
from hintplan.plans.declarations.built_in import DRAWN
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One time that a job comes to a lookup or call: its operator, the table or function, and through what it is read.

    ``readings`` are views and CTEs, from the outside in, and where each of them is read.
    """

    operator: str
    target: str
    is_lookup: bool
    readings: tuple[tuple[str, int], ...]


def readings_of(relation: Relation) -> tuple[tuple[str, int], ...]:
    """Through which views and CTEs the first of the tables below ``relation`` is read."""
    while not isinstance(relation, Scan | Values):
        relation = inputs_of(relation)[0]
    return relation.readings if isinstance(relation, Scan) else ()


def warn_of_repeated_reads(
    report: Report, asked: Mapping[int, Sequence[Asked]], plan: Plan, sharable: Container[str]
) -> None:
    """Report each lookup and call, by its place in ``asked``, that ``plan`` makes for several readers.

    ``sharable`` are the views that a setting would compute once for all readers.
    """
    computed = times_computed(plan)
    for offset, found in asked.items():
        operators = tuple(dict.fromkeys(each.operator for each in found))
        drawn = found[0].target in DRAWN
        # A batch job draws once for all readers of an operator.
        times = len(operators) if drawn and plan.mode == "batch" else sum(computed[name] for name in operators)
        second = next((reading for each in found[1:] if (reading := _second(found[0], each))), None)
        if times > 1 and second is not None:
            _tell(report, found[0], second, offset, operators, times, batch=plan.mode == "batch", sharable=sharable)


def _second(first: Asked, other: Asked) -> tuple[str, int] | None:
    """The innermost view or CTE that both are read through, at the place where ``other`` alone reads it."""
    names = {name for name, _ in first.readings}
    apart = (r for r in reversed(other.readings) if r not in first.readings and r[0] in names)
    return next(apart, None)


def _tell(
    report: Report,
    asked: Asked,
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
    elif view in sharable and asked.target not in DRAWN:
        cure = f"SET '{SHARED_VIEWS}' = 'true' makes it once for all readers of '{view}'"
    else:
        cure = f"if they must agree, write the rows of '{view}' to a table, and read that"
    if asked.target in DRAWN:
        report.warn(
            f"'{view}' is read again here, and each reader draws {asked.target} at {at} for itself: {times} branches "
            "have other values",
            place,
            cure,
        )
        return
    if len(operators) > 1:
        cure += f"; in the plan, each of {listed} has settings of its own"
    if asked.is_lookup:
        report.warn(
            f"'{view}' is read again here, and each reader makes its lookup join with '{asked.target}' at {at} for "
            f"itself: the source is asked once for each of {times} branches, and its answers may differ",
            place,
            cure,
        )
    else:
        report.note(
            f"'{view}' is read again here, and each reader makes its call of '{asked.target}' at {at} for itself: it "
            f"is called once for each of {times} branches, and what it returns may differ",
            place,
            cure,
        )
