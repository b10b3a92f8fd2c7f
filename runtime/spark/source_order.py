"""In which order Spark numbers the sources of a stream, and which of them it takes for one.

A stream's offsets have a line for each place where a source stands in the analysed query, from the top down, inputs
from left to right; equal ones are one source, whose files have the number of its first place. So it is for a
``MicroBatchExecution`` of Spark 4.0 to 4.3. A source is known by the operator that it was marked with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from hintplan.plans.compare.sources import Order

_MARK = "hintplan source "


def marked(frame: DataFrame, operator: str) -> DataFrame:
    """``frame``, which reads a source, marked with the ``operator`` it is read for."""
    return frame.alias(f"{_MARK}{operator}")


def source_order(frame: Any) -> Order:
    """The sources of a streaming ``frame`` of classic Spark, all of them marked."""
    found: list[Any] = []
    order = []
    for operator, relation in _sources(frame._jdf.queryExecution().analyzed(), ""):
        number = next((number for number, other in enumerate(found) if relation.equals(other)), len(found))
        if number == len(found):
            found.append(relation)
        order.append((operator, number))
    return tuple(order)


def _sources(node: Any, operator: str) -> Iterator[tuple[str, Any]]:
    """The relations at and below ``node`` that are streams, with the operator of the mark above each."""
    children = node.children()
    count = children.size()
    if count == 0:
        if node.isStreaming():
            assert operator, f"a source without a mark: {node.toString()}"
            yield operator, node
        return
    if count == 1 and node.nodeName() == "SubqueryAlias" and str(node.alias()).startswith(_MARK):
        operator = str(node.alias()).removeprefix(_MARK)
    for index in range(count):
        yield from _sources(children.apply(index), operator)
