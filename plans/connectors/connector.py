"""The descriptor of a connector. Other code reads it, and so does not depend on the names of connectors.

Each connector has a file in this folder, with one :class:`Connector` in it. :mod:`hintplan.plans.connectors.table`
lists them, and answers questions about a table. The runtime reads, writes and looks up: in the file or folder of the
same name in ``runtime/connectors``.

>>> sink = Connector(name="null", description="Drops rows.", writing=Writing(drops_rows=True))
>>> sink.reading is None, sorted(sink.writing.kinds(Table(columns=(), options={"connector": "null"})))
(True, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Literal

from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.settings.group import specs
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting

IN_BATCHES = "SET 'execution.runtime-mode' = 'batch', or read the data where they come from"
"""The hint for a source that a stream cannot read."""

COLUMN_OPTIONS = "fields."
"""The prefix of options for a column: ``fields.<column>.<option>``."""


@frozen
class Reading:
    """The properties of a scan.

    - ``kinds`` returns the row kinds that a scan of the table emits.
    - ``is_bounded`` is true if the scan ends. ``bounding_option`` is the option that makes an unbounded scan end.
    - ``takes_what_is_there``: a run with ``--once`` can stop, although the scan is unbounded.
    - ``in_streams`` is false for a source that only batch jobs can read.
    - ``check`` yields the problems that matter only to a scan. It receives the prefix of their paths.
    - ``is_suggested``: hints suggest the connector where a source is needed.
    - ``asks``: a scan queries the current rows of a system, so a replayed batch might get other rows.
    - ``takes_conditions`` is true if the source evaluates simple conditions (predicate pushdown).
    - ``in_pieces``: Spark reads the pieces of the table in any order, so several tasks may get the changes of one key.
    """

    kinds: Callable[[Table], RowKinds] = lambda table: INSERT_ONLY
    is_bounded: Callable[[Table], bool] = lambda table: True
    bounding_option: str = ""
    takes_what_is_there: bool = False
    in_streams: bool = True
    check: Callable[[str, Table], Iterable[Diagnostic]] = lambda path, table: ()
    is_suggested: bool = False
    asks: bool = False
    takes_conditions: Callable[[Table], bool] = lambda table: False
    in_pieces: bool = False


@frozen
class Writing:
    """The properties of a sink.

    - ``kinds`` returns the row kinds that the sink accepts, or none if this table cannot be written to.
    - ``upserts``: the sink replaces and deletes rows by the primary key.
    - ``drops_rows``: the sink discards its rows.
    - ``place`` is the option that names the destination.
    - ``writes_files``: ``place`` is a directory, in which Spark's file sink records the finished micro-batches.
    - ``overwrites``: a batch job can replace the rows of the table, or of partitions.
    - ``is_suggested``: hints suggest the connector where a sink is needed.
    - ``takes_updates`` is the condition under which a sink takes updates, and empty if it always does. Unless it is
      None, hints suggest the connector where a sink for updates is needed.
    - ``updates_hint`` replaces that suggestion for a sink of this connector that takes inserts only.
    """

    kinds: Callable[[Table], RowKinds] = lambda table: ALL_KINDS
    upserts: Callable[[Table], bool] = lambda table: False
    drops_rows: bool = False
    place: str = ""
    writes_files: bool = False
    overwrites: bool = False
    is_suggested: bool = False
    takes_updates: str | None = None
    updates_hint: str = ""


@frozen
class LookingUp:
    """The ways in which lookup joins can use a table.

    - ``modes`` are the modes of the connector: ``sync`` and ``async`` pass one key or several per call, ``full`` reads
      the whole table.
    - ``modes_of`` returns the modes of one table. If it is None, every table has all modes.
    - ``only`` describes the tables with a lookup, if some have none.
    - ``by_users_code``: user code returns the rows, so they are checked against the columns.
    """

    modes: tuple[LookupMode, ...]
    modes_of: Callable[[Table], Iterable[LookupMode]] | None = None
    only: str = ""
    by_users_code: bool = False


TimesOfDay = Literal["never", "in texts", "always"]
"""The tables that can have TIME columns: none, tables with the formats csv and json only, or all."""


@frozen
class MetadataKey:
    """A fact that a source knows about a row, in addition to its values. A METADATA column of ``type`` reads it.

    ``writable``: a sink accepts a value for the key. ``absent`` is the reason why hintplan lacks a key of Flink's
    connector.
    """

    name: str
    type: str
    writable: bool = False
    absent: str = ""


TASKS_WRITE = "as many tasks write as make the rows"
"""The reason why Flink's ``sink.parallelism`` has no effect."""
_WATERMARKS = "scan.watermark."
_NO_EVENT_TIME = "rows are not held back for event time"
BATCHES_WRITE = "each micro-batch is written as it ends"
"""The reason why sinks do not flush buffers at intervals, as Flink's sinks do."""


@frozen
class Connector:
    """The description and the abilities of a connector. An ability that it lacks is None.

    - ``families`` are prefixes of options that end in a name chosen by the user.
    - ``column_options`` can be set for each column, after ``COLUMN_OPTIONS`` and the column's name.
    - ``metadata`` are the keys of METADATA columns.
    - ``check`` yields the problems of several options together, or of options and columns. It receives the prefix of
      their paths.
    - ``reaches`` returns the files and hosts that a checked table reads, writes or queries.
    - ``overlaps`` is true if a scan of the first table might read rows written to the second table.
    - ``extras`` are the extras of the hintplan package that lookups may need. ``extras_of`` returns the extras that a
      checked table needs for any use.
    - ``spark_package`` returns the group and artefact, in Maven's repositories, of a package that Spark publishes with
      each version and that PySpark does not include. It is empty if reading, or writing, the table needs none.
    - ``refused`` are options of Flink's connector that are missing here, each with the reason.
    - ``idle`` are options of Flink's connector that have no effect here. Compilation removes them with a note. A key of
      ``refused`` or ``idle`` that ends in a dot includes all options with this prefix.
    - ``instead`` has a hint for each unknown option. ``values`` has a hint for each unsupported value, by option.
    - ``partitions``: a table can be PARTITIONED BY columns.
    - ``times`` states which tables can have TIME columns.
    - ``stands_in`` are connectors of Flink that hintplan lacks, each with a hint how to use this connector instead.
    - ``by_program``: the Python program that runs the plan provides the rows of a source, and receives the rows of a
      sink.
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
        """Return the reason why ``option`` has no effect, or None if it may have one."""
        if self.reading is not None and option.startswith(_WATERMARKS):
            return _NO_EVENT_TIME
        names = (option, *(name for name in self.idle if name.endswith(".") and option.startswith(name)))
        return next((self.idle[name] for name in names if name in self.idle), None)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Return the options of WITH, except families and column options. Options of a lookup cache are included."""
        return {**specs(*self.options), **(CACHING.settings if self.looking_up is not None else {})}
