"""The order in which Spark numbers the sources of a stream, and the sources that Spark merges.

A stream's offsets have a line for each position of a source in the analysed query, from the top down, inputs from left
to right. Equal relations are one source, whose files have the number of its first position. This holds for
``MicroBatchExecution`` in Spark 4.0 to 4.3. A mark on each source contains its operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hintplan.plans.compare.sources import Order

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_MARK = "hintplan source "


def mark_source(frame: DataFrame, operator: str) -> DataFrame:
    """Mark ``frame``, which reads a source, with its ``operator``."""
    return frame.alias(f"{_MARK}{operator}")


def source_order(frame: DataFrame) -> Order:
    """Return the sources of a streaming ``frame`` of classic Spark, all of which are marked."""
    distinct: list[JavaObject] = []
    order = []
    for operator, relation in _sources(frame._jdf.queryExecution().analyzed(), ""):
        number = next((number for number, other in enumerate(distinct) if relation.equals(other)), len(distinct))
        if number == len(distinct):
            distinct.append(relation)
        order.append((operator, number))
    return tuple(order)


def _sources(node: JavaObject, operator: str) -> Iterator[tuple[str, JavaObject]]:
    """Yield the streaming relations at and below ``node``, with the operator of the mark above each."""
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
