"""What a script can say, as data: the statements that the planner understands, with their places.

Queries stay tokens until the compiler needs them; table declarations are complete except for the types of computed
columns, which need expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.dialect import Token
from plans.types import DataType

__all__ = ["ColumnDeclaration", "CreateTable", "CreateView", "Insert", "SetOption", "Statement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """``SET 'key' = 'value'``."""

    key: str
    value: str
    offset: int
    value_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDeclaration:
    """A column of CREATE TABLE: physical with ``type``, or computed from the tokens of ``expression``."""

    name: str
    offset: int
    type: DataType | None = None
    expression: tuple[Token, ...] = ()
    expression_text: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (...) WITH (...)``."""

    name: str
    offset: int
    columns: tuple[ColumnDeclaration, ...]
    primary_key: tuple[str, ...]
    watermark: tuple[str, str, int] | None
    comment: str | None
    options: Mapping[str, str]
    option_offsets: Mapping[str, int]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """``CREATE [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query``."""

    name: str
    offset: int
    columns: tuple[str, ...]
    query: tuple[Token, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``INSERT INTO table [(columns)] query``."""

    table: str
    offset: int
    table_offset: int
    columns: tuple[str, ...]
    columns_offset: int
    query: tuple[Token, ...]


Statement = SetOption | CreateTable | CreateView | Insert
