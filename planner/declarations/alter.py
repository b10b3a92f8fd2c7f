"""ALTER TABLE: computes the new declaration of a table, which then replaces the old one.

The rules about possible changes and dependencies are Flink's (tests/flink/ddl.json).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hintplan.planner.statements.columns import connector_first
from hintplan.planner.statements.model import AlterTable, ColumnDeclaration, ColumnPlace, CreateTable
from hintplan.planner.syntax.dialect import TokenType
from hintplan.planner.syntax.source import Source
from hintplan.plans.text.names import did_you_mean


def altered(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    """Return the declaration of ``table`` after ``statement``.

    Raise SqlError if it refers to a missing part, or to a part on which another depends.
    """
    match statement.action:
        case "SET":
            return _set(statement, table)
        case "RESET":
            return _reset(source, statement, table)
        case "ADD":
            return _added(source, statement, table)
        case "MODIFY":
            return _modified(source, statement, table)
        case "DROP":
            return _dropped(source, statement, table)
        case "RENAME COLUMN":
            return _renamed(source, statement, table)
        case "RENAME":
            return replace(table, name=statement.renamed[0])


def _set(statement: AlterTable, table: CreateTable) -> CreateTable:
    return replace(
        table,
        options=connector_first({**table.options, **statement.options}),
        option_offsets={**table.option_offsets, **statement.option_offsets},
    )


def _reset(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    gone = {name for name, _ in statement.dropped}
    for name, offset in statement.dropped:
        if name == "connector":
            raise source.error("'connector' cannot be reset", offset, "write SET ('connector' = '...')")
    return replace(
        table,
        options={key: value for key, value in table.options.items() if key not in gone},
        option_offsets={key: place for key, place in table.option_offsets.items() if key not in gone},
    )


def _added(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    columns = list(table.columns)
    for place in statement.columns:
        if any(column.name == place.column.name for column in columns):
            message = f"table '{table.name}' has a column '{place.column.name}' already"
            raise source.error(message, place.column.offset, "write MODIFY to change it")
        _put(source, columns, place, len(columns), table.name)
    if statement.primary_key and table.primary_key:
        message = f"table '{table.name}' has a primary key already"
        raise source.error(message, statement.key_offset, "write MODIFY PRIMARY KEY (...) NOT ENFORCED")
    if statement.watermark and table.watermark:
        message = f"table '{table.name}' has a WATERMARK already"
        raise source.error(message, statement.watermark[2], "write MODIFY WATERMARK FOR ...")
    return _with_constraints(statement, replace(table, columns=tuple(columns)))


def _modified(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    columns = list(table.columns)
    for place in statement.columns:
        index = _index(source, columns, place.column.name, place.column.offset, table.name)
        before = columns.pop(index)
        kept = place.column if place.column.comment is not None else replace(place.column, comment=before.comment)
        _put(source, columns, replace(place, column=kept), index, table.name)
    if statement.primary_key and not table.primary_key:
        message = f"table '{table.name}' has no primary key to modify"
        raise source.error(message, statement.key_offset, "write ADD PRIMARY KEY (...) NOT ENFORCED")
    if statement.watermark and not table.watermark:
        message = f"table '{table.name}' has no WATERMARK to modify"
        raise source.error(message, statement.watermark[2], "write ADD WATERMARK FOR ...")
    return _with_constraints(statement, replace(table, columns=tuple(columns)))


def _with_constraints(statement: AlterTable, table: CreateTable) -> CreateTable:
    if statement.primary_key:
        table = replace(table, primary_key=statement.primary_key, key_offset=statement.key_offset)
    return replace(table, watermark=statement.watermark or table.watermark)


def _put(source: Source, columns: list[ColumnDeclaration], place: ColumnPlace, at: int, table: str) -> None:
    """Insert a column at the front, after another column, or else at ``at``."""
    if place.first:
        at = 0
    elif place.after is not None:
        at = _index(source, columns, place.after, place.offset, table) + 1
    columns.insert(at, place.column)


def _index(source: Source, columns: Sequence[ColumnDeclaration], name: str, offset: int, table: str) -> int:
    names = [column.name for column in columns]
    if name not in names:
        advice = did_you_mean(name, names, what="columns")
        raise source.error(f"table '{table}' has no column '{name}'", offset, advice)
    return names.index(name)


def _dropped(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    (_, offset), *_ = statement.dropped
    if statement.drops == "PRIMARY KEY":
        if not table.primary_key:
            raise source.error(f"table '{table.name}' has no primary key", offset, "leave the statement out")
        return replace(table, primary_key=())
    if statement.drops == "WATERMARK":
        if table.watermark is None:
            raise source.error(f"table '{table.name}' has no WATERMARK", offset, "leave the statement out")
        return replace(table, watermark=None)
    gone = [name for name, _ in statement.dropped]
    for name, place in statement.dropped:
        _index(source, table.columns, name, place, table.name)
        if gone.count(name) > 1:
            raise source.error(f"column '{name}' is listed twice", place, "list it once")
        _refuse_used(source, table, name, place, gone, "drop that first, or in the same statement")
    return replace(table, columns=tuple(column for column in table.columns if column.name not in gone))


def _renamed(source: Source, statement: AlterTable, table: CreateTable) -> CreateTable:
    old, new = statement.renamed
    place = statement.renamed_offset
    index = _index(source, table.columns, old, place, table.name)
    if any(column.name == new for column in table.columns):
        message = f"table '{table.name}' has a column '{new}' already"
        raise source.error(message, place, "choose another name")
    _refuse_used(source, table, old, place, (), "drop that first", keys=False)
    columns = list(table.columns)
    columns[index] = replace(columns[index], name=new)
    key = tuple(new if name == old else name for name in table.primary_key)
    return replace(table, columns=tuple(columns), primary_key=key)


def _refuse_used(
    source: Source,
    table: CreateTable,
    name: str,
    place: int,
    gone: Sequence[str],
    advice: str,
    *,
    keys: bool = True,
) -> None:
    """Raise SqlError if another part of the table depends on a column.

    The parts are remaining computed columns, the watermark, partitions and the primary key.
    """
    user = next((c.name for c in table.columns if c.name not in gone and c.name != name and _reads(c, name)), None)
    dependent = f"the computed column '{user}'" if user is not None else None
    if keys and name in table.primary_key:
        dependent = "the primary key"
    elif table.watermark is not None and table.watermark[0] == name:
        dependent = "the WATERMARK"
    elif name in table.partitioned_by:
        dependent, advice = "PARTITIONED BY", "declare the table again, with other partitions"
    if dependent is not None:
        raise source.error(f"{dependent} of table '{table.name}' depends on column '{name}'", place, advice)


def _reads(column: ColumnDeclaration, name: str) -> bool:
    return any(t.text == name and t.token_type != TokenType.STRING for t in column.expression)
