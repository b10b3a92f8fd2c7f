"""Asks Flink for the expressions of functions_of_rows.txt over the rows of function_values.py, of which it says what.

Writes functions_of_rows.json: the type and the value for each row, FAILS for one that fails, or the error of an
expression that Flink does not take. ``--missing`` asks only for what is not recorded yet. The file is written when all
answers are there. Runs in an environment of its own, which has apache-flink and nothing of ours:
``make flink-goldens``.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from function_values import FAILS, TABLES, ZONES
from py4j.protocol import Py4JJavaError
from pyflink.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from pyflink.table import utils as pyflink_values
from pyflink.util.exceptions import TableException
from recording import missing, recorded, replace
from values import plain

HERE = Path(__file__).parent
RECORDED = HERE / "functions_of_rows.json"


_read_value = pyflink_values.pickled_bytes_to_python_converter


def _read_value_or_null(data: Any, kind: Any) -> Any:
    """A value that the JVM has sent; a NULL within an array, map or row is sent as no bytes, as one of a column is.

    PyFlink asks for no bytes in columns only, and has an EOFError for them within a value.
    """
    return None if isinstance(data, bytes | bytearray) and not data else _read_value(data, kind)


pyflink_values.pickled_bytes_to_python_converter = _read_value_or_null


def _moment(text: str) -> datetime | str:
    """A time, or the text of one that is beyond the years that Python has."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


_READ = {"FLOAT": float, "DOUBLE": float, "DATE": str, "TIMESTAMP": _moment, "TIMESTAMP_LTZ": _moment}
"""What PyFlink cannot read, NaN, parts of a millisecond and years beyond 9999, is read as text."""
_AT_ONCE = 25
_REFUSALS = (Py4JJavaError, TableException)
"""What Flink itself raises; that there is no JVM any more is no answer."""
_UNREADABLE = (EOFError, pickle.UnpicklingError)
"""What PyFlink raises at a value that it cannot read; that is no answer of Flink."""


def expressions() -> Iterator[tuple[str, str]]:
    """Table and expression, in the order of the file."""
    table = ""
    for line in (HERE / "functions_of_rows.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        elif line and not line.startswith("#"):
            yield table, line


def environment() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    made.get_config().set("parallelism.default", "1")
    for name, (columns, rows) in TABLES.items():
        fields = [DataTypes.FIELD("n", DataTypes.INT()), *(DataTypes.FIELD(c, DataTypes.STRING()) for c in columns)]
        given = made.from_elements([(i, *row) for i, row in enumerate(rows)], DataTypes.ROW(fields))
        typed = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in columns.items())
        made.create_temporary_view(name, made.sql_query(f"SELECT n, {typed} FROM {given}"))
    return made


def types_of(table: Table) -> list[str]:
    found = [each.toString() for each in table._j_table.getResolvedSchema().getColumnDataTypes()]
    return [each.removesuffix(" NOT NULL") for each in found[1:]]


def asked(tables: TableEnvironment, name: str, chosen: list[str], where: str = "") -> tuple[list[str], list[list[Any]]]:
    """Types and, of each row, the values."""
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(chosen))
    table = tables.sql_query(f"SELECT n, {columns} FROM {name}{where}")
    types = types_of(table)
    shown = ", ".join(
        f"CAST(c{i} AS STRING) AS c{i}" if kind.partition("(")[0] in _READ else f"c{i}" for i, kind in enumerate(types)
    )
    table = tables.sql_query(f"SELECT n, {shown} FROM {table}")
    readers = [_READ.get(kind.partition("(")[0], lambda value: value) for kind in types]
    with table.execute().collect() as found:
        rows = sorted((list(row) for row in found), key=lambda row: row[0])
    return types, [
        [None if value is None else plain(read(value)) for read, value in zip(readers, row[1:], strict=True)]
        for row in rows
    ]


def answers(tables: TableEnvironment, name: str, chosen: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each expression with its answer: those that Flink takes are computed together, unless one fails."""
    taken = []
    for text in chosen:
        try:
            tables.sql_query(f"SELECT n, {text} AS c FROM {name}").explain()
            taken.append(text)
        except _REFUSALS as error:
            reasons = [line for line in str(error).splitlines() if "Exception" in line or "Error" in line]
            yield text, {"error": (reasons or [str(error)])[-1].strip()}
    yield from computed(tables, name, taken)


def computed(tables: TableEnvironment, name: str, chosen: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = len(TABLES[name][1])
    if not chosen:
        return
    try:
        types, found = asked(tables, name, chosen)
    except (*_REFUSALS, *_UNREADABLE) as error:
        if isinstance(error, _UNREADABLE) and len(chosen) == 1:
            sys.exit(
                f"PyFlink cannot read what {chosen[0]} is over '{name}': write JSON_STRING of it, or CAST AS STRING"
            )
        if len(chosen) > 1:
            yield from computed(tables, name, chosen[: len(chosen) // 2])
            yield from computed(tables, name, chosen[len(chosen) // 2 :])
        else:
            values = list(values_of(tables, name, chosen[0], 0, rows))
            kind = next((kind for kind, _ in values if kind), None)
            answer = {"error": str(error).splitlines()[-1].strip()} if kind is None else {"type": kind}
            yield chosen[0], answer | ({} if kind is None else {"values": [value for _, value in values]})
        return
    for i, text in enumerate(chosen):
        yield text, {"type": types[i], "values": [row[i] for row in found]}


def values_of(tables: TableEnvironment, name: str, text: str, start: int, stop: int) -> Iterator[tuple[str, Any]]:
    """Type and value of each row, FAILS where it fails."""
    try:
        (kind,), rows = asked(tables, name, [text], f" WHERE n >= {start} AND n < {stop}")
        yield from ((kind, row[0]) for row in rows)
    except _REFUSALS:
        if stop - start == 1:
            yield "", FAILS
            return
        middle = (start + stop) // 2
        yield from values_of(tables, name, text, start, middle)
        yield from values_of(tables, name, text, middle, stop)


def main() -> None:
    known, tables, wanted = recorded(RECORDED), environment(), list(expressions())
    answered: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for name, _ in wanted):
        tables.get_config().set("table.local-time-zone", ZONES.get(name, "UTC"))
        texts = [text for table, text in wanted if table == name]
        new, found = missing(known.get(name, {}), texts)
        for start in range(0, len(new), _AT_ONCE):
            found |= answers(tables, name, new[start : start + _AT_ONCE])
            print(f"{name}: {min(start + _AT_ONCE, len(new))} of {len(new)}", file=sys.stderr)
        answered[name] = {text: found[text] for text in texts}
    replace(RECORDED, as_json(answered))


def as_json(answered: dict[str, dict[str, Any]]) -> str:
    parts = []
    for name, found in answered.items():
        lines = (f"  {_json(text)}: {_json(answer)}" for text, answer in found.items())
        parts.append(f" {_json(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


if __name__ == "__main__":
    main()
