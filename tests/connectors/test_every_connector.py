"""Every connector is complete, in its own files, and nothing outside of them knows it by its name.

That editors offer all of them is tests/plans/format/test_editor_schema.py's, the defaults in their documentation
tests/docs/test_docs.py's.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import hintplan.plans.connectors
from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.connector import Connector, LookedUp, Readable, Writable
from hintplan.plans.connectors.options import bad_value
from hintplan.plans.connectors.table import (
    CONNECTORS,
    can_lookup,
    can_read,
    can_write,
    is_bounded,
    is_read_in_streams,
    overwrites,
    writes_files,
)
from hintplan.plans.declarations.tables import Column, Table, TableColumn
from hintplan.runtime.connectors.connector import (
    CountingSink,
    LookupTable,
    OverwritingSink,
    StreamSource,
    TableSink,
    TableSource,
)
from hintplan.runtime.connectors.table import CODE, lookup_source
from hintplan.runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction
from hintplan.runtime.lookup.source import open_source

ROOT = Path(__file__).parent.parent.parent
CLASSES = "tests.connectors.test_every_connector"
SHAPES = {"sync": LookupFunction, "async": AsyncLookupFunction, "full": ScanFunction}

_NAMES = {"catalog-name": "c", "catalog-database": "d", "catalog-table": "t"}
OPTIONS: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "blackhole": ({},),
    "dataframe": ({},),
    "datagen": ({"number-of-rows": "1"}, {}),
    "delta": ({"table-path": "/t"},),
    "filesystem": tuple({"path": "/o", "format": name} for name in ("json", "csv", "parquet", "orc", "avro")),
    "http": ({"url": "https://example.com/{id}"},),
    "iceberg": (
        {**_NAMES, "catalog-type": "jdbc", "uri": "jdbc:sqlite:/c.db", "warehouse": "/w"},
        {**_NAMES, "catalog-type": "rest", "uri": "https://example.com", "location": "s3://lake/t"},
    ),
    "jdbc": (
        {"url": "jdbc:sqlite:x.db", "table-name": "t"},
        {"url": "jdbc:postgresql://localhost/d", "table-name": "t"},
        {"url": "jdbc:mysql://localhost/d", "table-name": "t"},
    ),
    "kafka": (
        {"properties.bootstrap.servers": "localhost:9092", "topic": "t", "value.format": "json"},
        {
            "properties.bootstrap.servers": "localhost:9092",
            "topic": "t",
            "format": "debezium-json",
            "scan.bounded.mode": "latest-offset",
        },
    ),
    "print": ({},),
    "python": (
        {"class": f"{CLASSES}.OneByOne", "async-class": f"{CLASSES}.Awaited", "scan-class": f"{CLASSES}.Whole"},
    ),
    "redis": ({"host": "localhost", "key-pattern": "{id}"},),
    "upsert-kafka": (
        {
            "properties.bootstrap.servers": "localhost:9092",
            "topic": "t",
            "key.format": "json",
            "value.format": "json",
        },
    ),
}
"""A table of each kind that a connector tells apart."""

NEED_A_KEY = ("upsert-kafka",)
"""Connectors whose tables have a primary key."""

COMMITTED_BY = {"delta": "deltalake>=", "iceberg": "pyiceberg["}
"""Connectors whose sinks need a package on the driver, and its requirement."""

TABLES = [
    pytest.param(Table(columns=(TableColumn(name="id", type="INT"), TableColumn(name="v", type="STRING")),
                       primary_key=("id",) if name in NEED_A_KEY else (),
                       options={"connector": name, **options}), id=f"{name}-{number}")
    for name, each in OPTIONS.items() for number, options in enumerate(each)
]  # fmt: skip

OTHER_MEANINGS = {
    ("plans/connectors/filesystem.py", "kafka"): "an extra of the distribution",
    ("plans/connectors/lakes/catalogs.py", "jdbc"): "a kind of catalog",
    ("plans/connectors/policy.py", "http"): "the scheme of a url",
    ("plans/connectors/reach.py", "http"): "the scheme of a url",
    ("runtime/jvm/class_archive.py", "filesystem"): "in a script that is run",
    ("runtime/jvm/class_archive.py", "print"): "in a script that is run",
    ("runtime/metrics/exporter.py", "http"): "the scheme of a url",
    ("runtime/stores.py", "http"): "the scheme of a url",
}
"""Where a text is the name of a connector, and means something else."""


class OneByOne(LookupFunction):
    def lookup(self, key):
        return []


class Awaited(AsyncLookupFunction):
    async def lookup(self, key):
        return []


class Whole(ScanFunction):
    def scan(self, context):
        yield from ()


def own_modules() -> dict[str, str]:
    """The connectors by the name of the module in ``plans/connectors`` that holds their descriptor."""
    found = {}
    for path in Path(hintplan.plans.connectors.__path__[0]).glob("*.py"):
        module = importlib.import_module(f"hintplan.plans.connectors.{path.stem}".removesuffix(".__init__"))
        own = [value for value in vars(module).values() if isinstance(value, Connector)]
        if path.stem != "table" and own:
            (connector,) = own
            found[path.stem] = connector.name
    return found


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the connector of each text of a module that is or quotes a connector's name; not of docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            for name in CONNECTORS:
                if node.value == name or re.search(rf"['\"]{name}['\"]", node.value):
                    yield node.lineno, name


def test_every_connector_has_a_file_in_plans_and_a_file_or_folder_of_that_name_in_runtime():
    found = own_modules()
    assert sorted(found.values()) == sorted(CONNECTORS)
    assert {
        name: importlib.import_module(f"hintplan.runtime.connectors.{stem}").CODE for stem, name in found.items()
    } == CODE
    assert {name: code.connector for name, code in CODE.items()} == CONNECTORS


def test_no_other_module_names_a_connector():
    own = own_modules()
    found, used = [], set()
    for package in ("plans", "planner", "runtime"):
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT)
            home = own.get(place.with_suffix("").parts[2]) if place.parts[1] == "connectors" else None
            for line, name in names_in(path):
                if place == Path("plans/connectors/table.py"):
                    continue  # the list of them, by which each is imported when a plan has it
                if (str(place), name) in OTHER_MEANINGS:
                    used.add((str(place), name))
                elif name != home:
                    found.append(f"{place}:{line} names {name}")
    assert found == []
    assert used == set(OTHER_MEANINGS)


@pytest.mark.parametrize("connector", CONNECTORS.values(), ids=CONNECTORS)
def test_every_option_has_a_name_of_its_own_a_description_and_a_default_that_may_be_written(connector):
    options = (*connector.options, *connector.column_options)
    assert len({option.name for option in options}) == len(options)
    assert connector.description.endswith(".")
    for option in options:
        assert option.description.endswith("."), option.name
        assert "\n" not in option.description
        assert option.default is None or bad_value(option, option.default) is None


@pytest.mark.parametrize("connector", CONNECTORS.values(), ids=CONNECTORS)
def test_the_page_of_connectors_says_what_it_can_and_names_its_options(connector):
    folder = ROOT / "docs" / "connectors"
    index = (folder / "index.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| \[`{connector.name}`\]\({connector.name}\.md\) \|(.*)$", index, re.MULTILINE)
    reads, writes, looks_up, *_ = [cell.strip() for cell in row.split("|")]
    ways = [isinstance(connector, ability) for ability in (Readable, Writable, LookedUp)]
    assert [bool(cell) for cell in (reads, writes, looks_up)] == ways
    names = (connector.name, "kafka-formats") if connector.name == "kafka" else (connector.name,)
    page = "".join((folder / f"{name}.md").read_text(encoding="utf-8") for name in names)
    assert [o.name for o in connector.options if f"`{o.name}`" not in page] == []
    assert [o.name for o in connector.column_options if f"`fields.<column>.{o.name}`" not in page] == []


def test_there_is_a_table_of_every_connector():
    assert set(OPTIONS) == set(CONNECTORS)


@pytest.mark.parametrize("table", TABLES)
def test_the_runtime_has_code_for_what_a_connector_says_it_can(table):
    assert check_table("t", table) == ()
    connector, code = CONNECTORS[table.options["connector"]], CODE[table.options["connector"]]
    reads, writes = isinstance(connector, Readable), isinstance(connector, Writable)
    assert isinstance(code, StreamSource) == is_read_in_streams(table)
    assert (isinstance(code, TableSource), isinstance(code, TableSink)) == (reads, writes)
    assert isinstance(code, LookupTable) == isinstance(connector, LookedUp)
    assert isinstance(code, OverwritingSink) == overwrites(table)
    assert can_read(table) == reads
    assert writes or not can_write(table)
    if writes_files(table):
        assert isinstance(code, CountingSink)
        assert code.counts_every_batch(table)
    if not is_bounded(table):
        assert isinstance(connector, Readable)
        assert connector.bounding_option in {option.name for option in connector.options}
    if isinstance(connector, Writable) and connector.destination:
        assert connector.destination in {option.name for option in connector.options}


@pytest.mark.parametrize("table", [table for table in TABLES if can_lookup(table.values[0])])
def test_the_runtime_looks_up_in_the_modes_that_a_connector_says(table):
    source = lookup_source(table.options)
    assert set(source.modes) == can_lookup(table)
    connector = CONNECTORS[table.options["connector"]]
    assert isinstance(connector, LookedUp)
    assert can_lookup(table) <= set(connector.lookup_modes)
    columns = tuple(Column(name=column.name, type=column.type) for column in table.columns)
    where = LookupContext(
        table="t", options=table.options, keys=columns[:1], columns=columns, declared=columns,
        allowed_modules=(CLASSES,),
    )  # fmt: skip
    for mode in source.modes:
        source.check(mode, where)
        assert isinstance(open_source(source, mode, where), SHAPES[mode])


@pytest.mark.parametrize("connector", CONNECTORS.values(), ids=CONNECTORS)
def test_the_distribution_has_the_extra_that_a_connector_needs(connector):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tables = [{"connector": connector.name, **options} for options in OPTIONS[connector.name]]
    needs = [lookup_source(options) for options in tables if isinstance(connector, LookedUp)]
    if connector.name in COMMITTED_BY:
        assert set(connector.extras) == {connector.name}
        assert extras[connector.name][0].startswith(COMMITTED_BY[connector.name])
        return
    assert {source.extra for source in needs if source.packages} == set(connector.extras)
    assert set(connector.extras) <= set(extras)
    installed = {re.match(r"[\w-]+", requirement)[0] for extra in connector.extras for requirement in extras[extra]}
    packages = {package.partition("_")[0] for source in needs for package in source.packages}
    assert packages == installed
