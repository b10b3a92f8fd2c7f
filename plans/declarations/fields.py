"""Types of the fields of operators: their type in Python, and their form in the JSON of a plan.

The text after a type is the description of the field in the JSON Schema; a mapping adds keywords to the schema.

    table: Annotated[Name, "The table to read."]
    columns: Annotated[Names, "The physical columns to read, by name.", {"uniqueItems": True}]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hintplan.plans.declarations.row_kinds import RowKind


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a definition of the schema by its name."""

    name: str


Name = Annotated[str, Ref("name")]
Names = tuple[Name, ...]
TypeText = Annotated[str, Ref("type")]
Expression = Annotated[str, Ref("expression")]
OperatorId = Annotated[str, Ref("operator-id")]
OneInput = Annotated[tuple[str, ...], Ref("one-input")]
Changelog = Annotated[tuple[RowKind, ...], Ref("changelog")]
