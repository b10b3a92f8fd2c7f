"""What an operator does, in the words of SQL: the one description that trees, pictures and differences show.

>>> describe(Scan(id="scan_o", table="o", columns=("a",)), Plan(name="p"))
'unknown table · 1 of 0 columns'
"""

from __future__ import annotations

from typing import assert_never

from plans.connectors.table import is_upsert_sink
from plans.declarations.tables import Table
from plans.model.plan import Plan
from plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    ChangelogNormalize,
    Correlate,
    Expand,
    Join,
    LookupJoin,
    Operator,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    SortKey,
    Union,
)
from plans.settings.call_text import describe_call
from plans.settings.lookup_text import describe_lookup

__all__ = ["describe"]


def describe(operator: Operator, plan: Plan) -> str:
    """What the operator does, in the words of SQL."""
    match operator:
        case Scan():
            table = plan.tables.get(operator.table)
            total = len(table.columns) if table else 0
            return f"{_table(operator.id, operator.table, table)} · {len(operator.columns)} of {_columns(total)}"
        case Calc():
            parts = [f"WHERE {operator.filter}"] if operator.filter is not None else []
            parts += [f"{item.name} = {item.expression}" for item in operator.select if item.expression is not None]
            return " · ".join(parts) or f"SELECT {', '.join(item.name for item in operator.select)}"
        case Join():
            conditions = [f"{key.left} = {key.right}" for key in operator.keys]
            conditions += [operator.condition] if operator.condition is not None else []
            if not conditions and operator.join_type == "inner":
                return "CROSS JOIN"
            kind = "" if operator.join_type == "inner" else f"{operator.join_type.upper()} "
            return f"{kind}JOIN ON {' AND '.join(conditions) or 'TRUE'}"
        case LookupJoin():
            table = plan.tables.get(operator.table)
            return describe_lookup(operator, table.options.get("connector", "?") if table else "unknown table")
        case Correlate():
            function = plan.functions.get(operator.function)
            return describe_call(operator, function.kind if function else "table")
        case Expand():
            sets = (f"({', '.join(each)})" for each in operator.sets)
            return f"GROUPING SETS {', '.join(sets)}"
        case Aggregate():
            calls = ", ".join(_call(call) for call in operator.aggregates)
            keys = ", ".join(operator.keys)
            if not calls:
                return f"DISTINCT {keys}"
            return f"GROUP BY {keys}: {calls}" if keys else f"one group: {calls}"
        case ChangelogNormalize():
            return f"ROW OF EACH {', '.join(operator.key)}"
        case SinkMaterialize():
            return f"LATEST ROW OF EACH {', '.join(operator.key)}"
        case Union():
            return f"UNION ALL of {len(operator.inputs)} inputs"
        case Sort():
            parts = [f"ORDER BY {', '.join(map(_sort_key, operator.order))}"] if operator.order else []
            parts += [f"OFFSET {operator.offset}"] if operator.offset else []
            parts += [f"LIMIT {operator.limit}"] if operator.limit is not None else []
            return " · ".join(parts)
        case Sink():
            table = plan.tables.get(operator.table)
            text = _table(operator.id, operator.table, table)
            return text + (f" · upsert by {', '.join(table.primary_key)}" if table and is_upsert_sink(table) else "")
        case _:
            assert_never(operator)


def _sort_key(key: SortKey) -> str:
    return f"{key.column} {key.direction.upper()} NULLS {key.nulls.upper()}"


def _table(operator_id: str, name: str, table: Table | None) -> str:
    connector = table.options.get("connector", "?") if table else "unknown table"
    # The usual id already names the table.
    return connector if operator_id.partition("_")[2] == name.lower() else f"{name} · {connector}"


def _call(call: AggregateCall) -> str:
    argument = ("DISTINCT " if call.distinct else "") + (call.argument if call.argument is not None else "*")
    if call.separator is not None:
        argument += f", {call.separator!r}"
    return f"{call.function}({argument})" + (f" FILTER ({call.filter})" if call.filter is not None else "")


def _columns(number: int) -> str:
    return f"{number} column{'' if number == 1 else 's'}"
