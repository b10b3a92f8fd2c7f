"""A table in a data lake as the target of a sink, and what its rows must not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hintplan.plans.declarations.tables import Column, Table, required_columns
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.lakes.storage import Storage, storage_of
from hintplan.runtime.types import to_arrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table ``name`` of a plan: its options with secrets unresolved, its physical columns, and its primary key."""

    name: str
    options: Mapping[str, str]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    storage: Storage
    catalogued: str = ""
    """What the table is called in its catalog, if it has one."""

    def here(self) -> Target:
        """The target, with a relative directory where this process runs, which on Spark Connect is the server."""
        return replace(self, storage=self.storage.here())

    def refuse_lost_place(self) -> None:
        """RunError if the directory of the table is a link to nowhere, or below one."""
        link = link_to_nowhere(self.storage.root) if self.storage.is_local else None
        if link is not None:
            hint = "put back what it leads to, or correct the path"
            raise RunError(f"table {self.name} cannot be used: {link}", hint=hint, path=self.path)

    @property
    def called(self) -> str:
        """What messages call the table that is written to."""
        return self.catalogued or self.storage.root

    @property
    def path(self) -> str:
        """Where the plan has the table."""
        return f"tables.{self.name}"

    @property
    def required(self) -> frozenset[str]:
        """The columns that are declared to have a value."""
        return frozenset(required_columns(self.columns, self.primary_key))

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        required = self.required
        return pa.schema([pa.field(c.name, to_arrow(c.type), nullable=c.name not in required) for c in self.columns])


def target_of(name: str, table: Table, path_option: str, *, catalogued: str = "") -> Target:
    """The target that ``table`` is."""
    return Target(
        name=name,
        options=dict(table.options),
        columns=tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical),
        primary_key=table.primary_key,
        partitioned_by=table.partitioned_by,
        storage=storage_of(table.options, path_option),
        catalogued=catalogued,
    )
