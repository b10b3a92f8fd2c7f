"""The output columns of operators with two sides: joins, lookup joins and calls of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from hintplan.plans.declarations.computations import Side
from hintplan.plans.declarations.fields import Name, Ref, TypeText
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, same_type, types_of
from hintplan.plans.operators.contract.declared import Columns


@frozen
class JoinColumn:
    """An output column of a join: ``column`` of the input on ``side``, under ``name``."""

    JOINED: ClassVar[Mapping[str, tuple[str, str]]] = {"from": ("side", "column")}
    """The fields that a plan writes as one text, joined by a dot."""

    name: Name
    type: TypeText
    side: Side
    column: str


JoinOutput = Annotated[tuple[JoinColumn, ...], Ref("join-output")]


def check_output(
    output: Sequence[JoinColumn], left: Columns, right: Columns, what: str, path: str
) -> Iterator[Diagnostic]:
    """Yield the problems of output columns from two sides; ``what`` names the right side in messages."""
    sides = {"left": (types_of(left), "the left input"), "right": (types_of(right), what)}
    for column in output:
        here = f"{path}.output.{column.name}"
        types, owner = sides[column.side]
        unknown = list(check_known([column.column], types, f"{here}.from", f"column of {owner}"))
        yield from unknown
        if not unknown and not same_type(types[column.column], column.type):
            source = f"{column.side}.{column.column} is {types[column.column]}"
            yield Diagnostic(message=f"the type is {column.type}, but {source}", path=f"{here}.type")
    yield from check_names([column.name for column in output], path, "output")


def names_joined(output: Sequence[JoinColumn], place: int, column: str) -> tuple[str, ...]:
    """Return the output names of a column of the left (0) or the right (1) side."""
    side = ("left", "right")[place]
    return tuple(joined.name for joined in output if (joined.side, joined.column) == (side, column))


def joined_columns(output: Sequence[JoinColumn]) -> Columns:
    """Return the output columns of an operator with two sides, without their origin."""
    return tuple(Column(name=column.name, type=column.type) for column in output)
