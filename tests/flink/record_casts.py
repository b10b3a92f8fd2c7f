"""Asks Flink for CAST and TRY_CAST of the values in casts.py, and writes what came of each to casts.json.

Runs in an environment of its own, which has apache-flink and nothing of ours: ``make flink-goldens``. The values come
from rows, not from constants, which Flink's planner would compute by rules of its own. Arguments are names of columns,
if only those are to be asked for.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from casts import COLUMNS, FAILS, TARGETS
from py4j.protocol import Py4JJavaError
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException
from values import plain

RECORDED = Path(__file__).parent / "casts.json"
_TYPES = {
    "BOOLEAN": DataTypes.BOOLEAN(),
    "TINYINT": DataTypes.TINYINT(),
    "SMALLINT": DataTypes.SMALLINT(),
    "INT": DataTypes.INT(),
    "BIGINT": DataTypes.BIGINT(),
    "FLOAT": DataTypes.FLOAT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "DECIMAL(10, 2)": DataTypes.DECIMAL(10, 2),
    "DECIMAL(38, 0)": DataTypes.DECIMAL(38, 0),
    "DECIMAL(38, 18)": DataTypes.DECIMAL(38, 18),
    "DATE": DataTypes.DATE(),
    "TIMESTAMP(0)": DataTypes.STRING(),
    "TIMESTAMP(3)": DataTypes.STRING(),
    "TIMESTAMP(6)": DataTypes.STRING(),
    "TIMESTAMP_LTZ(3)": DataTypes.STRING(),
    "BYTES": DataTypes.BYTES(),
}


_READ = {
    "FLOAT": float,
    "DOUBLE": float,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMP_LTZ": datetime.fromisoformat,
}
"""What PyFlink cannot read, NaN and parts of a millisecond, is read as text."""


def given(value: Any) -> Any:
    """A value as PyFlink takes it."""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return bytearray(value) if isinstance(value, bytes) else value


def environment() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    made.get_config().set("parallelism.default", "1")
    made.get_config().set("table.local-time-zone", "UTC")
    return made


def answers(tables: TableEnvironment, function: str, kind: str, values: list[Any], target: str) -> list[Any] | None:
    """What becomes of each value, or FAILS; None if Flink takes no such cast."""
    rows = tables.from_elements(
        [(i, given(value)) for i, value in enumerate(values)],
        DataTypes.ROW([DataTypes.FIELD("i", DataTypes.INT()), DataTypes.FIELD("x", _TYPES[kind])]),
    )
    # A time of a precision, which from_elements has not.
    typed = tables.sql_query(f"SELECT i, CAST(x AS {kind}) AS x FROM {rows}")
    try:
        cast = tables.sql_query(f"SELECT i, {function}(x AS {target}) AS y FROM {typed}")
    except (Py4JJavaError, TableException) as error:
        if "Cast function cannot convert value" not in str(error):
            raise
        return None
    read = _READ.get(target.partition("(")[0], lambda value: value)
    if target.partition("(")[0] in _READ:
        cast = tables.sql_query(f"SELECT i, CAST(y AS STRING) AS y FROM {cast}")
    try:
        with cast.execute().collect() as found:
            rows_found = sorted((tuple(row) for row in found), key=lambda row: row[0])
            return [None if value is None else plain(read(value)) for _, value in rows_found]
    except (Py4JJavaError, TableException):
        if values == [None]:
            return None  # not even this
        if len(values) == 1:
            return [FAILS]
        if answers(tables, function, kind, [None], target) is None:
            return None
        return [one for v in values for one in answers(tables, function, kind, [v], target) or ()]


def main() -> None:
    chosen = sys.argv[1:] or list(COLUMNS)
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if sys.argv[1:] else {}
    recorded: dict[str, dict[str, Any]] = {name: known.get(name, {}) for name in COLUMNS}
    for name in chosen:
        kind, values = COLUMNS[name]
        for target in TARGETS:
            tables = environment()
            for function in ("CAST", "TRY_CAST"):
                found = answers(tables, function, kind, [*values, None], target)
                recorded[name][f"{function} {target}"] = found
        print(f"{name}: {chosen.index(name) + 1} of {len(chosen)}", file=sys.stderr)
        lines = [
            f"  {json.dumps(k)}: {{\n"
            + ",\n".join(
                f"   {json.dumps(cast)}: {json.dumps(found, ensure_ascii=False)}" for cast, found in of.items()
            )
            + "\n  }"
            for k, of in recorded.items()
            if of
        ]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
