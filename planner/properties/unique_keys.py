"""Finds the unique keys of a query's result, by which a sink can upsert.

They follow from declared primary keys (trusted, as in Flink), group keys and joins. A set of keys is a set of sets of
field ids. Any superset of a key is unique, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from hintplan.planner.expressions.typed import Expr, FieldRef, Literal
from hintplan.planner.properties.windows import grouped_window, joined_windows, ranked_window
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalRowNumber,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
    inputs_of,
)
from hintplan.plans.declarations.tables import Table

Keys = frozenset[frozenset[int]]
_NONE: Keys = frozenset()


def unique_keys(relation: Relation, tables: Mapping[str, Table]) -> Keys:
    """Return the known unique keys of ``relation``. The empty key means at most one row."""
    match relation:
        case LogicalScan():
            return _of_scan(relation, tables)
        case LogicalValues():
            return _of_values(relation)
        case LogicalCalc():
            return _shown(unique_keys(relation.input, tables), relation.items)
        case LogicalJoin():
            return _of_join(relation, tables)
        case LogicalLookupJoin():
            return _of_lookup(relation, tables)
        case LogicalCorrelate():
            # A table function may return several rows for one input row.
            return _shown(unique_keys(relation.input, tables), relation.items) if relation.scalar else _NONE
        case LogicalAggregate():
            return frozenset({frozenset(f.id for f in relation.keys)})
        case LogicalWindowAggregate():
            keys = frozenset(f.id for f in relation.keys)
            return frozenset(keys | {f.id} for f in relation.of_window)
        case LogicalWindow() if relation.window.type in ("hop", "cumulate"):
            # A row occurs once in each of its windows.
            return frozenset(key | {relation.end.id} for key in unique_keys(relation.input, tables))
        case LogicalPassthrough():
            return relation.unique_keys or unique_keys(relation.input, tables)
        case LogicalUnnest() | LogicalExpand() | LogicalUnion():
            return _NONE
        case _:
            assert_never(relation)


def _of_scan(scan: LogicalScan, tables: Mapping[str, Table]) -> Keys:
    key = tables[scan.table].primary_key
    ids = {f.name: f.id for f in scan.fields}
    return frozenset({frozenset(ids[k] for k in key)}) if key and set(key) <= set(ids) else _NONE


def _of_values(values: LogicalValues) -> Keys:
    if len(values.rows) == 1:
        return frozenset({frozenset[int]()})
    if not values.rows:  # a placeholder for another relation
        return _NONE
    columns = zip(values.fields, zip(*values.rows, strict=True), strict=True)
    return frozenset(frozenset({field.id}) for field, column in columns if _all_different(column))


def _all_different(values: tuple[Expr, ...]) -> bool:
    """Return True if the values certainly differ: they are distinct literals of integers or of texts."""
    texts = {v.text for v in values if isinstance(v, Literal) and (v.type.is_integer or v.type.is_text)}
    return len(texts - {None}) == len(values) and len({v.type.is_text for v in values}) == 1


def _of_join(join: LogicalJoin, tables: Mapping[str, Table]) -> Keys:
    left = unique_keys(join.left, tables)
    if join.join_type in ("semi", "anti"):
        return left
    if join.as_of is not None:  # a row meets at most one version
        return _shown(left, join.items)
    right = unique_keys(join.right, tables)
    left_columns, right_columns = {f.id for f, _ in join.keys}, {f.id for _, f in join.keys}
    if join.windows is not None:
        left_columns |= {f.id for f in (join.windows[0].start, join.windows[0].end)}
        right_columns |= {f.id for f in (join.windows[1].start, join.windows[1].end)}
    # A row meets at most one row of the other side if the join's columns contain a key of that side.
    one_right = any(key <= right_columns for key in right)
    one_left = any(key <= left_columns for key in left)
    keys = {a | b for a in left for b in right}
    if one_right and join.join_type in ("inner", "left"):
        keys |= left
    if one_left and join.join_type in ("inner", "right"):
        keys |= right
    return _shown(keys, join.items)


def _of_lookup(lookup: LogicalLookupJoin, tables: Mapping[str, Table]) -> Keys:
    left = unique_keys(lookup.input, tables)
    primary = tables[lookup.table].primary_key
    if not primary:
        return _NONE
    if set(primary) <= {key.column.name for key in lookup.keys}:
        return _shown(left, lookup.items)
    # If the primary key is not fetched, the output lacks it, and so has no keys.
    ids = {f.name: f.id for f in lookup.fetched}
    right = frozenset(ids.get(name, -1) for name in primary)
    return _shown({key | right for key in left}, lookup.items)


def _shown(keys: Iterable[frozenset[int]], items: tuple[Item, ...]) -> Keys:
    """Return the keys that ``items`` pass through, under their output fields."""
    shown: dict[int, int] = {}
    for item in items:
        if isinstance(item.expr, FieldRef):
            shown.setdefault(item.expr.field.id, item.field.id)
    return frozenset(frozenset(shown[i] for i in key) for key in keys if key <= set(shown))


def is_insert_only(relation: Relation) -> bool:
    """Return True if the relation is append-only."""
    match relation:
        case LogicalScan():
            itself = not relation.changelog
        case LogicalValues():
            itself = True
        case LogicalJoin() if relation.as_of is not None:
            return is_insert_only(relation.left)
        case LogicalJoin():
            by_time = relation.interval is not None or relation.is_bounded or joined_windows(relation) is not None
            itself = by_time or relation.join_type in ("inner", "semi")
        case LogicalAggregate():
            if (window := grouped_window(relation)) is not None:
                return not window.updates
            itself = not relation.calls
        case LogicalWindowAggregate():
            return relation.fire is None or not relation.fire.updates
        case LogicalRowNumber():
            itself = not relation.takes_back or ranked_window(relation) is not None
        case LogicalPassthrough():
            itself = not relation.takes_back
        case (
            LogicalCalc()
            | LogicalLookupJoin()
            | LogicalCorrelate()
            | LogicalUnnest()
            | LogicalExpand()
            | LogicalUnion()
        ):
            itself = True
        case _:
            assert_never(relation)
    return itself and all(map(is_insert_only, inputs_of(relation)))
