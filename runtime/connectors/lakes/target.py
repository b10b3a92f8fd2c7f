"""A data lake table as the target of a sink, and the check for NULL in its rows."""

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
class LakeTarget:
    """The table ``name`` of a plan: its options with secrets unresolved, its physical columns, and its primary key."""

    name: str
    options: Mapping[str, str]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    storage: Storage
    catalogued: str = ""
    """The name of the table in its catalog, if it has one."""

    def here(self) -> LakeTarget:
        """Return the target with a relative directory resolved in this process, on Spark Connect in the server."""
        return replace(self, storage=self.storage.here())

    def refuse_lost_place(self) -> None:
        """Raise RunError if the directory of the table, or a directory above it, is a dangling link."""
        link = link_to_nowhere(self.storage.root) if self.storage.is_local else None
        if link is not None:
            hint = "restore its target, or correct the path"
            raise RunError(f"table {self.name} cannot be used: {link}", hint=hint, path=self.path)

    @property
    def called(self) -> str:
        """The name of the target table in messages."""
        return self.catalogued or self.storage.root

    @property
    def path(self) -> str:
        """The path of the table in the plan."""
        return f"tables.{self.name}"

    @property
    def required(self) -> frozenset[str]:
        """The columns of the primary key, and the columns that are declared NOT NULL."""
        return frozenset(required_columns(self.columns, self.primary_key))

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        required = self.required
        return pa.schema([pa.field(c.name, to_arrow(c.type), nullable=c.name not in required) for c in self.columns])


def lake_target(name: str, table: Table, path_option: str, *, catalogued: str = "") -> LakeTarget:
    """Return the target for ``table``."""
    return LakeTarget(
        name=name,
        options=dict(table.options),
        columns=tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical),
        primary_key=table.primary_key,
        partitioned_by=table.partitioned_by,
        storage=storage_of(table.options, path_option),
        catalogued=catalogued,
    )
