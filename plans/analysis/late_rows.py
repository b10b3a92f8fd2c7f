"""Checks the tables to which watermarks send late rows.

>>> list(check_late_rows(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.analysis.watermarks import watermark_sources
from hintplan.plans.connectors.table import can_write, source_kinds
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Column, Table, physical_columns, read_columns, written_columns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.late_rows import scan_below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Scan, Sink, WatermarkAssigner, tables_used
from hintplan.plans.operators.contract.columns import parse
from hintplan.plans.operators.late_rows import ADDED
from hintplan.plans.operators.sink import fits
from hintplan.plans.settings.watermark import LATE_ROWS, WATERMARK
from hintplan.plans.text.names import did_you_mean, nearest

Problem = tuple[str, str]
"""A message and a remedy."""


def late_columns(target: Table) -> tuple[Column, ...]:
    """Return the columns of a late row that ``target`` takes from the source."""
    added = {column.name for column in ADDED}
    return tuple(column for column in written_columns(target) if column.name not in added)


def check_late_rows(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each watermark whose late rows cannot go to the table that it names."""
    if plan.mode == "batch":
        return
    for operator in plan.declared:
        if isinstance(operator, WatermarkAssigner) and operator.late_rows is not None:
            problem = next(_problems(plan, operator, operator.late_rows), None)
            if problem is not None:
                message, hint = problem
                yield Diagnostic(
                    message=f"late rows cannot go to '{operator.late_rows}': {message}",
                    hint=hint,
                    path=f"{operator.path}.{WATERMARK.name}.{LATE_ROWS}",
                )


def _problems(plan: Plan, assigner: WatermarkAssigner, target: str) -> Iterator[Problem]:
    if target not in plan.tables:
        used = {table for _, table in tables_used(plan.declared, "reads", "looks up", "writes")}
        match = nearest(target, (name for name in plan.tables if name not in used))
        advice = "declare it, with the columns of the source, operator STRING and watermark TIMESTAMP_LTZ(3)"
        yield f"there is no table '{target}'", f"did you mean '{match}'?" if match else advice
        return
    yield from _bad_uses(plan, target)
    scan = scan_below(assigner, plan.declared)
    if scan is None or scan.table not in plan.tables:
        reason = "an operator below the watermark keeps rows, so a late row is no row of the table"
        yield reason, "make windows of the rows of the table, or remove 'late-rows.target'"
        return
    source = plan.tables[scan.table]
    if source_kinds(source) != INSERT_ONLY:
        reason = f"the rows of '{scan.table}' are changes, and a late change is not a row"
        yield reason, "remove 'late-rows.target'; late changes are counted"
    senders = {each.id for each in plan.declared if isinstance(each, WatermarkAssigner) and each.late_rows == target}
    reading = [name for name, below in watermark_sources(plan).items() if not senders.isdisjoint(below)]
    if reading and not any(plan.by_id[name].drops_late_rows for name in reading):
        reason = f"'{reading[0]}' drops none: a late row still meets the rows that it keeps"
        yield reason, "remove 'late-rows.target'; rows that come too late to be kept are counted"
    keeping = next(_keeping(plan, assigner), None)
    if keeping is not None:
        reason = f"'{keeping}' keeps rows between the watermark and the windows, so a late row is no row of the table"
        yield reason, "make windows of the rows of the table, or remove 'late-rows.target'"
    yield from _bad_columns(scan, source, plan.tables[target])


def _bad_uses(plan: Plan, target: str) -> Iterator[Problem]:
    table = plan.tables[target]
    if not can_write(table):
        connector = table.options.get("connector", "")
        yield f"its connector is '{connector}', which does not write", "name a table whose connector writes"
    reader = next((o.id for o, name in tables_used(plan.declared, "reads", "looks up") if name == target), None)
    if reader is not None:
        yield f"'{reader}' reads it", "give late rows a table of their own"
    writer = next((o.id for o in plan.declared if isinstance(o, Sink) and o.table == target), None)
    if writer is not None:
        yield f"'{writer}' writes it, too", "give late rows a table of their own"
    if table.primary_key:
        reason = "it has a PRIMARY KEY, and several late rows may have the same key"
        yield reason, "declare the table without a PRIMARY KEY"


def _keeping(plan: Plan, assigner: Operator) -> Iterator[str]:
    """Yield the operators between the watermark and the operators that go by it that keep rows in a checkpoint."""
    above = {assigner.id}
    for operator in plan.declared:
        if not above.isdisjoint(operator.inputs) and not operator.goes_by_time and operator.passes_watermark:
            above.add(operator.id)
            if operator.state or operator.parks_rows:
                yield operator.id


def _bad_columns(scan: Scan, source: Table, target: Table) -> Iterator[Problem]:
    """Yield the reasons why the columns of ``target`` do not fit late rows of ``source``."""
    name = scan.table
    added = {column.name: column for column in ADDED}
    clashing = [column.name for column in source.columns if column.name in added]
    if clashing:
        reason = f"'{name}' has a column '{clashing[0]}' of its own, and late rows need that name"
        yield reason, f"rename the column of '{name}'"
        return
    offered = {column.name: column for column in read_columns(source)} | added
    wanted = written_columns(target)
    for column in wanted:
        if column.name not in offered:
            if column.name in [each.name for each in source.columns]:
                reason = f"its column '{column.name}' is computed in '{name}'"
                yield reason, "remove it, or declare it as a computed column there, too"
            else:
                reason = f"its column '{column.name}' is not in '{name}'"
                names = [each for each in offered if each not in [one.name for one in wanted]]
                yield reason, did_you_mean(column.name, names, what="columns of late rows") if names else "remove it"
        elif not fits(parse(offered[column.name].type), parse(column.type)):
            have = offered[column.name].type
            reason = f"its column '{column.name}' is {column.type}, and late rows have {have}"
            yield reason, f"declare it as {have.removesuffix(' NOT NULL')}"
    declared = {column.name for column in wanted}
    for column in (*physical_columns(source), *ADDED):
        if column.name not in declared:
            yield f"it has no column '{column.name}'", f"add {column.name} {column.type.removesuffix(' NOT NULL')}"


def carried_columns(plan: Plan) -> dict[str, tuple[Column, ...]]:
    """Return, for each scan whose late rows go to tables, the columns of its rows that they need."""
    carried: dict[str, dict[str, Column]] = {}
    for operator in plan.operators:
        if isinstance(operator, WatermarkAssigner) and operator.late_rows in plan.tables:
            scan = scan_below(operator, plan.declared)
            if scan is not None:
                types = {column.name: column for column in read_columns(plan.tables[scan.table])}
                wanted = late_columns(plan.tables[str(operator.late_rows)])
                carried.setdefault(scan.id, {}).update({c.name: types[c.name] for c in wanted if c.name in types})
    return {name: tuple(columns.values()) for name, columns in carried.items()}


def edges_with_late_rows(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return, by operator, the scans whose rows its output carries for the case that they are late.

    They begin at the scan, and end at the operators that go by time.
    """
    scans = set(carried_columns(plan))
    if not scans:
        return {}
    dropping = {name for operator in plan.operators if operator.op == "late-rows" for name in operator.inputs}
    wanted: set[str] = set()
    for operator in reversed(plan.declared):
        if operator.id in dropping or (operator.id in wanted and not operator.goes_by_time):
            wanted |= {*operator.inputs}
    carrying: dict[str, tuple[str, ...]] = {}
    for operator in plan.declared:
        if operator.id in wanted and not operator.goes_by_time and operator.passes_watermark and not operator.state:
            own = (operator.id,) if operator.id in scans else ()
            below = (scan for name in operator.inputs for scan in carrying.get(name, ()))
            if every := tuple(dict.fromkeys((*own, *below))):
                carrying[operator.id] = every
    return carrying


def late_inputs(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return, by operator that drops late rows for a table, the scans whose rows its inputs carry."""
    carrying = edges_with_late_rows(plan)
    dropping = {name for operator in plan.operators if operator.op == "late-rows" for name in operator.inputs}
    return {
        name: tuple(dict.fromkeys(scan for below in plan.by_id[name].inputs for scan in carrying.get(below, ())))
        for name in watermark_sources(plan)
        if name in dropping
    }
