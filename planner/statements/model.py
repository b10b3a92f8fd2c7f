"""The statements that the planner supports, as data, with their offsets.

Queries stay tokens until the compiler needs them. Table declarations are complete, except for the types of computed
columns, which require their expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hintplan.planner.syntax.dialect import Token
from hintplan.plans.declarations.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """``SET 'key' = 'value'``. Without a key, ``SET`` lists the configuration."""

    key: str
    value: str
    offset: int
    value_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOption:
    """``RESET ['key']``. Without a key, it resets all of them."""

    key: str | None
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDeclaration:
    """A column of CREATE TABLE: a physical column, a column of a ``metadata`` key, or a computed column.

    The tokens of ``expression`` compute it. A sink does not write a ``virtual`` column.
    """

    name: str
    offset: int
    type: DataType | None = None
    expression: tuple[Token, ...] = ()
    expression_text: str | None = None
    comment: str | None = None
    metadata: str | None = None
    virtual: bool = False

    @property
    def is_physical(self) -> bool:
        """Return True if the connector's rows contain the column."""
        return self.type is not None and self.metadata is None


LikeStrategy = Literal["INCLUDING", "EXCLUDING", "OVERWRITING"]
LikeFeature = Literal[
    "ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """``LIKE table (INCLUDING GENERATED ...)``: ``strategies`` has the strategy of each feature in the statement."""

    table: str
    offset: int
    strategies: Mapping[LikeFeature, LikeStrategy]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (...) [PARTITIONED BY (...)] WITH (...) [LIKE ... | AS ...]``.

    ``key_offset`` belongs to the primary key, and ``partitioned_offset`` to PARTITIONED BY. ``listed`` has the names of
    columns without types, which AS allows, with their offsets.
    """

    name: str
    offset: int
    temporary: bool
    columns: tuple[ColumnDeclaration, ...]
    primary_key: tuple[str, ...]
    key_offset: int
    watermark: tuple[str, str, int] | None
    comment: str | None
    options: Mapping[str, str]
    option_offsets: Mapping[str, int]
    if_not_exists: bool
    partitioned_by: tuple[str, ...] = ()
    partitioned_offset: int = 0
    like: Like | None = None
    listed: tuple[tuple[str, int], ...] = ()
    query: tuple[Token, ...] = ()


AlterAction = Literal["SET", "RESET", "ADD", "MODIFY", "DROP", "RENAME COLUMN", "RENAME"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlace:
    """A column of ADD or MODIFY, and its position: ``FIRST``, ``AFTER`` another column, or by default unchanged."""

    column: ColumnDeclaration
    first: bool = False
    after: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """``ALTER TABLE [IF EXISTS] name action``. ``dropped`` has columns, option keys, or the primary key or watermark.

    Names come with their offsets. ``renamed`` has the column and its new name, or the new name of the table.
    """

    name: str
    offset: int
    if_exists: bool
    action: AlterAction
    options: Mapping[str, str] = field(default_factory=dict)
    option_offsets: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[ColumnPlace, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_offset: int = 0
    watermark: tuple[str, str, int] | None = None
    dropped: tuple[tuple[str, int], ...] = ()
    drops: Literal["columns", "PRIMARY KEY", "WATERMARK"] = "columns"
    renamed: tuple[str, ...] = ()
    renamed_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterView:
    """``ALTER VIEW name AS query``, or ``RENAME TO`` if ``renamed`` has the new name."""

    name: str
    offset: int
    query: tuple[Token, ...] = ()
    renamed: str = ""
    renamed_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """``CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query``."""

    name: str
    offset: int
    temporary: bool
    columns: tuple[str, ...]
    query: tuple[Token, ...]
    if_not_exists: bool
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTable:
    """``CACHE [LAZY] TABLE name [OPTIONS('storageLevel' = '...')] [[AS] query]``. ``offset`` belongs to the name."""

    name: str
    offset: int
    statement_offset: int
    lazy: bool
    storage_level: str | None
    level_offset: int
    query: tuple[Token, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UncacheTable:
    """``UNCACHE TABLE [IF EXISTS] name``. ``offset`` belongs to the name."""

    name: str
    offset: int
    statement_offset: int
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """``CREATE [TEMPORARY] [SYSTEM] FUNCTION [IF NOT EXISTS] name AS 'module.Class' LANGUAGE PYTHON``."""

    name: str
    offset: int
    temporary: bool
    class_name: str
    class_offset: int
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionValue:
    """``column = value`` of PARTITION, with the offset of the column."""

    column: str
    offset: int
    value: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``INSERT INTO table [PARTITION (column = value, ...)] [(columns)] query [ON CONFLICT DO DEDUPLICATE]``.

    - ``overwrites`` is the offset of OVERWRITE, which may replace INTO.
    - ``partition`` has the columns with a constant value.
    - ``conflict_offset`` is the offset of ``ON``.
    - ``hinted`` is the offset of the name that an OPTIONS hint would follow.
    """

    table: str
    offset: int
    table_offset: int
    columns: tuple[str, ...]
    columns_offset: int
    query: tuple[Token, ...]
    partition: tuple[PartitionValue, ...] = ()
    conflict_offset: int | None = None
    hinted: int | None = None
    overwrites: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSet:
    """``EXECUTE STATEMENT SET BEGIN ...; END``: INSERTs that form one plan."""

    inserts: tuple[Insert, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query without INSERT, whose rows are displayed."""

    query: tuple[Token, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """``DROP [TEMPORARY] TABLE | VIEW | FUNCTION [IF EXISTS] name``."""

    kind: Literal["TABLE", "VIEW", "FUNCTION"]
    name: str
    offset: int
    temporary: bool
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """``SHOW TABLES | VIEWS | FUNCTIONS [[NOT] LIKE 'pattern']``, ``SHOW CREATE TABLE | VIEW name``, ``SHOW JOBS``."""

    what: Literal["TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "CREATE TABLE", "CREATE VIEW", "JOBS"]
    offset: int
    name: str = ""
    like: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDefault:
    """``USE`` of the default catalog or database, which contains all tables in any case."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddJar:
    """``ADD JAR 'path'``, with which many scripts for Flink begin."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """``DESCRIBE name``."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """``EXPLAIN [PLAN FOR] job``, or ``EXPLAIN PLAN FOR 'file'`` with a path as ``job``.

    ``as_json`` displays the plan as JSON.
    """

    job: Select | Insert | StatementSet | str
    offset: int
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan:
    """``COMPILE [AND EXECUTE] PLAN 'path' [IF NOT EXISTS] FOR job``. ``path_offset`` belongs to the path."""

    path: str
    path_offset: int
    job: Insert | StatementSet
    offset: int
    if_not_exists: bool
    execute: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutePlan:
    """``EXECUTE PLAN 'path'``."""

    path: str
    path_offset: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJobStatement:
    """``STOP JOB 'name'``."""

    name: str
    offset: int


def inserts_of(statement: Insert | StatementSet) -> tuple[Insert, ...]:
    """Return the INSERTs of a statement that makes one job."""
    return statement.inserts if isinstance(statement, StatementSet) else (statement,)


Statement = (
    SetOption
    | ResetOption
    | CreateTable
    | CreateView
    | AlterTable
    | AlterView
    | CreateFunction
    | Drop
    | CacheTable
    | UncacheTable
    | UseDefault
    | AddJar
    | Insert
    | StatementSet
    | Select
    | Show
    | Describe
    | Explain
    | CompilePlan
    | ExecutePlan
    | StopJobStatement
)
