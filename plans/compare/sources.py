"""Matches the sources of a query with the sources of another plan, by the table that is read and by lineage.

A source is a scan, rows of the plan, or a timer that wakes parked rows or operators. Spark's logs have the position in
each source by its number. A record has these numbers, so a plan with other sources can continue the sources that
remain.

>>> orders = SourceRecord(operator="scan_orders", table="orders (filesystem)", lineage="5c2f")
>>> renamed = SourceRecord(operator="scan_o", table="orders (filesystem)", lineage="5c2f")
>>> continued_sources((orders,), (renamed,)).origins
{'scan_o': 'scan_orders'}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field

from hintplan.plans.frozen import frozen

ENDING = "the end of event time"
"""The source table of an operator that goes by the watermark of tables: it ends them when a run drains.

Each such source may continue any other, because all are at the same offset until then.
"""
TIMER = "the time of the next result"
"""The source table of an operator that has something to do at times at which no row need come.

Each such source may continue any other, because a batch runs whenever its offset changes.
"""

_TIMER = "/timer"

Order = tuple[tuple[str, int], ...]
"""The sources of a query in the order of its offsets: the operator, and the number under which Spark keeps its files.

A source that several operators read appears once for each of them.
"""


@frozen
class SourceRecord:
    """The source that a query reads at ``operator``: a ``table`` with its connector.

    Spark's computation reads the source ``places`` times. ``lineage`` is a digest of the rows that the operator reads.
    ``late`` is true if the query reads the source only to write late rows.
    """

    operator: str
    table: str
    lineage: str
    places: int = 1
    late: bool = False


@frozen
class ContinuedSources:
    """The sources of another plan that a query continues.

    ``origins`` maps each operator to the operator whose source it continues. ``unclear`` lists the tables with several
    possible matches.
    """

    origins: Mapping[str, str] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()


def continued_sources(old: Sequence[SourceRecord], new: Sequence[SourceRecord]) -> ContinuedSources:
    """Match each of the ``new`` sources with the ``old`` source whose position it continues.

    A source of the same lineage matches first, then a source of the same table; among several, the operator's own.
    """
    left, wanted = list(old), list(new)
    origins: dict[str, str] = {}

    def go_on(source: SourceRecord, origin: SourceRecord) -> None:
        origins[source.operator] = origin.operator
        left.remove(origin)
        wanted.remove(source)

    keys: tuple[Callable[[SourceRecord], Hashable], ...] = (
        lambda source: (source.operator, source.table, source.lineage),
        lambda source: (source.table, source.lineage),
        lambda source: (source.operator, source.table) if _are_same_operators(old, new, source.table) else source,
        lambda source: source.table,
    )
    for key in keys:
        for source in list(wanted):
            candidates = [candidate for candidate in left if key(candidate) == key(source)]
            if len(candidates) == 1 and sum(key(candidate) == key(source) for candidate in wanted) == 1:
                go_on(source, candidates[0])
    for table in (ENDING, TIMER):
        for source, origin in zip(
            [source for source in wanted if source.table == table],
            [source for source in left if source.table == table],
            strict=False,
        ):
            go_on(source, origin)
    unclear = {source.table for source in wanted} & {source.table for source in left}
    return ContinuedSources(origins=origins, unclear=tuple(sorted(unclear)))


def waking_name(operator: str) -> str:
    """Return the name of the ``TIMER`` of an operator, which may have other sources under its own name.

    >>> waking_name("window_bid")
    'window_bid/timer'
    """
    return f"{operator}{_TIMER}"


def woken_operator(name: str) -> str:
    """Return the operator of a ``TIMER`` with this name.

    >>> woken_operator("window_bid/timer")
    'window_bid'
    """
    return name.removesuffix(_TIMER)


def order_under(order: Order, origins: Mapping[str, str]) -> tuple[tuple[str | None, int], ...]:
    """Return an order with each operator replaced by the operator that it continues, or None if it is new."""
    return tuple((origins.get(operator), number) for operator, number in order)


def _are_same_operators(old: Sequence[SourceRecord], new: Sequence[SourceRecord], table: str) -> bool:
    """Return True if operators of the same ids read the table before and after."""
    before, after = ({source.operator for source in sources if source.table == table} for sources in (old, new))
    return before == after
