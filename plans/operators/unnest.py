"""``unnest``: emits a row for each element of an ARRAY or a MULTISET, or each entry of a MAP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from hintplan.plans.declarations.fields import Name, OneInput, OperatorId
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.operators.contract.output import JoinOutput, check_output, joined_columns, names_joined
from hintplan.plans.settings.layers import Settings

UNNESTED = ("ARRAY", "MAP", "MULTISET")
"""The types that have elements."""


@frozen
class Unnest(Operator):
    """Joins every input row with the elements of its ARRAY or MULTISET, or the entries of its MAP; row kinds pass.

    A repeated element of a MULTISET is repeated in the output. A ``left`` unnest keeps a row without elements, padded
    with NULL. Stateless. The columns of the right side are :func:`element_columns`.
    """

    op = "unnest"
    title = "unnest"
    description = (
        "Joins every input row with the elements of its ARRAY or MULTISET, or the entries of its MAP; row "
        "kinds pass through. Stateless."
    )

    id: OperatorId
    inputs: OneInput
    column: Annotated[Name, "The input column with the ARRAY, MAP or MULTISET."]
    join_type: Annotated[Literal["inner", "left"], "inner drops rows without elements, left pads them with NULL."]
    output: JoinOutput
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return joined_columns(self.output)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        unknown = list(check_known([self.column], types, f"{self.path}.column", "column of the input"))
        yield from unknown
        if unknown:
            return
        collection = parse(types[self.column])
        if collection.root not in UNNESTED:
            message = f"'{self.column}' is {collection.as_nullable()}, which has no elements"
            yield Diagnostic(
                message=message, path=f"{self.path}.column", hint="name a column that is an ARRAY, a MAP or a MULTISET"
            )
            return
        yield from check_output(
            self.output, inputs.only, element_columns(collection), f"an element of '{self.column}'", self.path
        )

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return names_joined(self.output, place, column)

    def describe(self, plan: Declared) -> str:
        return f"{'LEFT JOIN ' if self.join_type == 'left' else ''}UNNEST({self.column})"


def element_columns(collection: DataType) -> Columns:
    """Return the columns of an element of ``collection``: fields of a ROW, ``key`` and ``value``, or ``element``.

    The last column is the position of the element, from 1. It is called ``ordinality`` unless a field of the ROW has
    this name.

    >>> [f"{c.name} {c.type}" for c in element_columns(parse("ARRAY<ROW<a INT, ordinality INT>>"))]
    ['a INT', 'ordinality INT', 'ordinality0 INT']
    """
    (*_, element) = collection.children
    names: tuple[str, ...] = ("key", "value") if collection.root == "MAP" else ("element",)
    types = collection.children
    if collection.root != "MAP" and element.root == "ROW":
        names, types = element.names, element.children
    place, taken, number = "ordinality", {name.lower() for name in names}, 0
    while place in taken:
        place, number = f"ordinality{number}", number + 1
    columns = (Column(name=name, type=str(kind.as_nullable())) for name, kind in zip(names, types, strict=True))
    return (*columns, Column(name=place, type="INT"))
