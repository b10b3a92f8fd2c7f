"""The connectors by name, and functions that answer questions about a table from its connector's descriptor.

Option names are Flink's. The runtime implements reading and writing.

>>> table = Table(columns=(), options={"connector": "print"})
>>> can_read(table), sorted(sink_kinds(table))
(False, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from hintplan.plans.connectors.connector import Connector, Reading, Writing
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
    return _reading(table) is not None


def source_kinds(table: Table) -> RowKinds:
    """Return the row kinds that a scan of the table emits."""
    reading = _reading(table)
    return reading.kinds(table) if reading is not None else INSERT_ONLY


def is_read_in_pieces(table: Table) -> bool:
    """Return True if several tasks may get the changes of one key, in any order."""
    reading = _reading(table)
    return reading is not None and reading.in_pieces


def is_upsert_source(table: Table) -> bool:
    """Return True if a scan of the table emits upserts by its primary key."""
    return source_kinds(table) == UPSERT_KINDS


def is_bounded(table: Table) -> bool:
    """Return True if a scan of the table ends."""
    reading = _reading(table)
    return reading is None or reading.is_bounded(table)


def is_asked(table: Table) -> bool:
    """Return True if a repeated scan of the table may return other rows, because it queries current data."""
    reading = _reading(table)
    return reading is not None and reading.asks


def takes_conditions(table: Table) -> bool:
    """Return True if the table supports predicate pushdown of simple conditions."""
    reading = _reading(table)
    return reading is not None and reading.takes_conditions(table)


def check_reading(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Return the problems that matter to a scan only, with paths such as ``tables.orders.options.path``."""
    reading = _reading(table)
    return () if reading is None else tuple(reading.check(f"tables.{name}.options", table))


def takes_what_is_there(table: Table) -> bool:
    """Return True if a run with ``--once`` ends."""
    reading = _reading(table)
    return is_bounded(table) or (reading is not None and reading.takes_what_is_there)


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
    reading = _reading(table)
    return reading is not None and reading.in_streams


def extras_of(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the extras of the hintplan package that checked ``tables`` need, each once."""
    connectors = ((connector, table) for table in tables if (connector := connector_of(table)) is not None)
    return tuple(sorted({extra for connector, table in connectors for extra in connector.extras_of(table)}))


def bounding_option(table: Table) -> str:
    """Return the option that makes an unbounded scan of the table end, else an empty text."""
    reading = _reading(table)
    return reading.bounding_option if reading is not None else ""


def bounding_options() -> frozenset[str]:
    """Return the options of all connectors that make a scan end."""
    readings = (connector.reading for connector in CONNECTORS.values())
    return frozenset(reading.bounding_option for reading in readings if reading is not None) - {""}


def can_write(table: Table) -> bool:
    """Return True if a query can insert into the table."""
    return bool(sink_kinds(table))


def sink_kinds(table: Table) -> frozenset[RowKind]:
    """Return the row kinds that the table accepts as a sink. The set is empty if it cannot be written to."""
    writing = _writing(table)
    return frozenset(writing.kinds(table) if writing is not None else ())


def is_upsert_sink(table: Table) -> bool:
    """Return True if the sink replaces and deletes rows by the table's primary key."""
    writing = _writing(table)
    return writing is not None and writing.upserts(table)


def overwrites(table: Table) -> bool:
    """Return True if a batch job can replace rows of the table (INSERT OVERWRITE)."""
    writing = _writing(table)
    return writing is not None and writing.overwrites


def overwriting_connectors() -> str:
    """Return the names of connectors whose sinks support INSERT OVERWRITE, for messages."""
    return ", ".join(sorted(n for n, c in CONNECTORS.items() if c.writing is not None and c.writing.overwrites))


def drops_rows(table: Table) -> bool:
    """Return True if the sink discards its rows."""
    writing = _writing(table)
    return writing is not None and writing.drops_rows


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
    return {"connector": next(name for name, c in CONNECTORS.items() if c.writing is not None and c.writing.drops_rows)}


def sink_place(table: Table) -> str:
    """Return the destination of the sink's rows, as the table's options name it, else an empty text."""
    writing = _writing(table)
    return table.options.get(writing.place, "") if writing is not None else ""


def writes_files(table: Table) -> bool:
    """Return True if the sink uses Spark's file sink, which records finished micro-batches in its directory."""
    writing = _writing(table)
    return writing is not None and writing.writes_files


def sink_directory(table: Table) -> str:
    """Return the directory in which the sink writes files, or an empty text if it writes none."""
    return sink_place(table).rstrip("/") if writes_files(table) else ""


def is_sink_directory(table: Table, option: str) -> bool:
    """Return True if ``option`` names the directory in which the sink writes files."""
    writing = _writing(table)
    return writing is not None and writing.writes_files and writing.place == option


def can_lookup(table: Table) -> frozenset[LookupMode]:
    """Return the modes in which a lookup join can use the table. The set is empty if it cannot."""
    connector = connector_of(table)
    if connector is None or connector.looking_up is None:
        return frozenset()
    chosen = connector.looking_up.modes_of
    return frozenset(connector.looking_up.modes if chosen is None else chosen(table))


def why_no_lookup(table: Table) -> str:
    """Return the reason why the table does not support lookups. A message appends it after a colon."""
    connector = connector_of(table)
    only = connector.looking_up.only if connector is not None and connector.looking_up is not None else ""
    name = table.options.get("connector", "")
    return f"its connector is '{name}'" + (f", which looks up only {only}" if only else "")


def is_looked_up_by_users_code(table: Table) -> bool:
    """Return True if user code returns the rows of a lookup, so that they need a check against the columns."""
    connector = connector_of(table)
    return connector is not None and connector.looking_up is not None and connector.looking_up.by_users_code


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


def _reading(table: Table) -> Reading | None:
    connector = connector_of(table)
    return connector.reading if connector is not None else None


def _writing(table: Table) -> Writing | None:
    connector = connector_of(table)
    return connector.writing if connector is not None else None
