"""What ``hintplan.plans.connectors.table`` accepts and refuses in a table's options."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.datagen import field_specs, row_limit
from hintplan.plans.connectors.table import can_read, can_write, is_upsert_sink, sink_kinds
from hintplan.plans.declarations.tables import Table, TableColumn

FILES = {"connector": "filesystem", "path": "data/orders", "format": "json"}
SQLITE = {"connector": "jdbc", "url": "jdbc:sqlite:out.db", "table-name": "result"}


def table(options: dict[str, str], *columns: str, key: tuple[str, ...] = ()) -> Table:
    declared = [column.split(" ", 1) for column in columns or ("id BIGINT",)]
    return Table(
        columns=tuple(TableColumn(name=name, type=type_) for name, type_ in declared), options=options, primary_key=key
    )


def findings(options: dict[str, str], *columns: str) -> list[str]:
    return [str(found) for found in check_table("t", table(options, *columns))]


@pytest.mark.parametrize(
    "options",
    [
        FILES,
        {**FILES, "source.max-files-per-trigger": "1", "json.ignore-parse-errors": "TRUE"},
        {**FILES, "format": "csv", "csv.field-delimiter": "\\t", "csv.null-literal": "", "csv.quote-character": "'"},
        {"connector": "print"},
        {"connector": "print", "print-identifier": "revenue"},
        {"connector": "blackhole"},
        {"connector": "datagen"},
        {"connector": "datagen", "number-of-rows": "0", "fields.id.min": "-5", "fields.id.max": "5"},
        SQLITE,
        {**SQLITE, "url": "jdbc:sqlite:dir/out.db", "username": "me", "password": "${env:DB_PASSWORD}"},
    ],
)
def test_a_table_as_flink_would_declare_it_is_accepted(options):
    assert findings(options) == []


def test_an_unknown_connector_is_refused_with_the_nearest_and_all_known_names():
    assert findings({"connector": "filesytem"}) == [
        "tables.t.options.connector: there is no connector 'filesytem'\n"
        "  hint: did you mean 'filesystem'? Supported are blackhole, dataframe, datagen, delta, filesystem, http, "
        "iceberg, "
        "jdbc, kafka, print, python, redis, upsert-kafka"
    ]


def test_a_table_without_a_connector_is_refused():
    assert findings({})[0].startswith("tables.t.options.connector: the table names no connector")


def test_an_unknown_option_is_refused_with_the_nearest_name():
    assert findings({**FILES, "source.max-file-per-trigger": "1"}) == [
        "tables.t.options.source.max-file-per-trigger: the filesystem connector has no option "
        "'source.max-file-per-trigger'\n  hint: did you mean 'source.max-files-per-trigger'?"
    ]


def test_a_missing_option_is_refused_by_name():
    assert findings({"connector": "filesystem", "path": "x"}) == [
        "tables.t.options.format: the filesystem connector needs the option 'format'\n"
        "  hint: add 'format' = one of csv, json, parquet, orc, avro, raw"
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"format": "jsn"},
            "'format' is 'jsn', expected one of csv, json, parquet, orc, avro, raw\n  hint: write 'json'",
        ),
        (
            {"format": "JSON"},
            "'format' is 'JSON', expected one of csv, json, parquet, orc, avro, raw\n  hint: write 'json'",
        ),
        ({"sink.changelog": "yes"}, "'sink.changelog' is 'yes', expected true or false"),
        ({"source.max-files-per-trigger": "0"}, "'source.max-files-per-trigger' is '0', expected a whole number of"),
        ({"source.max-files-per-trigger": "1.5"}, "is '1.5', expected a whole number of at least 1"),
        ({"path": " "}, "'path' is empty"),
        ({"path": "${HOME}/x"}, "'path' must not refer to the environment"),
        ({"path": "/data/${env:HOME}/x"}, "'path' must not refer to the environment: it is stored and shown"),
        ({"format": "csv", "csv.field-delimiter": "||"}, "'csv.field-delimiter' is '||', expected one character"),
        ({"csv.null-literal": "-"}, "'csv.null-literal' belongs to the format csv, but the table's format is json"),
        (
            {"format": "csv", "csv.quote-character": "'", "csv.disable-quote-character": "true"},
            "'csv.quote-character' cannot be set when 'csv.disable-quote-character' is true",
        ),
    ],
)
def test_a_bad_value_of_a_file_option_is_refused(changed, message):
    found = findings({**FILES, **changed})
    assert len(found) == 1
    assert message in found[0]


def test_a_csv_table_refuses_types_that_a_csv_file_cannot_hold():
    found = findings({**FILES, "format": "csv"}, "id BIGINT", "tags ARRAY<STRING>", "raw BYTES")
    assert [line.split("\n")[0] for line in found] == [
        "tables.t.options.connector: a CSV file cannot hold column 'tags' of type ARRAY<STRING>",
        "tables.t.options.connector: a CSV file cannot hold column 'raw' of type BYTES",
    ]


def test_a_changelog_of_files_refuses_a_column_called_op():
    assert "the table has a column of that name" in findings({**FILES, "sink.changelog": "true"}, "op STRING")[0]


def test_what_is_printed_cannot_refer_to_the_environment():
    # A plan is a file from a pull request: it must not be a way to print a variable of the run.
    assert findings({"connector": "print", "print-identifier": "${env:AWS_SECRET_ACCESS_KEY}"}) == [
        "tables.t.options.print-identifier: 'print-identifier' must not refer to the environment: it is stored and "
        "shown\n"
        "  hint: write the text itself"
    ]


def test_a_literal_password_is_refused_and_never_repeated():
    found = findings({**SQLITE, "password": "hunter2"})
    assert len(found) == 1
    assert found[0].startswith("tables.t.options.password: 'password' is a secret and must not be in the text")
    assert "hunter2" not in found[0]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:postgresql://me:secret@host/db", "a user does not belong into the url"),
        ("jdbc:mysql://me:secret@host/db", "a user does not belong into the url"),
        (
            "jdbc:oracle://me:secret@host/db",
            "jdbc:oracle: is not supported in this version; only jdbc:sqlite:<path> and",
        ),
        ("host/secret", "the url is not supported in this version; only jdbc:sqlite:<path> and"),
        ("jdbc:sqlite:", "jdbc:sqlite: must be followed by the path of a file"),
        ("jdbc:sqlite::memory:", "jdbc:sqlite: must be followed by the path of a file"),
        ("jdbc:sqlite:x.db?password=secret", "jdbc:sqlite: must be followed by the path of a file"),
    ],
)
def test_a_url_of_another_database_is_refused_without_repeating_it(url, message):
    found = findings({**SQLITE, "url": url})
    assert len(found) == 1
    assert message in found[0]
    assert "secret" not in found[0]


def test_an_sqlite_table_refuses_nested_types():
    assert "cannot hold column 'r' of type ROW<a INT>" in findings(SQLITE, "r ROW<a INT>")[0]


def test_a_database_refuses_a_computed_column_in_its_primary_key():
    columns = (TableColumn(name="id", type="INT"), TableColumn(name="k", type="INT", expression="id + 1"))
    (found,) = check_table("t", Table(columns=columns, options=SQLITE, primary_key=("id", "k")))
    assert "the primary key column 'k' is computed" in found.message


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"fields.idd.kind": "random"}, ("id INT",), "did you mean 'fields.id.kind'?"),
        ({"fields.id.mini": "1"}, ("id INT",), "did you mean 'fields.id.min'?"),
        ({"fields.id.kind": "serial"}, ("id INT",), "is 'serial', expected random or sequence"),
        ({"fields.id.kind": "sequence", "fields.id.start": "1"}, ("id INT",), "a sequence needs 'fields.id.end'"),
        ({"fields.id.max": "128"}, ("id TINYINT",), "'fields.id.max' is '128': type TINYINT cannot hold it"),
        ({"fields.id.max": "x"}, ("id INT",), "'fields.id.max' is 'x': expected a number"),
        ({"fields.id.max": "1.5"}, ("id INT",), "'fields.id.max' is '1.5': expected a number"),
        ({"fields.id.min": "3", "fields.id.max": "2"}, ("id INT",), "'fields.id.max' is less than 'fields.id.min'"),
        ({"fields.s.min": "3"}, ("s STRING",), "a random generator of type STRING has no 'min'"),
        ({"fields.s.length": "9"}, ("s VARCHAR(8)",), "'fields.s.length' is '9': expected 0 to 8"),
        ({"fields.b.kind": "sequence"}, ("b BOOLEAN",), "a sequence cannot fill column 'b' of type BOOLEAN"),
        ({}, ("a ARRAY<INT>",), "datagen has no generator for column 'a' of type ARRAY<INT>"),
        ({"rows-per-second": "0"}, ("id INT",), "'rows-per-second' is '0', expected a whole number of at least 1"),
    ],
)
def test_a_bad_generator_is_refused(options, columns, message):
    found = findings({"connector": "datagen", **options}, *columns)
    assert len(found) == 1
    assert message in found[0]


def test_a_sequence_bounds_the_table_as_number_of_rows_does():
    options = {"connector": "datagen", "fields.id.kind": "sequence", "fields.id.start": "5", "fields.id.end": "14"}
    assert row_limit(table(options)) == 10
    assert row_limit(table({**options, "number-of-rows": "3"})) == 3
    assert row_limit(table({"connector": "datagen"})) is None


def test_random_numbers_default_to_the_range_of_their_type_and_fractions_start_at_zero():
    small, fraction = field_specs(table({"connector": "datagen"}, "a TINYINT", "b DECIMAL(4, 2)"))
    assert (small.minimum, small.maximum) == (-128, 127)
    assert (str(fraction.minimum), str(fraction.maximum)) == ("0", "99.99")


@pytest.mark.parametrize(
    ("options", "key", "kinds"),
    [
        ({"connector": "print"}, (), {"+I", "-U", "+U", "-D"}),
        ({"connector": "blackhole"}, (), {"+I", "-U", "+U", "-D"}),
        (FILES, (), {"+I"}),
        ({**FILES, "sink.changelog": "True"}, (), {"+I", "-U", "+U", "-D"}),
        (SQLITE, (), {"+I"}),
        (SQLITE, ("id",), {"+I", "+U", "-D"}),
        ({"connector": "datagen"}, (), set()),
        ({"connector": "pulsar"}, (), set()),
    ],
)
def test_a_sink_takes_the_row_kinds_its_connector_can_write(options, key, kinds):
    assert sink_kinds(table(options, key=key)) == kinds


def test_only_a_jdbc_table_with_a_primary_key_upserts():
    assert is_upsert_sink(table(SQLITE, key=("id",)))
    assert not is_upsert_sink(table(SQLITE))
    assert not is_upsert_sink(table(FILES, key=("id",)))


def test_what_can_be_read():
    assert [can_read(table(o)) for o in (FILES, SQLITE, {"connector": "datagen"}, {"connector": "print"})] == [
        True,
        True,
        True,
        False,
    ]
    assert [can_write(table(o)) for o in (FILES, SQLITE, {"connector": "datagen"}, {"connector": "print"})] == [
        True,
        True,
        False,
        True,
    ]


def test_checking_options_loads_neither_spark_nor_arrow():
    code = (
        "import sys, hintplan.plans.connectors.table\n"
        "print([name for name in sys.modules if name in ('pyspark', 'pyarrow', 'sqlglot')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
