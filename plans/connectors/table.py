"""The connectors by name, and functions that answer questions about a table from its connector's descriptor.

Option names are Flink's. The runtime implements source and sink.

>>> table = Table(columns=(), options={"connector": "print"})
>>> can_read(table), sorted(sink_kinds(table))
(False, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from hintplan.plans.connectors.connector import Connector, LookedUp, Readable, Writable
from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKind, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.lazy import load

_HOMES = {
    "blackhole": "blackhole:BLACKHOLE",
    "dataframe": "dataframe:DATAFRAME",
    "datagen": "datagen:DATAGEN",
    "delta": "delta:DELTA",
    "filesystem": "filesystem:FILESYSTEM",
    "http": "http:HTTP",
    "iceberg": "iceberg:ICEBERG",
    "jdbc": "jdbc:JDBC",
    "kafka": "kafka:KAFKA",
    "print": "print_sink:PRINT",
    "python": "python:PYTHON",
    "redis": "redis:REDIS",
    "upsert-kafka": "upsert_kafka:UPSERT_KAFKA",
}
"""The module of each connector in this folder, and what it calls its descriptor."""


_TIME = re.compile(r"TIME(?!\w)")


class _Connectors(Mapping[str, Connector]):
    """Descriptors by the name of their connector, each imported when it is first used."""

    def __getitem__(self, name: str) -> Connector:
        connector: Connector = load(f"hintplan.plans.connectors.{_HOMES[name]}")
        return connector

    def __contains__(self, name: object) -> bool:
        return name in _HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


CONNECTORS: Mapping[str, Connector] = _Connectors()


def connector_of(table: Table) -> Connector | None:
    """Return the connector of the table, or None if it is unknown."""
    return CONNECTORS.get(table.options.get("connector", ""))


def can_read(table: Table) -> bool:
    """Return True if the table's connector supports scans."""
    return _source(table) is not None


def source_kinds(table: Table) -> RowKinds:
    """Return the row kinds that a scan of the table emits."""
    source = _source(table)
    return source.source_kinds(table) if source is not None else INSERT_ONLY


def is_read_in_pieces(table: Table) -> bool:
    """Return True if several tasks may get the changes of one key, in any order."""
    source = _source(table)
    return source is not None and source.read_in_pieces


def has_splits(table: Table) -> bool:
    """Return True if the rows of the table come from splits, whose times advance apart."""
    source = _source(table)
    return source is not None and source.splits


def reads_once(table: Table) -> bool:
    """Return True if a stream reads the whole table in its first micro-batch."""
    source = _source(table)
    return source is not None and source.reads_once


def has_last_row(table: Table) -> bool:
    """Return True if a stream of the table has a row after which no other can come, which the source knows."""
    source = _source(table)
    return source is not None and source.has_last_row(table)


def is_upsert_source(table: Table) -> bool:
    """Return True if a scan of the table emits upserts by its primary key."""
    return source_kinds(table) == UPSERT_KINDS


def is_bounded(table: Table) -> bool:
    """Return True if a scan of the table ends."""
    source = _source(table)
    return source is None or source.is_bounded(table)


def is_asked(table: Table) -> bool:
    """Return True if a repeated scan of the table may return other rows, because it queries current data."""
    source = _source(table)
    return source is not None and source.reads_current_rows


def takes_conditions(table: Table) -> bool:
    """Return True if the table supports predicate pushdown of simple conditions."""
    source = _source(table)
    return source is not None and source.takes_filters(table)


def has_reader_in_arrow(table: Table) -> bool:
    """Return True if workers can read tables of the connector in Arrow, unless :func:`why_spark_reads` has a reason."""
    source = _source(table)
    return source is not None and source.read_in_arrow


def why_spark_reads(table: Table, columns: Collection[str]) -> str | None:
    """Return the reason why Spark reads these ``columns`` of the table, or None if workers can read them in Arrow.

    A run may find a further reason, which the declaration of the table does not show.
    """
    source = _source(table)
    if source is None or not source.read_in_arrow:
        return "its connector has no reader in Arrow"
    for column in table.columns:
        if column.expression is None and _TIME.match(column.type):
            return f"TIME column {column.name}"
    return source.why_spark_reads(table, columns)


def check_reading(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Return the problems that matter to a scan only, with paths such as ``tables.orders.options.path``."""
    source = _source(table)
    return () if source is None else tuple(source.check_scan(f"tables.{name}.options", table))


def takes_what_is_there(table: Table) -> bool:
    """Return True if a run with ``--once`` ends."""
    source = _source(table)
    return is_bounded(table) or (source is not None and source.takes_what_is_there)


def spark_packages(tables: Mapping[str, Table], written: Collection[str]) -> tuple[str, ...]:
    """Return the packages that Spark needs for ``tables`` and PySpark does not include, each once.

    ``written`` are the names of the tables that have a sink.
    """
    packages = (
        connector.spark_package(table, name in written)
        for name, table in tables.items()
        if (connector := connector_of(table)) is not None
    )
    return tuple(sorted({package for package in packages if package}))


def is_read_in_streams(table: Table) -> bool:
    """Return True if streaming jobs can scan the table."""
    source = _source(table)
    return source is not None and source.in_streams


def extras_of(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the extras of the hintplan package that checked ``tables`` need, each once."""
    connectors = ((connector, table) for table in tables if (connector := connector_of(table)) is not None)
    return tuple(sorted({extra for connector, table in connectors for extra in connector.extras_of(table)}))


def bounding_option(table: Table) -> str:
    """Return the option that makes an unbounded scan of the table end, else an empty text."""
    source = _source(table)
    return source.bounding_option if source is not None else ""


def bounding_options() -> frozenset[str]:
    """Return the options of all connectors that make a scan end."""
    sources = (connector for connector in CONNECTORS.values() if isinstance(connector, Readable))
    return frozenset(source.bounding_option for source in sources) - {""}


def can_write(table: Table) -> bool:
    """Return True if a query can insert into the table."""
    return bool(sink_kinds(table))


def sink_kinds(table: Table) -> frozenset[RowKind]:
    """Return the row kinds that the table accepts as a sink. The set is empty if it cannot be written to."""
    sink = _sink(table)
    return frozenset(sink.sink_kinds(table) if sink is not None else ())


def is_upsert_sink(table: Table) -> bool:
    """Return True if the sink replaces and deletes rows by the table's primary key."""
    sink = _sink(table)
    return sink is not None and sink.upserts(table)


def overwrites(table: Table) -> bool:
    """Return True if a batch job can replace rows of the table (INSERT OVERWRITE)."""
    sink = _sink(table)
    return sink is not None and sink.overwrites


def overwriting_connectors() -> str:
    """Return the names of connectors whose sinks support INSERT OVERWRITE, for messages."""
    return ", ".join(sorted(n for n, c in CONNECTORS.items() if isinstance(c, Writable) and c.overwrites))


def drops_rows(table: Table) -> bool:
    """Return True if the sink discards its rows."""
    sink = _sink(table)
    return sink is not None and sink.drops_rows


def is_by_program(table: Table) -> bool:
    """Return True if the Python program that runs a plan provides or receives the table's rows."""
    connector = connector_of(table)
    return connector is not None and connector.by_program


def options_by_program() -> dict[str, str]:
    """Return the options of a table whose rows the Python program provides or receives."""
    (connector,) = (connector for connector in CONNECTORS.values() if connector.by_program)
    return {"connector": connector.name}


def dropping_options() -> dict[str, str]:
    """Return the options of a table whose sink accepts and discards all changes."""
    return {"connector": next(name for name, c in CONNECTORS.items() if isinstance(c, Writable) and c.drops_rows)}


def sink_place(table: Table) -> str:
    """Return the destination of the sink's rows, as the table's options name it, else an empty text."""
    sink = _sink(table)
    return table.options.get(sink.destination, "") if sink is not None else ""


def writes_files(table: Table) -> bool:
    """Return True if the sink uses Spark's file sink, which records finished micro-batches in its directory."""
    sink = _sink(table)
    return sink is not None and sink.writes_files


def sink_directory(table: Table) -> str:
    """Return the directory in which the sink writes files, or an empty text if it writes none."""
    return sink_place(table).rstrip("/") if writes_files(table) else ""


def is_sink_directory(table: Table, option: str) -> bool:
    """Return True if ``option`` names the directory in which the sink writes files."""
    sink = _sink(table)
    return sink is not None and sink.writes_files and sink.destination == option


def can_lookup(table: Table) -> frozenset[LookupMode]:
    """Return the modes in which a lookup join can use the table. The set is empty if it cannot."""
    connector = connector_of(table)
    return frozenset(connector.lookup_modes_of(table)) if isinstance(connector, LookedUp) else frozenset()


def why_no_lookup(table: Table) -> str:
    """Return the reason why the table does not support lookups. A message appends it after a colon."""
    connector = connector_of(table)
    only = connector.lookup_only if isinstance(connector, LookedUp) else ""
    name = table.options.get("connector", "")
    return f"its connector is '{name}'" + (f", which looks up only {only}" if only else "")


def is_looked_up_by_users_code(table: Table) -> bool:
    """Return True if user code returns the rows of a lookup, so that they need a check against the columns."""
    connector = connector_of(table)
    return isinstance(connector, LookedUp) and connector.looked_up_by_users_code


def option(table: Table, name: str) -> str | None:
    """Return the value of an option of a checked table, or its default. Booleans and choices are in lower case."""
    spec = next(o for o in CONNECTORS[table.options["connector"]].options if o.name == name)
    value = table.options.get(name, spec.default)
    return None if value is None else str(value).lower() if spec.kind in ("bool", "choice") else str(value)


def places(table: Table) -> tuple[Place, ...]:
    """Return the files and hosts that a checked table reads, writes or queries."""
    connector = connector_of(table)
    return () if connector is None else tuple(connector.reaches(table))


def overlap(source: Table, sink: Table) -> bool:
    """Return True if a scan of ``source`` might read rows written to ``sink``."""
    connector = connector_of(source)
    return connector is not None and connector is connector_of(sink) and connector.overlaps(source, sink)


def in_order(options: Mapping[str, str]) -> dict[str, str]:
    """Return a table's ``options`` in the order of a plan.

    The connector comes first, then its own options in the order of their declaration, then the others by name.
    """
    spec = CONNECTORS.get(options.get("connector", ""))
    names = ("connector", *(own_option.name for own_option in spec.options)) if spec is not None else ("connector",)
    return {**{name: options[name] for name in names if name in options}, **dict(sorted(options.items()))}


def _source(table: Table) -> Readable | None:
    connector = connector_of(table)
    return connector if isinstance(connector, Readable) else None


def _sink(table: Table) -> Writable | None:
    connector = connector_of(table)
    return connector if isinstance(connector, Writable) else None
