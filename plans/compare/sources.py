"""Which source of a query goes on as which of another plan: by the table that is read, and what it is read for.

A source is where a query reads: a scan, rows of the plan, or what wakes rows that wait. How far it has been read is in
Spark's logs, by its number there; a record has the numbers, so a plan with other sources goes on with those that it
still has.

>>> orders = SourceRecord(operator="scan_orders", table="orders (filesystem)", lineage="5c2f")
>>> renamed = SourceRecord(operator="scan_o", table="orders (filesystem)", lineage="5c2f")
>>> continued_sources((orders,), (renamed,)).origins
{'scan_o': 'scan_orders'}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

Order = tuple[tuple[str, int], ...]
"""The sources of a query as they stand in its offsets: the operator, and the number by which Spark keeps its files.

A source that several operators read stands there as often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """What a query reads at ``operator``: a ``table`` with its connector, in so many ``places`` of what Spark computes.

    ``lineage`` is a digest of what is read of it.
    """

    operator: str
    table: str
    lineage: str
    places: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedSources:
    """``origins`` has the operator that each one goes on for, by its id; those of ``unclear`` may be one or another."""

    origins: Mapping[str, str] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()


def continued_sources(old: Sequence[SourceRecord], new: Sequence[SourceRecord]) -> ContinuedSources:
    """What goes on with the place that each of ``old`` has reached.

    Of the same meaning if there is one of it, else of the same table; its own if there are several.
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
            same = [each for each in left if key(each) == key(source)]
            if len(same) == 1 and sum(key(each) == key(source) for each in wanted) == 1:
                go_on(source, same[0])
    unclear = {source.table for source in wanted} & {source.table for source in left}
    return ContinuedSources(origins=origins, unclear=tuple(sorted(unclear)))


def order_under(order: Order, origins: Mapping[str, str]) -> tuple[tuple[str | None, int], ...]:
    """An order with each operator called as the one that it goes on for, None if it begins."""
    return tuple((origins.get(operator), number) for operator, number in order)


def _are_same_operators(old: Sequence[SourceRecord], new: Sequence[SourceRecord], table: str) -> bool:
    """Whether a table is read by operators of the same ids before and after."""
    before, after = ({each.operator for each in sources if each.table == table} for sources in (old, new))
    return before == after
