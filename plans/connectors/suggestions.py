"""Connectors that error messages suggest: as a source, as a sink, or as a sink for updates.

Connectors with fewer required options come first.

>>> suggested_sources(), suggested_sinks()
("'filesystem'", "'print' or 'filesystem'")
"""

from __future__ import annotations

from collections.abc import Iterable

from hintplan.plans.connectors.connector import Connector, Readable, Writable
from hintplan.plans.connectors.table import CONNECTORS, connector_of
from hintplan.plans.declarations.tables import Table


def suggested_sources() -> str:
    """Return the connectors to suggest as a source, as a hint lists them."""
    return _named(c for c in CONNECTORS.values() if isinstance(c, Readable) and c.suggested_as_source)


def suggested_sinks() -> str:
    """Return the connectors to suggest as a sink, as a hint lists them."""
    return _named(c for c in CONNECTORS.values() if isinstance(c, Writable) and c.suggested_as_sink)


def updates_hint(table: Table) -> str:
    """Return a hint for a ``table`` that takes inserts only, where a sink must take updates."""
    connector = connector_of(table)
    if isinstance(connector, Writable) and connector.updates_hint:
        return connector.updates_hint
    conditions = {c.name: c.updates_condition for c in CONNECTORS.values() if isinstance(c, Writable)}
    able = _simplest_first(c for c in CONNECTORS.values() if conditions.get(c.name) is not None)
    sinks = (f"'{c.name}' {conditions[c.name]}".rstrip() for c in able)
    return f"write to a sink that takes updates, such as {', or '.join(sinks)}"


def _named(connectors: Iterable[Connector]) -> str:
    return " or ".join(f"'{connector.name}'" for connector in _simplest_first(connectors))


def _simplest_first(connectors: Iterable[Connector]) -> list[Connector]:
    return sorted(connectors, key=lambda connector: sum(option.required for option in connector.options))
