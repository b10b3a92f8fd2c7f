"""What an operator's kind may ask of the plan: all but its operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from hintplan.plans.declarations.tables import Column, Function, Table

Columns = tuple[Column, ...]


class Declared(Protocol):
    """What a plan declares, and in which mode it runs."""

    @property
    def mode(self) -> Literal["streaming", "batch"]: ...

    @property
    def config(self) -> Mapping[str, str]: ...

    @property
    def tables(self) -> Mapping[str, Table]: ...

    @property
    def functions(self) -> Mapping[str, Function]: ...
