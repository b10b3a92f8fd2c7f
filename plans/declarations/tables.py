"""What a plan declares before its operators: connector tables with their columns, and functions of the user's.

Types are text in Flink's spelling, read by :mod:`hintplan.plans.declarations.types`; what options mean is the
connectors' business.

>>> Column(name="o_id", type="BIGINT")
Column(name='o_id', type='BIGINT')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hintplan.plans.text.read_only import read_only

FunctionKind = Literal["table", "async-table", "scalar", "async-scalar", "aggregate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A named column; ``type`` is in Flink's spelling, such as ``DECIMAL(10, 2)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A declared column of a table: computed when ``expression`` is set, else physical, or of a ``metadata`` key.

    What a connector knows of a row beside its values has a key. A ``virtual`` column of one is read only.
    """

    name: str
    type: str
    expression: str | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """Whether it is one of the values of a row."""
        return self.expression is None and self.metadata is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """``WATERMARK FOR column AS expression``, recorded as declared."""

    column: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A connector table as ``CREATE TABLE`` declared it; ``options`` includes ``connector``.

    ``partitioned_by`` are the columns whose values say in which part of the table a row is.
    """

    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    watermark: Watermark | None = None
    comment: str | None = None
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", read_only(self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A user-defined function as ``CREATE FUNCTION`` and its class declared it.

    ``arguments`` are the declared types in order. ``output`` are the columns of the rows that a call returns; a scalar
    function has one, and so has an aggregate function. Of an aggregate function, ``accumulator`` is the type of what it
    keeps of a group, and ``methods`` are those of ``retract`` and ``merge`` that its class has, sorted.
    """

    class_name: str
    language: Literal["PYTHON"] = "PYTHON"
    kind: FunctionKind
    arguments: tuple[str, ...]
    output: tuple[Column, ...]
    accumulator: str | None = None
    methods: tuple[str, ...] = ()

    @property
    def retracts(self) -> bool:
        """Whether an aggregate function can take rows back."""
        return "retract" in self.methods

    @property
    def merges(self) -> bool:
        """Whether an aggregate function can put accumulators together."""
        return "merge" in self.methods


def physical_columns(table: Table) -> tuple[Column, ...]:
    """The columns that are the values of a row: neither computed nor of metadata."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical)


def read_columns(table: Table) -> tuple[Column, ...]:
    """The columns that a scan can read: all but the computed ones."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.expression is None)


def written_columns(table: Table) -> tuple[Column, ...]:
    """The columns that a sink writes: neither computed nor virtual."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.expression is None and not c.virtual)
