"""A small plan for tests of running: orders joined with customers, counted and summed by country, from files to files.

orders ──┐
         ├─ union ── calc ──┐
late ────┘                  ├─ join (l.amount > r.minimum) ── aggregate ── sink
customers ──────────────────┘
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from hintplan.plans.declarations.tables import Column, Table, TableColumn
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Aggregate,
    AggregateCall,
    Calc,
    Join,
    JoinColumn,
    JoinKey,
    Operator,
    Scan,
    SelectItem,
    Sink,
    Union,
)
from hintplan.plans.settings.state import StateEntry, ttl_settings

__all__ = ["add_rows", "changes", "expected", "fold", "revenue_plan", "sample"]

ORDERS = {"id": "BIGINT", "customer": "BIGINT", "amount": "DOUBLE"}
CUSTOMERS = {"customer": "BIGINT", "country": "STRING", "minimum": "DOUBLE"}
RESULT = {"country": "STRING", "orders": "BIGINT", "revenue": "DOUBLE"}


def revenue_plan(directory: Path, *, sink: dict[str, str] | None = None, ttl: str = "0 ms", **config: str) -> Plan:
    """The plan over files below ``directory``; ``sink`` replaces the options of the sink table."""

    def files(name: str, columns: dict[str, str]) -> Table:
        (directory / name).mkdir(parents=True, exist_ok=True)
        options = {"connector": "filesystem", "path": str(directory / name), "format": "json"}
        return _table(columns, {**options, "source.max-files-per-trigger": "1"})

    result = sink or {
        "connector": "filesystem", "path": str(directory / "result"), "format": "json", "sink.changelog": "true"
    }  # fmt: skip
    return Plan(
        name="revenue",
        config={"parallelism.default": "2", **config},
        tables={
            "customers": files("customers", CUSTOMERS),
            "late": files("late", ORDERS),
            "orders": files("orders", ORDERS),
            "result": _table(RESULT, result),
        },
        operators=_operators(ttl),
    )


def _operators(ttl: str) -> tuple[Operator, ...]:
    state = tuple(
        StateEntry(index=index, name=name, input=source, settings=ttl_settings(edit=ttl))
        for index, (name, source) in enumerate((("leftState", "o"), ("rightState", "c")))
    )
    grouped = StateEntry(index=0, name="groupAggregateState", input="t", settings=ttl_settings(edit=ttl))
    return (
        Scan(id="scan_orders", table="orders", columns=tuple(ORDERS)),
        Scan(id="scan_late", table="late", columns=tuple(ORDERS)),
        Scan(id="scan_customers", table="customers", columns=tuple(CUSTOMERS)),
        Union(id="union_o", inputs=("scan_orders", "scan_late")),
        Calc(
            id="calc_o",
            inputs=("union_o",),
            filter="id % 10 <> 3",
            select=(SelectItem(name="customer"), SelectItem(name="amount", expression="amount * 2", type="DOUBLE")),
        ),
        Join(
            id="join_o_c",
            inputs=("calc_o", "scan_customers"),
            join_type="inner",
            keys=(JoinKey(left="customer", right="customer"),),
            condition="l.amount > r.minimum",
            state=state,
            output=(
                JoinColumn(name="country", type="STRING", side="right", column="country"),
                JoinColumn(name="amount", type="DOUBLE", side="left", column="amount"),
            ),
            changelog=("+I",),
        ),
        Aggregate(
            id="aggregate_t",
            inputs=("join_o_c",),
            keys=("country",),
            aggregates=(
                AggregateCall(name="orders", function="COUNT", type="BIGINT"),
                AggregateCall(name="revenue", function="SUM", argument="amount", type="DOUBLE"),
            ),
            state=(grouped,),
            changelog=("+I", "-U", "+U"),
        ),
        Sink(id="sink_result", inputs=("aggregate_t",), table="result"),
    )


def _table(columns: dict[str, str], options: dict[str, str]) -> Table:
    named = tuple(Column(name=name, type=text) for name, text in columns.items())
    return Table(columns=tuple(TableColumn(name=c.name, type=c.type) for c in named), options=options)


def sample(first: int, count: int) -> list[dict[str, Any]]:
    """Orders of customers 0 to 4, of whom customers 0 to 3 exist."""
    return [{"id": i, "customer": i % 5, "amount": i % 17 + 0.5} for i in range(first, first + count)]


CUSTOMER_ROWS = [
    {"customer": 0, "country": "DE", "minimum": 0.0},
    {"customer": 1, "country": "DE", "minimum": 9.0},
    {"customer": 2, "country": "FR", "minimum": 3.0},
    {"customer": 3, "country": None, "minimum": 1.0},
]


def add_rows(directory: Path, table: str, rows: list[dict[str, Any]]) -> None:
    """One more file for a table; it appears whole, and newer than those before it."""
    target = directory / table
    target.mkdir(parents=True, exist_ok=True)
    draft = directory / "draft.json"
    draft.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    latest = max((path.stat().st_mtime_ns for path in target.glob("*.json")), default=0)
    modified = max(draft.stat().st_mtime_ns, latest + 1_000_000)  # Spark orders files by milliseconds.
    os.utime(draft, ns=(modified, modified))
    draft.rename(target / f"{len(list(target.glob('*.json'))):05}.json")


def changes(directory: Path) -> list[dict[str, Any]]:
    """What Spark's file sink has committed below ``directory``/result, in any order."""
    log = directory / "result" / "_spark_metadata"
    batches = [path for path in log.glob("*") if not path.name.startswith(".")] if log.exists() else []
    committed = {
        Path(json.loads(line)["path"].removeprefix("file://")).name
        for batch in batches
        for line in batch.read_text(encoding="utf-8").splitlines()[1:]
    }
    return [
        json.loads(line)
        for name in committed
        for line in (directory / "result" / name).read_text(encoding="utf-8").splitlines()
    ]


def fold(found: list[dict[str, Any]]) -> dict[str | None, tuple[int, float]]:
    """The table that a changelog describes, by country."""
    weights: Counter[tuple[Any, ...]] = Counter()
    for change in found:
        weights[change["country"], change["orders"], change["revenue"]] += 1 if change["op"] in ("+I", "+U") else -1
    rows = [row for row, weight in weights.items() for _ in range(weight)]
    assert all(weight in (0, 1) for weight in weights.values()), weights
    return {country: (count, revenue) for country, count, revenue in rows}


def expected(orders: list[dict[str, Any]]) -> dict[str | None, tuple[int, float]]:
    """What the query means, row by row."""
    customers = {row["customer"]: row for row in CUSTOMER_ROWS}
    result: dict[str | None, tuple[int, float]] = {}
    for order in orders:
        customer = customers.get(order["customer"])
        if order["id"] % 10 == 3 or customer is None or not order["amount"] * 2 > customer["minimum"]:
            continue
        count, revenue = result.get(customer["country"], (0, 0.0))
        result[customer["country"]] = (count + 1, revenue + order["amount"] * 2)
    return result
