"""Where a plan must say how rows replace each other by key: above scans of upserts, and below sinks that share keys.

A scan of upserts is no changelog before a ``changelog-normalize`` has made it one, and a ``sink-materialize`` keeps
rows by the key of the very sinks that read it. Knows no expressions and no settings.

>>> list(check_upserts(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.connectors.table import is_upsert_sink, is_upsert_source, source_kinds
from plans.declarations.row_kinds import INSERT_ONLY
from plans.errors import Diagnostic
from plans.model.plan import Plan
from plans.operators import ChangelogNormalize, Operator, Scan, Sink, SinkMaterialize, op_name

__all__ = ["check_upserts"]


def check_upserts(plan: Plan) -> Iterator[Diagnostic]:
    """Every ``changelog-normalize`` and ``sink-materialize`` that is missing, misplaced or of another key.

    The graph of ``plan`` and its tables must be known to be right.
    """
    by_id = {operator.id: operator for operator in plan.operators}
    readers: dict[str, list[Operator]] = {name: [] for name in by_id}
    for operator in plan.operators:
        for name in operator.inputs:
            readers[name].append(operator)
    for operator in plan.operators:
        if isinstance(operator, Scan):
            yield from _check_readers(plan, operator, readers[operator.id])
        elif isinstance(operator, ChangelogNormalize):
            yield from _check_normalize(plan, operator, by_id[operator.inputs[0]])
        elif isinstance(operator, SinkMaterialize):
            yield from _check_materialize(plan, operator, readers[operator.id])


def _check_readers(plan: Plan, scan: Scan, readers: list[Operator]) -> Iterator[Diagnostic]:
    others = [reader for reader in readers if not isinstance(reader, ChangelogNormalize)]
    if is_upsert_source(plan.tables[scan.table]):
        message = f"'{scan.id}' reads upserts, which only a changelog-normalize makes a changelog of"
    elif len(others) < len(readers):
        message = f"'{scan.id}' is read by a changelog-normalize, so nothing else can read it"
    else:
        return
    for reader in others:
        yield Diagnostic(message=message, path=f"operators.{reader.id}.inputs", hint="compile the SQL again")


def _check_normalize(plan: Plan, operator: ChangelogNormalize, source: Operator) -> Iterator[Diagnostic]:
    path = f"operators.{operator.id}"
    if plan.mode == "batch":
        message = "a batch plan has no changes, so there is nothing to normalize"
        yield Diagnostic(message=message, path=path, hint="compile the SQL again")
    elif not isinstance(source, Scan) or source_kinds(plan.tables[source.table]) == INSERT_ONLY:
        message = f"a changelog-normalize reads a scan of upserts or changes, '{source.id}' is none"
        yield Diagnostic(message=message, path=f"{path}.inputs", hint="compile the SQL again")
    elif set(operator.key) != set(plan.tables[source.table].primary_key):
        key = ", ".join(plan.tables[source.table].primary_key)
        message = f"the key is ({', '.join(operator.key)}), the primary key of '{source.table}' is ({key})"
        yield Diagnostic(message=message, path=f"{path}.key", hint="compile the SQL again")


def _check_materialize(plan: Plan, operator: SinkMaterialize, readers: list[Operator]) -> Iterator[Diagnostic]:
    path = f"operators.{operator.id}"
    if plan.mode == "batch":
        message = "a batch plan keeps no rows for a sink"
        yield Diagnostic(message=message, path=path, hint="compile the SQL again")
        return
    for reader in readers:
        table = plan.tables[reader.table] if isinstance(reader, Sink) else None
        if table is None:
            message = f"a sink-materialize is read by sinks only, '{reader.id}' is of kind {op_name(reader)}"
            yield Diagnostic(message=message, path=f"operators.{reader.id}.inputs", hint="compile the SQL again")
        elif not is_upsert_sink(table) or set(table.primary_key) != set(operator.key):
            key = f"upserts by ({', '.join(table.primary_key)})" if is_upsert_sink(table) else "does not upsert"
            message = f"the key is ({', '.join(operator.key)}), but '{reader.id}' {key}"
            yield Diagnostic(message=message, path=f"{path}.key", hint="compile the SQL again")
