"""What operators with state have in common: their entries, and that they say which row kinds they emit."""

from __future__ import annotations

from typing import Annotated, Any

from plans.declarations.row_kinds import RowKinds
from plans.operators.fields import Ref
from plans.operators.kind import Declared
from plans.settings.state import StateEntry

__all__ = ["States", "stated"]

States = Annotated[tuple[StateEntry, ...], Ref("state")]


def stated(operator: Any, inputs: RowKinds, plan: Declared) -> RowKinds:
    """The row kinds that the plan says the operator emits."""
    kinds: RowKinds = operator.changelog
    return kinds
