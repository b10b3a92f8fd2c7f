"""The view of a plan that operator kinds may use: everything except its operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from hintplan.plans.declarations.tables import Column, Function, Table

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
