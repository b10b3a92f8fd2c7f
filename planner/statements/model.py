"""What a script can say, as data: the statements that the planner understands, with their places.

Queries stay tokens until the compiler needs them; table declarations are complete except for the types of computed
columns, which need expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hintplan.planner.syntax.dialect import Token
from hintplan.plans.declarations.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """``SET 'key' = 'value'``; without a key, ``SET``, which lists the configuration."""

    key: str
    value: str
    offset: int
    value_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOption:
    """``RESET ['key']``; without a key all of them."""

    key: str | None
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDeclaration:
    """A column of CREATE TABLE: computed from the tokens of ``expression``, or physical, or of a ``metadata`` key.

    What is ``virtual`` is not written.
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
        """Whether the connector's rows have it."""
        return self.type is not None and self.metadata is None


LikeStrategy = Literal["INCLUDING", "EXCLUDING", "OVERWRITING"]
LikeFeature = Literal[
    "ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """``LIKE table (INCLUDING GENERATED ...)``: what is said of each feature, and where."""

    table: str
    offset: int
    said: Mapping[LikeFeature, LikeStrategy]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (...) [PARTITIONED BY (...)] WITH (...) [LIKE ... | AS ...]``.

    ``key_offset`` is that of the primary key, ``partitioned_offset`` that of PARTITIONED BY. ``listed`` are names of
    columns without types, as AS takes them, with their places.
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
    """A column of ADD or MODIFY, and where it goes: ``FIRST``, ``AFTER`` another, or, with neither, where it is."""

    column: ColumnDeclaration
    first: bool = False
    after: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """``ALTER TABLE [IF EXISTS] name action``; ``dropped`` are columns, or PRIMARY KEY, CONSTRAINT or WATERMARK.

    Names come with their places. ``renamed`` is the column and its new name, or the new name of the table.
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
    """``ALTER VIEW name AS query``, or with ``renamed`` the new name, ``RENAME TO``."""

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
    """``CACHE [LAZY] TABLE name [OPTIONS('storageLevel' = '...')] [[AS] query]``; ``offset`` is that of the name."""

    name: str
    offset: int
    statement_offset: int
    lazy: bool
    storage_level: str | None
    level_offset: int
    query: tuple[Token, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UncacheTable:
    """``UNCACHE TABLE [IF EXISTS] name``; ``offset`` is that of the name."""

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
    """``column = value`` of PARTITION, with the places of both."""

    column: str
    offset: int
    value: tuple[Token, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``INSERT INTO table [PARTITION (column = value, ...)] [(columns)] query [ON CONFLICT DO DEDUPLICATE]``.

    ``overwrites`` is the place of OVERWRITE, which may stand for INTO. ``partition`` are the columns with a constant
    value, ``conflict_offset`` is the place of ``ON``. ``hinted`` is that of the name after which an OPTIONS hint would
    stand.
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
    """``EXECUTE STATEMENT SET BEGIN ...; END``: INSERTs that make up one plan."""

    inserts: tuple[Insert, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query of its own, whose rows are shown."""

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
    """``USE`` of the default catalog or database, in which all tables are anyway."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddJar:
    """``ADD JAR 'path'``, which Flink's scripts begin with."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """``DESCRIBE name``."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """``EXPLAIN [PLAN FOR] job``, or ``EXPLAIN PLAN FOR 'file'`` with a path as ``job``; ``as_json`` shows the plan."""

    job: Select | Insert | StatementSet | str
    offset: int
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan:
    """``COMPILE [AND EXECUTE] PLAN 'path' [IF NOT EXISTS] FOR job``; ``path_offset`` is that of the literal."""

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
class StopJob:
    """``STOP JOB 'name'``."""

    name: str
    offset: int


def inserts_of(statement: Insert | StatementSet) -> tuple[Insert, ...]:
    """The INSERTs of a statement that stands for one job."""
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
    | StopJob
)
