"""The view of a plan that an operator may use: the declarations of the plan, and the columns of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from hintplan.plans.declarations.tables import Column, Function, Table
from hintplan.plans.frozen import frozen

Columns = tuple[Column, ...]


class Declared(Protocol):
    """The declarations and the mode of a plan."""

    @property
    def mode(self) -> Literal["streaming", "batch"]: ...

    @property
    def config(self) -> Mapping[str, str]: ...

    @property
    def tables(self) -> Mapping[str, Table]: ...

    @property
    def functions(self) -> Mapping[str, Function]: ...


@frozen
class Inputs:
    """The inputs of an operator in their order, by their output columns, and the declarations of the plan."""

    columns: Sequence[Columns]
    plan: Declared

    @property
    def only(self) -> Columns:
        """The columns of the only input."""
        return self.columns[0]
