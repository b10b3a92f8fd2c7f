"""Operators that make several rows from one, computed by Spark: expand and unnest.

Expand repeats a row for each grouping set; unnest for each element of an ARRAY, MAP or MULTISET.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.operators import Expand, Unnest, element_columns
from hintplan.plans.operators.contract.columns import parse, types_of
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark

_ELEMENT, _PLACE = "__element", "__place"


def _expand(operator: Expand, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    types = {column.name: column.type for column in edges.columns[operator.id]}
    digits = {key: 1 << place for place, key in enumerate(reversed(operator.keys))}

    def copy(kept: tuple[str, ...]) -> SparkColumn:
        """Return the keys and the id of one grouping set."""
        keys = [
            (F.col(quoted(key)) if key in kept else F.lit(None).cast(to_spark(types[key]))).alias(key)
            for key in operator.keys
        ]
        group_id = sum(digit for key, digit in digits.items() if key not in kept)
        return F.struct(*keys, F.lit(group_id).cast("bigint").alias(operator.group_id))

    other_columns = [quoted(name) for name in edges.names(operator.inputs[0]) if name not in operator.keys]
    metadata = edges.spark_metadata(operator.id).names
    copies = frame.select(*other_columns, *metadata, F.inline(F.array(*map(copy, operator.sets))))
    return copies.select(*map(quoted, edges.names(operator.id)), *metadata)


def _unnest(operator: Unnest, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return a row per element; NULL elements of an ARRAY of ROW are ignored, as in Flink.

    On an edge with marks, a row without elements stays for its mark.
    """
    (frame,) = inputs
    marks = operator.id in edges.marks
    collection = parse(types_of(edges.columns[operator.inputs[0]])[operator.column])
    column = F.col(quoted(operator.column))
    of_rows = collection.root == "MAP" or collection.children[0].root == "ROW"
    elements = {"MAP": F.map_entries, "MULTISET": _each}.get(collection.root)
    array, outer = column if elements is None else elements(column), marks or operator.join_type == "left"
    if of_rows:
        numbered = F.transform(
            array, lambda element, place: F.struct(element.alias(_ELEMENT), (place + 1).alias(_PLACE))
        )
        there = F.filter(numbered, lambda entry: entry.getField(_ELEMENT).isNotNull())
        rows = frame.select("*", (F.inline_outer if outer else F.inline)(there))
    else:
        # Spark's transform fails for an array from Parquet that has only NULLs.
        at = (F.posexplode_outer if outer else F.posexplode)(array).alias(_PLACE, _ELEMENT)
        rows = frame.select("*", at).withColumn(_PLACE, F.col(_PLACE) + 1)
    *fields, place = element_columns(collection)
    if marks and operator.join_type != "left":
        rows = rows.withColumn(KEEP, F.col(KEEP) & F.col(_PLACE).isNotNull())
    sides = {("left", name): F.col(quoted(name)) for name in edges.names(operator.inputs[0])}
    sides |= {
        ("right", field.name): F.col(_ELEMENT).getField(field.name) if of_rows else F.col(_ELEMENT) for field in fields
    }
    sides["right", place.name] = F.col(_PLACE)
    selected = (sides[item.side, item.column].alias(item.name) for item in operator.output)
    return rows.select(*selected, *edges.spark_metadata(operator.id).names)


def _each(multiset: SparkColumn) -> SparkColumn:
    """Return the elements of a MULTISET, each as often as it occurs."""

    def repeated(entry: SparkColumn) -> SparkColumn:
        return F.array_repeat(entry.getField("key"), F.coalesce(entry.getField("value"), F.lit(0)))

    return F.flatten(F.transform(F.map_entries(multiset), repeated))


BUILDER = OperatorBuilder(stream=from_frames(_expand), batch=_expand)
UNNEST_BUILDER = OperatorBuilder(stream=from_frames(_unnest), batch=_unnest)
