"""The first test of a plan: one row for each source, and no expectations of its sinks yet.

``hintplan test FILE --update`` fills in what came. Equal columns have equal values, so that joins find partners.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hintplan.plans.declarations.tables import Column, read_columns
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Correlate, LookupJoin, Scan
from hintplan.plans.rehearsal.function_rows import function_columns
from hintplan.plans.rehearsal.updating import rows_text

_PLAIN = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "1"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "1.5"),
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR"), "a"),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), "0x01"),
    "BOOLEAN": "true",
    "DATE": "2026-03-01",
    "TIME": "10:00:00",
    "TIMESTAMP": "2026-03-01 10:00:00",
    "TIMESTAMP_LTZ": "2026-03-01 10:00:00",
}


def first_test_text(plan: Plan, plan_file: str) -> str:
    """Return the text of a first test for ``plan``, a streaming plan in ``plan_file``; PlanError for a batch plan."""
    if plan.mode != "streaming":
        raise PlanError("is a plan of batch mode, which has no time: tests are of streaming plans", file=plan_file)
    sources = dict.fromkeys(op.table for op in plan.operators if isinstance(op, Scan))
    lookups = dict.fromkeys(op.table for op in plan.operators if isinstance(op, LookupJoin))
    lines = [f"plan: {os.path.basename(plan_file)}", *_tables("lookups", lookups, plan, 0), *_functions(plan)]
    lines += ["tests:", "  a row of each source:", "    - at: 2026-03-01 10:00"]
    lines += [line.replace("  ", "      ", 1) for line in list(_tables("", sources, plan, 0))[1:]]
    lines.append("      expect:")
    lines += [f"        {sink.table}: []" for sink in plan.sinks]
    return "\n".join(lines) + "\n"


def _tables(title: str, names: dict[str, None], plan: Plan, indent: int) -> Iterator[str]:
    if names:
        yield f"{title}:"
    for name in names:
        yield f"  {name}: {_row(read_columns(plan.tables[name]), indent)}"


def _functions(plan: Plan) -> Iterator[str]:
    called = dict.fromkeys(op.function for op in plan.operators if isinstance(op, Correlate))
    if called:
        yield "functions:"
    for name in called:
        yield f"  {name}: {_row(function_columns(plan.functions[name]), 0)}"


def _row(columns: Sequence[Column], indent: int) -> str:
    names = [column.name for column in columns]
    return rows_text(names, [[sample_value(parse_type(column.type)) for column in columns]], indent=indent)


def sample_value(kind: DataType) -> object:
    """Return a value of type ``kind`` as a file of tests has it.

    >>> sample_value(parse_type("ROW<a INT, b ARRAY<STRING>>"))
    {'a': '1', 'b': ['a']}
    """
    parts = [sample_value(part) for part in kind.parts]
    match kind.root:
        case "ARRAY":
            return [parts[0]]
        case "MAP" | "MULTISET":
            return {str(parts[0]): parts[1]} if kind.children[0].is_text else [[parts[0], parts[1]]]
        case "ROW":
            return dict(zip(kind.names, parts, strict=True))
        case "DECIMAL":
            return "1" if (kind.precision or 0) > (kind.scale or 0) else "0"
    return _PLAIN[kind.root]
