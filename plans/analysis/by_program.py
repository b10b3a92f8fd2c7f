"""Finds the tables of a plan that only a Python program can supply, and the error of a run that lacks one.

>>> from hintplan.plans.declarations.tables import Table
>>> from hintplan.plans.operators import Scan
>>> events = Table(columns=(), options={"connector": "print"})
>>> read_by_program(Plan(name="p", tables={"events": events}, operators=(Scan(id="s", table="events", columns=()),)))
()
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hintplan.plans.connectors.table import is_by_program
from hintplan.plans.errors import Diagnostic, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.python_words import is_for_a_command
from hintplan.plans.text.names import nearest


def read_by_program(plan: Plan) -> tuple[str, ...]:
    """Return the tables that ``plan`` reads from a program, sorted."""
    return _by_program(plan, {scan.table for scan in plan.scans})


def written_by_program(plan: Plan) -> tuple[str, ...]:
    """Return the tables that ``plan`` writes to a program, sorted."""
    return _by_program(plan, {sink.table for sink in plan.sinks})


def _by_program(plan: Plan, names: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name in plan.tables and is_by_program(plan.tables[name])))


def lacking(plan: Plan, tables: Collection[str] = (), sinks: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Yield the problems of a run that receives only DataFrames of ``tables`` and functions of ``sinks``."""
    for name in read_by_program(plan):
        if name not in tables:
            message = f"table {name} is a DataFrame of a Python program, and this run has none"
            yield _lacking(message, name, tables, "tables", "DataFrame")
    for name in written_by_program(plan):
        if name not in sinks:
            message = f"a function of a Python program takes the rows of table {name}, and this run has none"
            yield _lacking(message, name, sinks, "sinks", "function")


def _lacking(for_command: str, name: str, given: Collection[str], argument: str, what: str) -> Diagnostic:
    if is_for_a_command():
        hint = _from_python(argument, name, "df" if argument == "tables" else "function")
        return Diagnostic(message=for_command, hint=hint, path=f"tables.{name}")
    has = f"{argument} has: {', '.join(sorted(given))}" if given else _from_python(argument, name, what.lower())
    return Diagnostic(message=f"no {what} was given for table {name}", hint=has, path=f"tables.{name}")


def misspelt(wanted: Collection[str], given: Collection[str]) -> dict[str, str]:
    """Return the names in ``given`` that are meant for one in ``wanted`` which is not there, with that one.

    >>> misspelt(["orders", "payments"], ["Orders", "others"])
    {'Orders': 'orders'}
    """
    lacks = [name for name in wanted if name not in given]
    found: dict[str, str] = {}
    for name in given:
        free = [one for one in lacks if one not in found.values()]
        if name not in wanted and (near := nearest(name, free)) is not None:
            found[name] = near
    return found


def _from_python(argument: str, name: str, what: str) -> str:
    call = f'hintplan.execute(plan, {argument}={{"{name}": {what}}})'
    return f"run the plan from Python: {call}; or declare the table with another connector"


def refuse_without_program(plan: Plan) -> None:
    """Raise RunError if only a Python program can run ``plan``."""
    if problems := tuple(lacking(plan)):
        raise RunError(diagnostics=problems)
