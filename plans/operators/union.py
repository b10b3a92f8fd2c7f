"""``union``: UNION ALL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import listed, parse, same_type
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order, unchanged
from hintplan.plans.settings.layers import Settings


@frozen
class Union(WithSettings):
    """UNION ALL of inputs that agree in column names and types."""

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The inputs, two or more.", {"minItems": 2}]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _columns(union: Union, inputs: Sequence[Columns], plan: Declared) -> Columns:
    # A column is NOT NULL only if it is NOT NULL in all inputs.
    return tuple(next((c for c in same if parse(c.type).nullable), same[0]) for same in zip(*inputs, strict=True))


def _check(union: Union, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    first = inputs[0]
    for operator_id, columns in zip(union.inputs[1:], inputs[1:], strict=True):
        same = len(first) == len(columns) and all(
            a.name == b.name and same_type(a.type, b.type) for a, b in zip(first, columns, strict=True)
        )
        if not same:
            message = f"the inputs must agree in columns: '{union.inputs[0]}' has {listed(first)}"
            yield Diagnostic(message=f"{message}; '{operator_id}' has {listed(columns)}", path=f"{path}.inputs")


def _describe(union: Union, plan: Declared) -> str:
    return f"UNION ALL of {len(union.inputs)} inputs"


UNION = OperatorKind(
    op="union",
    cls=Union,
    title="union",
    description="UNION ALL of inputs that agree in column names and types.",
    columns=_columns,
    check=_check,
    row_kinds=unchanged,
    reads_order=any_order,
    describe=_describe,
)
