"""The description of a connector. Other code reads it, and so does not depend on the names of connectors.

Each connector has a file in this folder, with a class and one object of it. The class derives from the abilities that
the connector has: :class:`Readable`, :class:`Writable` and :class:`LookedUp`. :mod:`hintplan.plans.connectors.table`
lists the connectors, and answers questions about a table. The runtime reads, writes and looks up: in the file or folder
of the same name in ``runtime/connectors``.

>>> class Null(Writable):
...     name = "null"
...     description = "Drops rows."
...     drops_rows = True
>>> isinstance(Null(), Readable), sorted(Null().sink_kinds(Table(columns=(), options={"connector": "null"})))
(False, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Literal

from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.settings.group import specs
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting
from hintplan.plans.settings.watermark import ONE_WATERMARK, WATERMARK_OPTIONS

IN_BATCHES = "SET 'execution.runtime-mode' = 'batch', or read the data from their source"
"""The hint for a source that a stream cannot read."""

COLUMN_OPTIONS = "fields."
"""The prefix of options for a column: ``fields.<column>.<option>``."""

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
BATCHES_WRITE = "each micro-batch is written as it ends"
"""The reason why sinks do not flush buffers at intervals, as Flink's sinks do."""


class Connector:
    """The description of a connector, and its decisions about a table.

    - ``families`` are prefixes of options that end in a name chosen by the user.
    - ``column_options`` can be set for each column, after ``COLUMN_OPTIONS`` and the column's name.
    - ``metadata`` are the keys of METADATA columns.
    - ``extras`` are the extras of the hintplan package that lookups may need.
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

    name: ClassVar[str]
    description: ClassVar[str]
    options: ClassVar[tuple[Setting, ...]] = ()
    column_options: ClassVar[tuple[Setting, ...]] = ()
    families: ClassVar[tuple[str, ...]] = ()
    metadata: ClassVar[tuple[MetadataKey, ...]] = ()
    extras: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[Mapping[str, str]] = {}
    idle: ClassVar[Mapping[str, str]] = {}
    instead: ClassVar[Mapping[str, str]] = {}
    values: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    stands_in: ClassVar[Mapping[str, str]] = {}
    partitions: ClassVar[bool] = False
    times: ClassVar[TimesOfDay] = "never"
    by_program: ClassVar[bool] = False

    def check(self, path: str, table: Table) -> Iterable[Diagnostic]:
        """Yield the problems of several options together, or of options and columns, with paths below ``path``."""
        return ()

    def reaches(self, table: Table) -> Iterable[Place]:
        """Return the files and hosts that a checked table reads, writes or queries."""
        return ()

    def overlaps(self, source: Table, sink: Table) -> bool:
        """Return True if a scan of ``source`` might read rows written to ``sink``."""
        return False

    def extras_of(self, table: Table) -> tuple[str, ...]:
        """Return the extras of the hintplan package that a checked table needs for any use."""
        return ()

    def spark_package(self, table: Table, is_written: bool) -> str:
        """Return the package that Spark needs to read or write the table, and that PySpark does not include.

        The package is a group and artefact in Maven's repositories, which Spark publishes with each version.
        """
        return ""

    def why_idle(self, option: str) -> str | None:
        """Return the reason why ``option`` has no effect, or None if it may have one."""
        names = (option, *(name for name in self.idle if name.endswith(".") and option.startswith(name)))
        return next((self.idle[name] for name in names if name in self.idle), None)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Return the options of WITH, except families and column options."""
        return specs(*self.options)


class Readable(Connector):
    """A connector whose tables can be scanned.

    - ``bounding_option`` is the option that makes an unbounded scan end.
    - ``takes_what_is_there``: a run with ``--once`` can stop, although the scan is unbounded.
    - ``in_streams`` is false for a source that only batch jobs can read.
    - ``reads_once``: a stream reads the whole table in its first micro-batch.
    - ``suggested_as_source``: hints suggest the connector where a source is needed.
    - ``reads_current_rows``: a scan queries the current rows of a system, so a replayed batch might get other rows.
    - ``splits``: the rows of a table come from splits, such as the partitions of a topic, whose times advance apart.
    - ``read_in_pieces``: Spark reads the pieces of the table in any order, so several tasks may get the changes of one
      key.
    - ``read_in_arrow``: workers can read tables in Arrow for operators with state, unless ``why_spark_reads`` has a
      reason.
    """

    bounding_option: ClassVar[str] = ""
    takes_what_is_there: ClassVar[bool] = False
    in_streams: ClassVar[bool] = True
    reads_once: ClassVar[bool] = False
    suggested_as_source: ClassVar[bool] = False
    reads_current_rows: ClassVar[bool] = False
    read_in_pieces: ClassVar[bool] = False
    splits: ClassVar[bool] = False
    read_in_arrow: ClassVar[bool] = False

    def source_kinds(self, table: Table) -> RowKinds:
        """Return the row kinds that a scan of the table emits."""
        return INSERT_ONLY

    def is_bounded(self, table: Table) -> bool:
        """Return True if a scan of the table ends."""
        return True

    def has_last_row(self, table: Table) -> bool:
        """Return True if a stream of the table has a row after which no other can come, which the source knows."""
        return False

    def check_scan(self, path: str, table: Table) -> Iterable[Diagnostic]:
        """Yield the problems that matter only to a scan, with paths below ``path``."""
        return ()

    def why_spark_reads(self, table: Table, columns: Collection[str]) -> str | None:
        """Return the reason why Spark reads these ``columns``, or None if workers can read them in Arrow."""
        return None

    def takes_filters(self, table: Table) -> bool:
        """Return True if the source evaluates simple conditions (predicate pushdown)."""
        return False

    def why_idle(self, option: str) -> str | None:
        """Return the reason why ``option`` has no effect; of the options for watermarks, only some have one."""
        if option.startswith(_WATERMARKS):
            return None if option in WATERMARK_OPTIONS else ONE_WATERMARK
        return super().why_idle(option)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Return the options of WITH, and the options for the watermark of a table."""
        return {**super().settings, **WATERMARK_OPTIONS}


class Writable(Connector):
    """A connector whose tables can be sinks.

    - ``drops_rows``: the sink discards its rows.
    - ``destination`` is the option that names where the rows go.
    - ``writes_files``: the destination is a directory, in which Spark's file sink records the finished micro-batches.
    - ``overwrites``: a batch job can replace the rows of the table, or of partitions.
    - ``suggested_as_sink``: hints suggest the connector where a sink is needed.
    - ``updates_condition`` is the condition under which a sink takes updates, and empty if it always does. Unless it is
      None, hints suggest the connector where a sink for updates is needed.
    - ``updates_hint`` replaces that suggestion for a sink of this connector that takes inserts only.
    """

    drops_rows: ClassVar[bool] = False
    destination: ClassVar[str] = ""
    writes_files: ClassVar[bool] = False
    overwrites: ClassVar[bool] = False
    suggested_as_sink: ClassVar[bool] = False
    updates_condition: ClassVar[str | None] = None
    updates_hint: ClassVar[str] = ""

    def sink_kinds(self, table: Table) -> RowKinds:
        """Return the row kinds that the sink accepts, or none if this table cannot be written to."""
        return ALL_KINDS

    def upserts(self, table: Table) -> bool:
        """Return True if the sink replaces and deletes rows by the primary key."""
        return False


class LookedUp(Connector):
    """A connector whose tables lookup joins can use.

    - ``lookup_modes`` are the modes of the connector: ``sync`` and ``async`` pass one key or several per call, ``full``
      reads the whole table.
    - ``lookup_only`` describes the tables with a lookup, if some have none.
    - ``looked_up_by_users_code``: user code returns the rows, so they are checked against the columns.
    """

    lookup_modes: ClassVar[tuple[LookupMode, ...]]
    lookup_only: ClassVar[str] = ""
    looked_up_by_users_code: ClassVar[bool] = False

    def lookup_modes_of(self, table: Table) -> Iterable[LookupMode]:
        """Return the modes of one table."""
        return self.lookup_modes

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Return the options of WITH, and the options of a lookup cache."""
        return {**super().settings, **CACHING.settings}
