"""Late rows: the tables to which watermarks send them, and the places of errors about them in the script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hintplan.planner.context import Catalog, TableEntry
from hintplan.planner.setting_positions import Positions
from hintplan.planner.syntax.source import Source
from hintplan.plans.analysis.late_rows import check_late_rows
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, WatermarkAssigner
from hintplan.plans.settings.layers import set_by
from hintplan.plans.settings.watermark import LATE_ROWS, WATERMARK


def late_tables(catalog: Catalog, plan: Plan) -> Iterator[tuple[str, TableEntry]]:
    """Yield the declared tables that get late rows of ``plan``, and are not among its tables yet."""
    for operator in plan.declared:
        if plan.mode == "streaming" and isinstance(operator, WatermarkAssigner):
            target = operator.late_rows
            if target is not None and target not in plan.tables and target in catalog.tables:
                yield target, catalog.tables[target]


def only_counted(plan: Plan) -> Plan:
    """Return the plan of a query without INSERT, whose late rows are only counted, because it writes to no table."""
    option = WATERMARK.settings[LATE_ROWS].option
    tables = {
        name: replace(table, options={key: value for key, value in table.options.items() if key != option})
        for name, table in plan.tables.items()
    }
    return replace(plan, tables=tables, operators=tuple(map(_only_counting, plan.operators)))


def _only_counting(operator: Operator) -> Operator:
    if not isinstance(operator, WatermarkAssigner):
        return operator
    layers = {
        layer: {name: value for name, value in values.items() if name != LATE_ROWS}
        for layer, values in operator.settings[WATERMARK.name].origin.items()
    }
    return operator.with_settings({**operator.settings, WATERMARK.name: WATERMARK.resolved(layers)})


def refuse_late_targets(source: Source, catalog: Catalog, plan: Plan, positions: Positions) -> None:
    """Raise SqlError with an error for each table or hint that sends late rows to a table which cannot take them."""
    declared = {name: entry.table for name, entry in catalog.tables.items()}
    problems: dict[Diagnostic, None] = {}
    for problem in check_late_rows(replace(plan, tables={**declared, **plan.tables})):
        operator = (problem.path or "").removeprefix("operators.").partition(".")[0]
        layer = set_by(plan.by_id[operator].settings[WATERMARK.name], LATE_ROWS)
        position = positions[operator, f"{WATERMARK.name}.{LATE_ROWS}", layer]
        problems[source.diagnostic(problem.message, position.offset, problem.hint)] = None
    if problems:
        raise SqlError(diagnostics=tuple(problems))
