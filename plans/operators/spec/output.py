"""An output column of an operator with two sides: a join, a lookup join, or a call of a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from hintplan.plans.declarations.computations import Side
from hintplan.plans.declarations.fields import Name, Ref, TypeText
from hintplan.plans.frozen import frozen


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
