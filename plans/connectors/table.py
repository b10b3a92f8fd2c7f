"""The connectors by name, and what is asked of a table's connector: each has a file beside this one that answers.

Option names are Flink's. How a connector reads and writes belongs to the runtime.

>>> table = Table(columns=(), options={"connector": "print"})
>>> can_read(table), sorted(sink_kinds(table))
(False, ['+I', '+U', '-D', '-U'])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hintplan.plans.connectors.blackhole import BLACKHOLE
from hintplan.plans.connectors.connector import INSERT_ONLY, UPSERT_KINDS, Connector, Reading, Writing
from hintplan.plans.connectors.dataframe import DATAFRAME
from hintplan.plans.connectors.datagen import DATAGEN
from hintplan.plans.connectors.delta import DELTA
from hintplan.plans.connectors.filesystem import FILESYSTEM
from hintplan.plans.connectors.http import HTTP
from hintplan.plans.connectors.iceberg import ICEBERG
from hintplan.plans.connectors.jdbc import JDBC
from hintplan.plans.connectors.kafka import KAFKA
from hintplan.plans.connectors.print_sink import PRINT
from hintplan.plans.connectors.python import PYTHON
from hintplan.plans.connectors.reach import Place
from hintplan.plans.connectors.redis import REDIS
from hintplan.plans.connectors.upsert_kafka import UPSERT_KAFKA
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.row_kinds import RowKind
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

CONNECTORS: Mapping[str, Connector] = {
    connector.name: connector
    for connector in (
        BLACKHOLE,
        DATAFRAME,
        DATAGEN,
        DELTA,
        FILESYSTEM,
        HTTP,
        ICEBERG,
        JDBC,
        KAFKA,
        PRINT,
        PYTHON,
        REDIS,
        UPSERT_KAFKA,
    )
}


def connector_of(table: Table) -> Connector | None:
    """The connector that the table names, None if there is no such."""
    return CONNECTORS.get(table.options.get("connector", ""))


def can_read(table: Table) -> bool:
    """Whether the table's connector can be scanned."""
    return _reading(table) is not None


def source_kinds(table: Table) -> tuple[RowKind, ...]:
    """The row kinds that a scan of the table emits."""
    reading = _reading(table)
    return reading.kinds(table) if reading is not None else INSERT_ONLY


def is_read_in_pieces(table: Table) -> bool:
    """Whether changes of a key in the table may come to several tasks, in any order."""
    reading = _reading(table)
    return reading is not None and reading.in_pieces


def is_upsert_source(table: Table) -> bool:
    """Whether a scan of the table emits rows that replace each other by its primary key."""
    return source_kinds(table) == UPSERT_KINDS


def is_bounded(table: Table) -> bool:
    """Whether reading the table comes to an end."""
    reading = _reading(table)
    return reading is None or reading.is_bounded(table)


def is_asked(table: Table) -> bool:
    """Whether reading the table again would give the rows of another moment."""
    reading = _reading(table)
    return reading is not None and reading.asks


def takes_conditions(table: Table) -> bool:
    """Whether a scan of the table can ask for the rows alone for which a simple condition is true."""
    reading = _reading(table)
    return reading is not None and reading.takes_conditions(table)


def check_reading(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """What table ``name`` lacks to be read, with paths such as ``tables.orders.options.path``."""
    reading = _reading(table)
    return () if reading is None else tuple(reading.check(f"tables.{name}.options", table))


def takes_what_is_there(table: Table) -> bool:
    """Whether a run that takes what is there comes to an end."""
    reading = _reading(table)
    return is_bounded(table) or (reading is not None and reading.takes_what_is_there)


def spark_packages(tables: Mapping[str, Table], written: Collection[str]) -> tuple[str, ...]:
    """What Spark needs for ``tables``, some of them ``written``, besides what PySpark brings; each package once."""
    found = (
        connector.spark_package(table, name in written)
        for name, table in tables.items()
        if (connector := connector_of(table)) is not None
    )
    return tuple(sorted({package for package in found if package}))


def is_read_in_streams(table: Table) -> bool:
    """Whether jobs in streaming mode can scan the table."""
    reading = _reading(table)
    return reading is not None and reading.in_streams


def extras_of(tables: Iterable[Table]) -> tuple[str, ...]:
    """The extras of the distribution that checked ``tables`` need, each once."""
    found = ((connector, table) for table in tables if (connector := connector_of(table)) is not None)
    return tuple(sorted({extra for connector, table in found for extra in connector.extras_of(table)}))


def bounding_option(table: Table) -> str:
    """The option with which reading the table would end, if it does not; empty if there is none."""
    reading = _reading(table)
    return reading.bounding_option if reading is not None else ""


def bounding_options() -> frozenset[str]:
    """The options of all connectors with which reading ends."""
    readings = (connector.reading for connector in CONNECTORS.values())
    return frozenset(reading.bounding_option for reading in readings if reading is not None) - {""}


def can_write(table: Table) -> bool:
    """Whether the table can be inserted into."""
    return bool(sink_kinds(table))


def sink_kinds(table: Table) -> frozenset[RowKind]:
    """The row kinds the table accepts as a sink; empty if it cannot be written to."""
    writing = _writing(table)
    return frozenset(writing.kinds(table) if writing is not None else ())


def is_upsert_sink(table: Table) -> bool:
    """Whether the sink replaces and deletes rows by the table's primary key."""
    writing = _writing(table)
    return writing is not None and writing.upserts(table)


def overwrites(table: Table) -> bool:
    """Whether the sink of a batch job can take rows away that the table has, for its own."""
    writing = _writing(table)
    return writing is not None and writing.overwrites


def overwriting_connectors() -> str:
    """Those of which the sinks can, for messages."""
    return ", ".join(sorted(n for n, c in CONNECTORS.items() if c.writing is not None and c.writing.overwrites))


def drops_rows(table: Table) -> bool:
    """Whether the sink does nothing with rows."""
    writing = _writing(table)
    return writing is not None and writing.drops_rows


def is_by_program(table: Table) -> bool:
    """True if the Python program that runs a plan hands over what the table reads, or what takes its rows."""
    connector = connector_of(table)
    return connector is not None and connector.by_program


def options_by_program() -> dict[str, str]:
    """Return the options of a table whose rows the Python program hands over."""
    (connector,) = (connector for connector in CONNECTORS.values() if connector.by_program)
    return {"connector": connector.name}


def dropping_options() -> dict[str, str]:
    """The options of a table whose sink takes every change and does nothing with it."""
    return {"connector": next(name for name, c in CONNECTORS.items() if c.writing is not None and c.writing.drops_rows)}


def sink_place(table: Table) -> str:
    """Where the sink puts rows, as its options say it; empty if they do not."""
    writing = _writing(table)
    return table.options.get(writing.place, "") if writing is not None else ""


def writes_files(table: Table) -> bool:
    """Whether the sink writes files, of which Spark's file sink counts the micro-batches in their directory."""
    writing = _writing(table)
    return writing is not None and writing.writes_files


def sink_directory(table: Table) -> str:
    """The directory in which the sink writes files, empty if it writes none."""
    return sink_place(table).rstrip("/") if writes_files(table) else ""


def is_sink_directory(table: Table, option: str) -> bool:
    """Whether ``option`` says in which directory the sink writes files."""
    writing = _writing(table)
    return writing is not None and writing.writes_files and writing.place == option


def can_lookup(table: Table) -> frozenset[LookupMode]:
    """The modes in which a lookup join can use the table; empty if it cannot."""
    connector = connector_of(table)
    if connector is None or connector.looking_up is None:
        return frozenset()
    chosen = connector.looking_up.modes_of
    return frozenset(connector.looking_up.modes if chosen is None else chosen(table))


def why_no_lookup(table: Table) -> str:
    """Why the table cannot be looked up, if it cannot, after a colon."""
    connector = connector_of(table)
    only = connector.looking_up.only if connector is not None and connector.looking_up is not None else ""
    name = table.options.get("connector", "")
    return f"its connector is '{name}'" + (f", which looks up only {only}" if only else "")


def is_looked_up_by_users_code(table: Table) -> bool:
    """Whether rows that are looked up come from code of the user's, so that they are checked against the columns."""
    connector = connector_of(table)
    return connector is not None and connector.looking_up is not None and connector.looking_up.by_users_code


def option(table: Table, name: str) -> str | None:
    """The value of an option of a checked table, or its default; booleans come in lower case."""
    spec = next(o for o in CONNECTORS[table.options["connector"]].options if o.name == name)
    value = table.options.get(name, spec.default)
    return None if value is None else str(value).lower() if spec.kind in ("bool", "choice") else str(value)


def places(table: Table) -> tuple[Place, ...]:
    """What reading, writing or asking a checked table reaches."""
    connector = connector_of(table)
    return () if connector is None else tuple(connector.reaches(table))


def overlap(source: Table, sink: Table) -> bool:
    """Whether what is written to ``sink`` could be read from ``source``."""
    connector = connector_of(source)
    return connector is not None and connector is connector_of(sink) and connector.overlaps(source, sink)


def in_order(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` of a table as a plan lists them: the connector, its options in their order, then all others."""
    spec = CONNECTORS.get(options.get("connector", ""))
    known = ("connector", *(option.name for option in spec.options)) if spec is not None else ("connector",)
    return {**{name: options[name] for name in known if name in options}, **dict(sorted(options.items()))}


def _reading(table: Table) -> Reading | None:
    connector = connector_of(table)
    return connector.reading if connector is not None else None


def _writing(table: Table) -> Writing | None:
    connector = connector_of(table)
    return connector.writing if connector is not None else None
