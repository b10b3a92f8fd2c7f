"""The tables and functions that a plan declares: connector tables with their columns, and user-defined functions.

Types are text in Flink's notation, which :mod:`hintplan.plans.declarations.types` reads. Connectors define the meaning
of options.

>>> Column(name="o_id", type="BIGINT")
Column(name='o_id', type='BIGINT')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from hintplan.plans.frozen import frozen
from hintplan.plans.text.read_only import read_only

FunctionKind = Literal["table", "async-table", "scalar", "async-scalar", "aggregate"]


@frozen
class Column:
    """A named column; ``type`` is in Flink's notation, such as ``DECIMAL(10, 2)``."""

    name: str
    type: str


@frozen
class TableColumn:
    """A declared column of a table: computed if ``expression`` is set, from a ``metadata`` key, or else physical.

    Metadata keys are facts that a connector knows about a row in addition to its values. A ``virtual`` metadata column
    is read only.
    """

    name: str
    type: str
    expression: str | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """True if the column is one of the values of a row."""
        return self.expression is None and self.metadata is None


@frozen
class Watermark:
    """``WATERMARK FOR column AS expression``, recorded as declared."""

    column: str
    expression: str


@frozen
class Table:
    """A connector table as ``CREATE TABLE`` declares it; ``options`` includes ``connector``.

    ``partitioned_by`` are the columns whose values determine the partition of a row.
    """

    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    watermark: Watermark | None = None
    comment: str | None = None
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", read_only(self.options))


@frozen
class Function:
    """A user-defined function as ``CREATE FUNCTION`` and its class declare it.

    ``arguments`` are the declared types in order. ``output`` are the columns of the rows that a call returns; scalar
    and aggregate functions have one. An aggregate function also has ``accumulator``, the type of a group's accumulator,
    and ``methods``. They list, sorted, which of ``retract`` and ``merge`` its class has.
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
        """True if an aggregate function supports retraction."""
        return "retract" in self.methods

    @property
    def merges(self) -> bool:
        """True if an aggregate function can merge accumulators."""
        return "merge" in self.methods


def physical_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that are the values of a row: neither computed nor metadata columns."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical)


def read_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that a scan can read: all except computed ones."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.expression is None)


def required_columns(columns: Iterable[Column], primary_key: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the ``columns`` that no row may have NULL in: NOT NULL, or of the ``primary_key``."""
    return tuple(c.name for c in columns if c.type.endswith(" NOT NULL") or c.name in primary_key)


def written_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that a sink writes: neither computed nor virtual ones."""
    return tuple(Column(name=c.name, type=c.type) for c in table.columns if c.expression is None and not c.virtual)
