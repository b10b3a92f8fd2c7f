"""Runs a plan in SQLite, one SQL statement per operator: a reference that knows nothing of the planner.

Row kinds and TTLs do not matter here: over a finished input, a plan must give the rows that the query gives.
"""

from __future__ import annotations

import json
import sqlite3

import sqlglot

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.declarations.tables import Column
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    Correlate,
    Expand,
    Join,
    LookupJoin,
    Operator,
    OverAggregate,
    OverCall,
    Rank,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
)

__all__ = ["database", "run_plan"]


def database(tables: dict[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]) -> sqlite3.Connection:
    """A database with the given tables: columns, then rows."""
    found = sqlite3.connect(":memory:")
    found.execute("PRAGMA case_sensitive_like = ON")
    found.create_function("ARRAY_REPEAT", 2, lambda value, count: json.dumps([value] * count))
    for name, (columns, rows) in tables.items():
        found.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        found.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    return found


def run_plan(connection: sqlite3.Connection, plan: Plan) -> dict[str, list[tuple[object, ...]]]:
    """The rows that each sink of the plan gets, by the sink's id."""
    for operator in plan.operators:
        if not isinstance(operator, Sink):
            connection.execute(f"CREATE TEMP TABLE {operator.id} AS {_query(operator, plan)}")
    sinks = (o for o in plan.operators if isinstance(o, Sink))
    return {o.id: connection.execute(f"SELECT * FROM {o.inputs[0]}").fetchall() for o in sinks}


def _query(operator: Operator, plan: Plan) -> str:
    if isinstance(operator, Correlate):
        return _correlate(operator, plan)
    if isinstance(operator, Expand):
        columns = output_columns(plan)[operator.inputs[0]]
        return " UNION ALL ".join(_copy(operator, kept, columns) for kept in operator.sets)
    return _sql(operator)


def _expression(text: str) -> str:
    return sqlglot.transpile(text, read="spark", write="sqlite")[0]


def _sql(operator: Operator) -> str:
    if isinstance(operator, Scan):
        return f"SELECT {', '.join(operator.columns)} FROM {operator.table}"
    if isinstance(operator, Values):
        names = [f'"{column.name}"' for column in operator.columns]
        rows = (
            [f"{_expression(text)} AS {name}" for text, name in zip(row, names, strict=True)] for row in operator.rows
        )
        return " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in rows)
    if isinstance(operator, Calc):
        items = (f'{_expression(i.expression or f"`{i.name}`")} AS "{i.name}"' for i in operator.select)
        where = f" WHERE {_expression(operator.filter)}" if operator.filter is not None else ""
        return f"SELECT {', '.join(items)} FROM {operator.inputs[0]}{where}"
    if isinstance(operator, Join):
        return _join(operator)
    if isinstance(operator, LookupJoin):
        return _lookup(operator)
    if isinstance(operator, Unnest):
        items = ", ".join(f'{"l" if c.side == "left" else "r"}."{c.column}" AS "{c.name}"' for c in operator.output)
        return (
            f'SELECT {items} FROM {operator.inputs[0]} l {operator.join_type} JOIN json_each(l."{operator.column}") r'
        )
    if isinstance(operator, Aggregate):
        keys = tuple(f'"{key}"' for key in operator.keys)
        columns = ", ".join((*keys, *map(_call, operator.aggregates)))
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {columns} FROM {operator.inputs[0]}{by}"
    if isinstance(operator, OverAggregate):
        calls = ", ".join(f'{_over_call(call)} OVER ({_window(operator)}) AS "{call.name}"' for call in operator.calls)
        return f"SELECT *, {calls} FROM {operator.inputs[0]}"
    if isinstance(operator, Rank):
        number = operator.number or "the_number"
        numbered = f'SELECT *, ROW_NUMBER() OVER ({_window(operator)}) AS "{number}" FROM {operator.inputs[0]}'
        end = operator.rank_end if isinstance(operator.rank_end, int) else f'"{operator.rank_end}"'
        return f'SELECT * FROM ({numbered}) WHERE "{number}" BETWEEN {operator.rank_start} AND {end}'
    if isinstance(operator, Sort):
        keys = ", ".join(f"{k.column} {k.direction} NULLS {k.nulls}" for k in operator.order)
        limit = -1 if operator.limit is None else operator.limit
        by = f" ORDER BY {keys}" if keys else ""
        return f"SELECT * FROM {operator.inputs[0]}{by} LIMIT {limit} OFFSET {operator.offset}"
    assert isinstance(operator, Union)
    return " UNION ALL ".join(f"SELECT * FROM {i}" for i in operator.inputs)


def _copy(expand: Expand, kept: tuple[str, ...], columns: tuple[Column, ...]) -> str:
    """The rows of one set."""
    missing = [key for key in expand.keys if key not in kept]
    group_id = int("".join("1" if key in missing else "0" for key in expand.keys), 2)
    items = (f'{"NULL AS " if column.name in missing else ""}"{column.name}"' for column in columns)
    return f'SELECT {", ".join(items)}, {group_id} AS "{expand.group_id}" FROM {expand.inputs[0]}'


def _join(join: Join) -> str:
    left, right = join.inputs
    on = " AND ".join(f"l.{k.left} = r.{k.right}" for k in join.keys)
    if join.condition is not None:
        on += f" AND ({_expression(join.condition)})"
    items = ", ".join(f"{c.side[0]}.{c.column} AS {c.name}" for c in join.output)
    if join.join_type in ("semi", "anti"):
        word = "EXISTS" if join.join_type == "semi" else "NOT EXISTS"
        return f"SELECT {items} FROM {left} l WHERE {word} (SELECT 1 FROM {right} r WHERE {on})"
    return f"SELECT {items} FROM {left} l {join.join_type} JOIN {right} r ON {on}"


def _lookup(lookup: LookupJoin) -> str:
    """Each part at its place: ``asks`` before the lookup, ``filter`` on what was fetched, ``condition`` on pairs."""
    asks = _expression(lookup.pre_filter) if lookup.pre_filter is not None else "TRUE"
    kept = f" WHERE {_expression(lookup.filter)}" if lookup.filter is not None else ""
    on = " AND ".join(
        f"r.{k.column} = {f'l.{k.left}' if k.left is not None else _expression(k.constant or '')}" for k in lookup.keys
    )
    if lookup.condition is not None:
        on += f" AND ({_expression(lookup.condition)})"
    items = ", ".join(f"{c.side[0]}.{c.column} AS {c.name}" for c in lookup.output)
    left = f"(SELECT *, {asks} AS asks FROM {lookup.inputs[0]}) l"
    right = f"(SELECT {', '.join(lookup.columns)} FROM {lookup.table}{kept}) r"
    return f"SELECT {items} FROM {left} {lookup.join_type} JOIN {right} ON l.asks AND {on}"


def _correlate(call: Correlate, plan: Plan) -> str:
    """A scalar function is one of the connection; a table function one that returns a JSON list of values."""
    given = (f"l.{a.column}" if a.column is not None else _expression(a.constant or "") for a in call.arguments)
    result = f"{call.function}({', '.join(given)})"
    if plan.functions[call.function].kind in ("scalar", "async-scalar"):
        items = (f"{f'l.{c.column}' if c.side == 'left' else result} AS {c.name}" for c in call.output)
        return f"SELECT {', '.join(items)} FROM {call.inputs[0]} l"
    items = (f"{c.side[0]}.{c.column} AS {c.name}" for c in call.output)
    return f"SELECT {', '.join(items)} FROM {call.inputs[0]} l {call.join_type} JOIN json_each({result}) r"


def _call(call: AggregateCall) -> str:
    argument = f"{'DISTINCT ' if call.distinct else ''}{call.argument or '*'}"
    where = f" FILTER (WHERE {call.filter})" if call.filter else ""
    return f"{call.function}({argument}){where} AS {call.name}"


def _window(operator: OverAggregate | Rank) -> str:
    key = ", ".join(f'"{name}"' for name in operator.key)
    order = ", ".join(f'"{k.column}" {k.direction} NULLS {k.nulls}' for k in operator.order)
    frame = operator.frame if isinstance(operator, OverAggregate) else None
    rows = "" if frame is None else f"{frame.unit} BETWEEN {_bound(frame.start, -1)} AND {_bound(frame.end, 1)}"
    return " ".join((f"PARTITION BY {key}" if key else "", f"ORDER BY {order}" if order else "", rows))


def _bound(distance: int | None, side: int) -> str:
    where = "PRECEDING" if (distance or side) < 0 else "FOLLOWING"
    return f"UNBOUNDED {where}" if distance is None else f"{abs(distance)} {where}" if distance else "CURRENT ROW"


def _over_call(call: OverCall) -> str:
    given = [call.argument or ("*" if call.function == "COUNT" else None), call.count, call.default]
    return f"{call.function}({', '.join(str(each) for each in given if each is not None)})"
