"""Connectors that error messages suggest: as a source, as a sink, or as a sink for updates.

Connectors with fewer required options come first.

>>> suggested_sources(), suggested_sinks()
("'filesystem'", "'print' or 'filesystem'")
"""

from __future__ import annotations

from collections.abc import Iterable

from hintplan.plans.connectors.connector import Connector
from hintplan.plans.connectors.table import CONNECTORS, connector_of
from hintplan.plans.declarations.tables import Table


def suggested_sources() -> str:
    """Return the connectors to suggest as a source, as a hint lists them."""
    return _named(c for c in CONNECTORS.values() if c.reading is not None and c.reading.is_suggested)


def suggested_sinks() -> str:
    """Return the connectors to suggest as a sink, as a hint lists them."""
    return _named(c for c in CONNECTORS.values() if c.writing is not None and c.writing.is_suggested)


def updates_hint(table: Table) -> str:
    """Return a hint for a ``table`` that takes inserts only, where a sink must take updates."""
    connector = connector_of(table)
    if connector is not None and connector.writing is not None and connector.writing.updates_hint:
        return connector.writing.updates_hint
    conditions = {c.name: c.writing.takes_updates for c in CONNECTORS.values() if c.writing is not None}
    able = _simplest_first(c for c in CONNECTORS.values() if conditions.get(c.name) is not None)
    sinks = (f"'{c.name}' {conditions[c.name]}".rstrip() for c in able)
    return f"write to a sink that takes updates, such as {', or '.join(sinks)}"


def _named(connectors: Iterable[Connector]) -> str:
    return " or ".join(f"'{connector.name}'" for connector in _simplest_first(connectors))


def _simplest_first(connectors: Iterable[Connector]) -> list[Connector]:
    return sorted(connectors, key=lambda connector: sum(option.required for option in connector.options))
