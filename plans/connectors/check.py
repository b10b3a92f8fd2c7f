"""What is wrong with a table's options: unknown ones, wrong values, and what its connector checks itself.

>>> from plans.declarations.tables import TableColumn
>>> table = Table(columns=(TableColumn(name="v", type="INT"),), options={"connector": "print", "print-identifer": "x"})
>>> print(*check_table("result", table))
tables.result.options.print-identifer: the print connector has no option 'print-identifer'
  hint: did you mean 'print-identifier'?
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from plans.connectors.connector import COLUMN_OPTIONS, Connector
from plans.connectors.options import bad_value, option
from plans.connectors.table import CONNECTORS, connector_of
from plans.declarations.tables import Table
from plans.errors import Diagnostic
from plans.settings.setting import Setting


def shown_options(name: str, table: Table) -> dict[str, str]:
    """The options to show; a value that is refused may be a literal secret, so it is not repeated."""
    refused = {problem.path for problem in check_table(name, table)}
    return {
        key: "(refused)" if f"tables.{name}.options.{key}" in refused else value for key, value in table.options.items()
    }


def check_table(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Everything wrong with the options of table ``name``, with paths such as ``tables.orders.options.path``."""
    return tuple(_check(f"tables.{name}.options", table))


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    connector = table.options.get("connector")
    spec = connector_of(table)
    if spec is None:
        known = ", ".join(sorted(CONNECTORS))
        close = get_close_matches(connector or "", CONNECTORS, n=1)
        yield Diagnostic(
            message=f"there is no connector {connector!r}" if connector else "the table names no connector",
            hint=f"did you mean {close[0]!r}? Known are {known}" if close else f"write 'connector' = one of {known}",
            path=f"{path}.connector",
        )
        return
    for key, value in table.options.items():
        if key == "connector" or (spec.column_options and key.startswith(COLUMN_OPTIONS)):
            continue
        found: Setting | None = spec.settings.get(key)
        if found is None and any(key.startswith(family) and key != family for family in spec.families):
            found = option(key, environment=True)
        if found is None:
            yield _unknown(path, spec, key)
        elif problem := bad_value(found, value):
            message, hint = problem
            yield Diagnostic(message=message, hint=hint, path=f"{path}.{key}")
    for wanted in spec.options:
        if wanted.required and wanted.name not in table.options:
            yield Diagnostic(
                message=f"the {spec.name} connector needs the option {wanted.name!r}",
                hint=f"add '{wanted.name}' = " + (f"one of {', '.join(wanted.choices)}" if wanted.choices else "'...'"),
                path=f"{path}.{wanted.name}",
            )
    yield from spec.check(path, table)


def _unknown(path: str, spec: Connector, key: str) -> Diagnostic:
    names = spec.settings
    close = get_close_matches(key, names, n=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif names:
        hint = f"it knows {', '.join(names)}" + (
            f" and {COLUMN_OPTIONS}<column>.<setting>" if spec.column_options else ""
        )
    else:
        hint = "it has no options; remove it"
    return Diagnostic(message=f"the {spec.name} connector has no option {key!r}", hint=hint, path=f"{path}.{key}")
