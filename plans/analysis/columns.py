"""Resolves the columns of every operator by name along the edges of the plan, and finds their problems.

The kind of an operator defines its output and its checks. Expressions are not analysed: a computed column has the type
in the plan.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> from hintplan.plans.operators import Scan
>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> orders = Table(columns=(TableColumn(name="a", type="INT"),), options={})
>>> output_columns(Plan(name="p", tables={"o": orders}, operators=(scan,)))
{'scan_o': (Column(name='a', type='INT'),)}
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators.contract.columns import check_names
from hintplan.plans.operators.contract.declared import Columns, Inputs
from hintplan.plans.text.names import did_you_mean

ENOUGH = 101


def output_columns(plan: Plan) -> dict[str, Columns]:
    """Return the output columns of every operator by id; raise PlanError if some do not resolve.

    The output columns of a sink are the columns of its input.
    """
    columns, problems = check_columns(plan)
    if problems:
        raise PlanError(diagnostics=tuple(problems))
    return columns


def check_columns(plan: Plan) -> tuple[dict[str, Columns], list[Diagnostic]]:
    """Return the output columns that resolve, and about the first hundred problems.

    No problem is reported for operators above one whose columns do not resolve.
    """
    resolved: dict[str, Columns] = {}
    tables = (problem for name, table in plan.tables.items() for problem in _check_table(name, table))
    problems = list(islice(tables, ENOUGH))
    for operator in plan.operators:
        columns = [resolved[i] for i in operator.inputs if i in resolved]
        if len(columns) < len(operator.inputs):
            continue
        inputs = Inputs(columns=columns, plan=plan)
        problems_here = list(islice(operator.check(inputs), ENOUGH))
        problems += problems_here
        if len(problems) >= ENOUGH:
            break
        if not problems_here:
            resolved[operator.id] = operator.output_columns(inputs)
    return resolved, problems


def _check_table(name: str, table: Table) -> Iterator[Diagnostic]:
    path = f"tables.{name}"
    names = [column.name for column in table.columns]
    yield from check_names(names, path, "columns")
    for where, listed in (("primary-key", table.primary_key), ("partitioned-by", table.partitioned_by)):
        for key in listed:
            if key not in names:
                yield Diagnostic(
                    message=f"unknown column '{key}'", path=f"{path}.{where}", hint=did_you_mean(key, names)
                )
    if table.watermark and table.watermark.column not in names:
        hint = did_you_mean(table.watermark.column, names)
        yield Diagnostic(
            message=f"unknown column '{table.watermark.column}'", path=f"{path}.watermark.column", hint=hint
        )
