"""Turns a plan into plain JSON values in canonical key order, and back.

``from_document`` takes values that :mod:`plans.format.schema` has found to be well formed, and normalises durations.
Knows no text and no digests.

>>> operator_document(Scan(id="scan_o", table="o", columns=("a",)))
{'id': 'scan_o', 'op': 'scan', 'table': 'o', 'columns': ['a']}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, assert_never

from plans.connectors.table import in_order
from plans.declarations.durations import format_duration, parse_duration
from plans.declarations.tables import Table, TableColumn, Watermark
from plans.model.plan import Plan
from plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    ChangelogNormalize,
    Correlate,
    Expand,
    Join,
    JoinKey,
    LookupJoin,
    Operator,
    Scan,
    SelectItem,
    Sink,
    SinkMaterialize,
    Sort,
    SortKey,
    Union,
)
from plans.operators.call_document import correlate_document, function_document, read_correlate, read_function
from plans.operators.lookup_document import lookup_document, output_document, read_lookup_join, read_output
from plans.settings.cached import cached_document, cached_of, read_cached
from plans.settings.config import normalise
from plans.settings.groups import StateEntry
from plans.settings.layers import group_document
from plans.settings.phases import PHASES, phase_groups, read_phases

__all__ = ["LAYERS", "OPS", "from_document", "op_name", "operator_document", "table_document", "to_document"]

Json = dict[str, Any]

LAYERS = ("default", "config", "hint")
"""Who may set a setting, weakest first; a value that differs from the last that spoke is a plan edit."""

OPS: Mapping[str, type[Operator]] = {
    "scan": Scan,
    "calc": Calc,
    "join": Join,
    "lookup-join": LookupJoin,
    "correlate": Correlate,
    "expand": Expand,
    "aggregate": Aggregate,
    "changelog-normalize": ChangelogNormalize,
    "union": Union,
    "sort": Sort,
    "sink-materialize": SinkMaterialize,
    "sink": Sink,
}
_OP_NAMES = {cls: name for name, cls in OPS.items()}


def op_name(operator: Operator) -> str:
    """The value of ``op`` for this operator."""
    return _OP_NAMES[type(operator)]


def to_document(plan: Plan) -> Json:
    """The whole plan without its digests; maps are sorted, table options start with ``connector``."""
    source = {"source": plan.source} if plan.source is not None else {}
    reasons = {"reasons": {path: plan.reasons[path] for path in sorted(plan.reasons)}} if plan.reasons else {}
    return {
        "format": plan.format,
        "name": plan.name,
        **source,
        "mode": plan.mode,
        "config": {key: plan.config[key] for key in sorted(plan.config)},
        "tables": {name: table_document(plan.tables[name]) for name in sorted(plan.tables)},
        "functions": {name: function_document(plan.functions[name]) for name in sorted(plan.functions)},
        "operators": [operator_document(operator) for operator in plan.operators],
        **reasons,
    }


def table_document(table: Table) -> Json:
    """One table; absent optional keys are left out."""
    document: Json = {"columns": [_table_column(column) for column in table.columns]}
    if table.primary_key:
        document["primary-key"] = list(table.primary_key)
    if table.watermark:
        document["watermark"] = {"column": table.watermark.column, "expression": table.watermark.expression}
    if table.comment is not None:
        document["comment"] = table.comment
    document["options"] = in_order(table.options)
    return document


def operator_document(operator: Operator) -> Json:
    """One operator, starting with ``id`` and ``op``."""
    document: Json = {"id": operator.id, "op": op_name(operator)}
    if operator.inputs:
        document["inputs"] = list(operator.inputs)
    match operator:
        case Scan():
            document |= {"table": operator.table, "columns": list(operator.columns)}
        case Calc():
            if operator.filter is not None:
                document["filter"] = operator.filter
            document["select"] = [_select_item(item) for item in operator.select]
        case Join():
            document |= {
                "join-type": operator.join_type,
                "keys": [{"left": key.left, "right": key.right} for key in operator.keys],
                "condition": operator.condition,
                "output": output_document(operator.output),
                "changelog": list(operator.changelog),
                "state": [_state_entry(entry) for entry in operator.state],
            }
        case LookupJoin():
            document |= lookup_document(operator)
        case Correlate():
            document |= correlate_document(operator)
        case Expand():
            document |= {
                "keys": list(operator.keys),
                "sets": [list(each) for each in operator.sets],
                "group-id": operator.group_id,
            }
        case Aggregate():
            document |= {
                "keys": list(operator.keys),
                "aggregates": [_aggregate_call(call) for call in operator.aggregates],
                "changelog": list(operator.changelog),
                "state": [_state_entry(entry) for entry in operator.state],
            }
            document |= {group: group_document(settings) for group, settings in phase_groups(operator).items()}
        case ChangelogNormalize() | SinkMaterialize():
            document |= {
                "key": list(operator.key),
                "changelog": list(operator.changelog),
                "state": [_state_entry(entry) for entry in operator.state],
            }
        case Sort():
            order = [{"column": key.column, "direction": key.direction, "nulls": key.nulls} for key in operator.order]
            document |= {"order": order, "offset": operator.offset, "limit": operator.limit}
        case Sink():
            document["table"] = operator.table
        case Union():
            pass  # its inputs say it all
        case _:
            assert_never(operator)
    cached = cached_of(operator)
    if cached is not None:
        document["cached"] = cached_document(cached)
    return document


def from_document(document: Json) -> Plan:
    """Build the plan from well-formed JSON values."""
    return Plan(
        format=document["format"],
        name=document["name"],
        source=document.get("source"),
        mode=document["mode"],
        config={key: _config_value(key, value) for key, value in document["config"].items()},
        tables={name: _read_table(table) for name, table in document["tables"].items()},
        functions={name: read_function(function) for name, function in document["functions"].items()},
        operators=tuple(_read_operator(operator) for operator in document["operators"]),
        reasons=dict(document.get("reasons", {})),
        compiled=dict(document.get("digests", {}).get("settings", {})),
    )


def _read_operator(document: Json) -> Operator:
    operator = _READERS[document["op"]](document)
    # Every kind but sinks has it, so the readers leave it out.
    return operator if isinstance(operator, Sink) else replace(operator, cached=read_cached(document.get("cached")))


def _config_value(key: str, value: str) -> str:
    try:
        return normalise(key, value)
    except ValueError:
        return value  # unknown or wrong: validation says where, and what would be right


def _table_column(column: TableColumn) -> Json:
    document = {"name": column.name, "type": column.type}
    if column.expression is not None:
        document["expression"] = column.expression
    if column.comment is not None:
        document["comment"] = column.comment
    return document


def _select_item(item: SelectItem) -> Any:
    if item.expression is None:
        return item.name
    return {"name": item.name, "type": item.type, "expression": item.expression}


def _aggregate_call(call: AggregateCall) -> Json:
    document: Json = {"name": call.name, "function": call.function}
    if call.argument is not None:
        document["argument"] = call.argument
    if call.distinct:
        document["distinct"] = True
    if call.filter is not None:
        document["filter"] = call.filter
    if call.separator is not None:
        document["separator"] = call.separator
    document["type"] = call.type
    return document


def _state_entry(entry: StateEntry) -> Json:
    return {
        "index": entry.index,
        "name": entry.name,
        "input": entry.input,
        "ttl": entry.ttl,
        "origin": {layer: entry.origin[layer] for layer in LAYERS if layer in entry.origin},
    }


def _read_table(document: Json) -> Table:
    watermark = document.get("watermark")
    return Table(
        columns=tuple(TableColumn(**column) for column in document["columns"]),
        primary_key=tuple(document.get("primary-key", ())),
        watermark=Watermark(**watermark) if watermark else None,
        comment=document.get("comment"),
        options=dict(document["options"]),
    )


def _read_scan(document: Json) -> Scan:
    return Scan(id=document["id"], table=document["table"], columns=tuple(document["columns"]))


def _read_calc(document: Json) -> Calc:
    return Calc(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        filter=document.get("filter"),
        select=tuple(SelectItem(name=i) if isinstance(i, str) else SelectItem(**i) for i in document["select"]),
    )


def _read_join(document: Json) -> Join:
    return Join(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        join_type=document["join-type"],
        keys=tuple(JoinKey(**key) for key in document["keys"]),
        condition=document["condition"],
        state=_read_state(document),
        output=read_output(document["output"]),
        changelog=tuple(document["changelog"]),
    )


def _read_expand(document: Json) -> Expand:
    return Expand(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        keys=tuple(document["keys"]),
        sets=tuple(tuple(each) for each in document["sets"]),
        group_id=document["group-id"],
    )


def _read_aggregate(document: Json) -> Aggregate:
    return Aggregate(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        keys=tuple(document["keys"]),
        aggregates=tuple(AggregateCall(**call) for call in document["aggregates"]),
        state=_read_state(document),
        changelog=tuple(document["changelog"]),
        phases=read_phases(document.get(PHASES)),
    )


def _read_state(document: Json) -> tuple[StateEntry, ...]:
    return tuple(
        StateEntry(
            index=entry["index"],
            name=entry["name"],
            input=entry["input"],
            ttl=_duration(entry["ttl"]),
            origin={layer: _duration(entry["origin"][layer]) for layer in LAYERS if layer in entry["origin"]},
        )
        for entry in document["state"]
    )


@lru_cache(maxsize=4096)
def _duration(text: str) -> str:
    return format_duration(parse_duration(text, require_unit=True))


def _read_changelog_normalize(document: Json) -> ChangelogNormalize:
    return ChangelogNormalize(**_keyed(document))


def _read_sink_materialize(document: Json) -> SinkMaterialize:
    return SinkMaterialize(**_keyed(document))


def _keyed(document: Json) -> dict[str, Any]:
    return {
        "id": document["id"],
        "inputs": tuple(document["inputs"]),
        "key": tuple(document["key"]),
        "state": _read_state(document),
        "changelog": tuple(document["changelog"]),
    }


def _read_union(document: Json) -> Union:
    return Union(id=document["id"], inputs=tuple(document["inputs"]))


def _read_sort(document: Json) -> Sort:
    return Sort(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        order=tuple(SortKey(**key) for key in document["order"]),
        offset=document["offset"],
        limit=document["limit"],
    )


def _read_sink(document: Json) -> Sink:
    return Sink(id=document["id"], inputs=tuple(document["inputs"]), table=document["table"])


_READERS: Mapping[str, Callable[[Json], Operator]] = {
    "scan": _read_scan,
    "calc": _read_calc,
    "join": _read_join,
    "lookup-join": read_lookup_join,
    "correlate": read_correlate,
    "expand": _read_expand,
    "aggregate": _read_aggregate,
    "changelog-normalize": _read_changelog_normalize,
    "union": _read_union,
    "sort": _read_sort,
    "sink-materialize": _read_sink_materialize,
    "sink": _read_sink,
}
