"""``union``: UNION ALL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import listed, parse, same_type
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings


@frozen
class Union(Operator):
    """UNION ALL of inputs that agree in column names and types."""

    op = "union"
    title = "union"
    description = "UNION ALL of inputs that agree in column names and types."
    passes_columns = True

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The inputs, two or more.", {"minItems": 2}]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        # A column is NOT NULL only if it is NOT NULL in all inputs.
        return tuple(
            next((c for c in same if parse(c.type).nullable), same[0]) for same in zip(*inputs.columns, strict=True)
        )

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        first = inputs.only
        for operator_id, columns in zip(self.inputs[1:], inputs.columns[1:], strict=True):
            same = len(first) == len(columns) and all(
                a.name == b.name and same_type(a.type, b.type) for a, b in zip(first, columns, strict=True)
            )
            if not same:
                message = f"the inputs must agree in columns: '{self.inputs[0]}' has {listed(first)}"
                yield Diagnostic(
                    message=f"{message}; '{operator_id}' has {listed(columns)}", path=f"{self.path}.inputs"
                )

    def describe(self, plan: Declared) -> str:
        return f"UNION ALL of {len(self.inputs)} inputs"
