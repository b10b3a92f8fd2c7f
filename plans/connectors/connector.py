"""What a connector is, as data: everything that code elsewhere asks of one, so that it need not know its name.

A connector has a file of its own beside this one, with one :class:`Connector` in it;
:mod:`hintplan.plans.connectors.table` lists them, and answers for a table. How a connector reads, writes and looks up
is the runtime's, in the folder or file of the same name in ``runtime/connectors``.

>>> sink = Connector(name="null", description="Drops rows.", writing=Writing(drops_rows=True))
>>> sink.reading is None, sorted(sink.writing.kinds(Table(columns=(), options={"connector": "null"})))
(True, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import RowKind
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.group import specs
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting

ALL_KINDS: tuple[RowKind, ...] = ("+I", "-U", "+U", "-D")
UPSERT_KINDS: tuple[RowKind, ...] = ("+I", "+U", "-D")
INSERT_ONLY: tuple[RowKind, ...] = ("+I",)

IN_BATCHES = "SET 'execution.runtime-mode' = 'batch', or read the data where they come from"
"""What to do about a source that is not read in streams."""

COLUMN_OPTIONS = "fields."
"""What the options of columns start with: ``fields.<column>.<option>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a table is scanned: the row ``kinds`` that a scan emits, and whether it ends.

    ``bounding_option`` makes one that does not end do so; ``takes_what_is_there`` says that a run which takes what is
    there can stop even so. ``check`` finds what a table lacks that is only needed to read it, with paths below the one
    it is given. ``is_suggested`` where a source is asked for. What is not read ``in_streams`` is for batch jobs alone.
    One that ``asks`` is told the rows of the moment, and would be told others if a batch ran again. One that
    ``takes_conditions`` can be asked for the rows alone for which a simple condition is true. Spark reads the pieces of
    one that is ``in_pieces`` in any order, so that changes of a key may come to several tasks.
    """

    kinds: Callable[[Table], tuple[RowKind, ...]] = lambda table: INSERT_ONLY
    is_bounded: Callable[[Table], bool] = lambda table: True
    bounding_option: str = ""
    takes_what_is_there: bool = False
    in_streams: bool = True
    check: Callable[[str, Table], Iterable[Diagnostic]] = lambda path, table: ()
    is_suggested: bool = False
    asks: bool = False
    takes_conditions: Callable[[Table], bool] = lambda table: False
    in_pieces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a table is inserted into: the row ``kinds`` that its sink takes, none if this table cannot be written to.

    ``upserts`` says whether the sink replaces and deletes rows by the primary key; one that ``drops_rows`` does nothing
    with them.
    ``place`` is the option that says where rows go; with ``writes_files`` it is a directory, of which Spark's file sink
    keeps which micro-batches it has.

    One that ``overwrites`` can take the rows of the table, or of partitions, away for those of a batch job.

    ``is_suggested`` where a sink is asked for, and where one that takes updates is, if ``takes_updates`` says on which
    condition it does, which may be empty. ``updates_hint`` is what else makes the sink of this connector take them.
    """

    kinds: Callable[[Table], tuple[RowKind, ...]] = lambda table: ALL_KINDS
    upserts: Callable[[Table], bool] = lambda table: False
    drops_rows: bool = False
    place: str = ""
    writes_files: bool = False
    overwrites: bool = False
    is_suggested: bool = False
    takes_updates: str | None = None
    updates_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookingUp:
    """How lookup joins can use a table: one key at a time or some in one call (``sync``, ``async``), or by reading all
    of it (``full``).

    ``modes`` are those of the connector, ``modes_of`` those of one table, all if None; ``only`` says which tables have
    one, if not all have. ``by_users_code`` says that rows come from code of the user's, which are checked against the
    columns.
    """

    modes: tuple[LookupMode, ...]
    modes_of: Callable[[Table], Iterable[LookupMode]] | None = None
    only: str = ""
    by_users_code: bool = False


TimesOfDay = Literal["never", "in texts", "always"]
"""Which tables of a connector have columns of TIME: those of the formats csv and json, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataKey:
    """What a source knows of a row beside its values, as a METADATA column of ``type`` has it.

    ``writable`` says that a sink takes a value for it. One that Flink's connector has and this one has not is
    ``absent`` for a reason.
    """

    name: str
    type: str
    writable: bool = False
    absent: str = ""


TASKS_WRITE = "as many tasks write as make the rows"
"""Why ``sink.parallelism`` of Flink changes nothing."""
_WATERMARKS = "scan.watermark."
_NO_EVENT_TIME = "rows are not held back for event time"
BATCHES_WRITE = "each micro-batch is written as it ends"
"""Why buffers of Flink's sinks are not flushed by the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """What a connector is and can do; what it cannot is None.

    ``families`` are prefixes of options that end in a name of the user's. ``column_options`` can be set for each
    column, after ``COLUMN_OPTIONS`` and the column's name. ``check`` finds what is wrong with more than one option, or
    with options and columns, with paths below the one it is given. ``metadata`` are the keys of METADATA columns.
    ``reaches`` gives the places that a checked table reads, writes or asks. ``overlaps`` says whether what is written
    to the second table could be read from the first. ``extras`` are those of the distribution with the packages that
    its lookups need, ``extras_of`` those that a checked table needs, whatever is done with it. ``spark_package`` is
    what Spark needs for a table, which is read or is written, besides what PySpark brings, or nothing: the group and
    artefact, in Maven's repositories, of a package that Spark publishes with each of its versions. ``refused`` are
    options of Flink's connector that this one has not, and why, ``idle`` those that change nothing here, which
    compiling leaves out with a note; with a dot at the end, all below. ``instead`` says what to do instead of setting
    an option that is not there, and ``values``, by option, instead of a value. ``partitions`` says whether a table can
    be PARTITIONED BY columns. ``stands_in`` are connectors that jobs of Flink have and hintplan has not, with how to do
    without by this one. ``times`` says whether a table can have columns of TIME. Tables of one that is ``by_program``
    are nothing that an option names: the Python program that runs the plan hands over what is read, and what takes the
    rows.
    """

    name: str
    description: str
    options: tuple[Setting, ...] = ()
    column_options: tuple[Setting, ...] = ()
    families: tuple[str, ...] = ()
    reading: Reading | None = None
    writing: Writing | None = None
    looking_up: LookingUp | None = None
    metadata: tuple[MetadataKey, ...] = ()
    check: Callable[[str, Table], Iterable[Diagnostic]] = lambda path, table: ()
    reaches: Callable[[Table], Iterable[Place]] = lambda table: ()
    overlaps: Callable[[Table, Table], bool] = lambda source, sink: False
    extras: tuple[str, ...] = ()
    extras_of: Callable[[Table], tuple[str, ...]] = lambda table: ()
    spark_package: Callable[[Table, bool], str] = lambda table, is_written: ""
    refused: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stands_in: Mapping[str, str] = field(default_factory=dict)
    partitions: bool = False
    times: TimesOfDay = "never"
    by_program: bool = False

    def why_idle(self, option: str) -> str | None:
        """Why ``option`` changes nothing here; None if it may."""
        if self.reading is not None and option.startswith(_WATERMARKS):
            return _NO_EVENT_TIME
        names = (option, *(name for name in self.idle if name.endswith(".") and option.startswith(name)))
        return next((self.idle[name] for name in names if name in self.idle), None)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What WITH can set besides columns and families: its own options, and those of a lookup's cache."""
        return {**specs(*self.options), **(CACHING.settings if self.looking_up is not None else {})}
