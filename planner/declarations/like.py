"""CREATE TABLE ... LIKE: combines the declaration of another table with a new one.

The rules about copied parts, their order, and conflicts are Flink's (tests/flink/ddl.json). By default, new options
override the other table's options; computed columns, watermarks and keys do not, unless LIKE specifies it.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.statements.columns import connector_first
from hintplan.planner.statements.model import ColumnDeclaration, CreateTable, Like, LikeFeature, LikeStrategy
from hintplan.planner.syntax.source import Source

_DEFAULTS: dict[LikeFeature, LikeStrategy] = {"OPTIONS": "OVERWRITING"}


def derived(source: Source, statement: CreateTable, like: Like, base: CreateTable) -> CreateTable:
    """Return the whole declaration of ``statement``, which is LIKE ``base``. Raise SqlError for a conflict."""
    watermark = statement.watermark
    if base.watermark is not None and _strategy(like, "WATERMARKS") != "EXCLUDING":
        if watermark is not None and watermark[0] == base.watermark[0] and not _overwrites(like, "WATERMARKS"):
            raise _twice(source, f"a WATERMARK for '{watermark[0]}'", like, "WATERMARKS", watermark[2])
        if watermark is not None and watermark[0] != base.watermark[0]:
            message = f"'{like.table}' has a WATERMARK for '{base.watermark[0]}', and a table has at most one"
            raise source.error(message, watermark[2], "write EXCLUDING WATERMARKS after LIKE")
        watermark = watermark or base.watermark
    key, key_offset = statement.primary_key, statement.key_offset
    if base.primary_key and _strategy(like, "CONSTRAINTS") != "EXCLUDING":
        if key:
            message = f"'{like.table}' has a primary key already"
            raise source.error(message, key_offset, "write EXCLUDING CONSTRAINTS after LIKE")
        key, key_offset = base.primary_key, like.offset
    partitioned, partitioned_offset = statement.partitioned_by, statement.partitioned_offset
    if base.partitioned_by and not partitioned:
        partitioned, partitioned_offset = (
            base.partitioned_by,
            like.offset,
        )  # EXCLUDING PARTITIONS only allows other partitions
    elif base.partitioned_by and _strategy(like, "PARTITIONS") != "EXCLUDING":
        message = f"'{like.table}' has partitions already"
        raise source.error(message, partitioned_offset, "write EXCLUDING PARTITIONS after LIKE")
    options, places = _options(source, statement, like, base)
    return replace(
        statement,
        columns=_columns(source, statement, like, base),
        primary_key=key,
        key_offset=key_offset,
        partitioned_by=partitioned,
        partitioned_offset=partitioned_offset,
        watermark=watermark,
        options=options,
        option_offsets=places,
        like=None,
    )


def _strategy(like: Like, feature: LikeFeature) -> LikeStrategy:
    return like.strategies.get(feature) or like.strategies.get("ALL") or _DEFAULTS.get(feature, "INCLUDING")


def _overwrites(like: Like, feature: LikeFeature) -> bool:
    return _strategy(like, feature) == "OVERWRITING"


def _twice(source: Source, what: str, like: Like, feature: LikeFeature, offset: int) -> Exception:
    advice = f"write OVERWRITING {feature} or EXCLUDING {feature} after LIKE"
    return source.error(f"'{like.table}' has {what} already", offset, advice)


def _options(
    source: Source, statement: CreateTable, like: Like, base: CreateTable
) -> tuple[dict[str, str], dict[str, int]]:
    if _strategy(like, "OPTIONS") == "EXCLUDING":
        return dict(statement.options), dict(statement.option_offsets)
    if not _overwrites(like, "OPTIONS"):
        for key, place in statement.option_offsets.items():
            if key in base.options:
                raise _twice(source, f"the option '{key}'", like, "OPTIONS", place)
    options = connector_first({**base.options, **statement.options})
    return options, {**base.option_offsets, **statement.option_offsets}


def _columns(source: Source, statement: CreateTable, like: Like, base: CreateTable) -> tuple[ColumnDeclaration, ...]:
    """Return the copied columns of the base, in their order, and after them the new columns of the statement."""
    copied = {c.name: c for c in base.columns if c.is_physical or _strategy(like, _feature(c)) != "EXCLUDING"}
    fresh: list[ColumnDeclaration] = []
    for column in statement.columns:
        before = copied.get(column.name)
        if before is None:
            fresh.append(column)
        elif column.is_physical or before.is_physical or _feature(column) != _feature(before):
            message = f"'{like.table}' has a column '{column.name}' already"
            raise source.error(message, column.offset, "remove it, or rename it")
        elif not _overwrites(like, _feature(column)):
            kind = "computed" if column.metadata is None else "METADATA"
            raise _twice(source, f"a {kind} column '{column.name}'", like, _feature(column), column.offset)
        else:
            copied[column.name] = column
    return (*copied.values(), *fresh)


def _feature(column: ColumnDeclaration) -> LikeFeature:
    """Return the feature of LIKE that includes a column that is not physical."""
    return "GENERATED" if column.metadata is None else "METADATA"
