"""Runs the programs of aggregate_functions.py with PyFlink, and writes what is left of their changelogs.

The rows are those of programs/tables.py. Runs where record_programs.py does: ``.flink/bin/python
tests/flink/record_aggregates.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from aggregate_functions import PROGRAMS, TYPES
from pyflink.common import Row
from pyflink.table import DataTypes
from pyflink.table.udf import AggregateFunction, udaf
from record_programs import result, with_rows

RECORDED = Path(__file__).parent / "aggregates.json"
_TYPES = {
    "BIGINT": DataTypes.BIGINT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "STRING": DataTypes.STRING(),
    "ARRAY<STRING>": DataTypes.ARRAY(DataTypes.STRING()),
}


def in_flink(cls: type[Any], fields: dict[str, str], returned: str) -> Any:
    """The function as PyFlink has it: its accumulator is a Row."""

    class Function(cls, AggregateFunction):  # type: ignore[misc]
        def create_accumulator(self) -> Row:
            return Row(*super().create_accumulator())

        def get_result_type(self) -> Any:
            return _TYPES[returned]

        def get_accumulator_type(self) -> Any:
            return DataTypes.ROW([DataTypes.FIELD(name, _TYPES[kind]) for name, kind in fields.items()])

    return udaf(Function())


def main() -> None:
    tables = with_rows()
    tables.get_config().set("python.executable", sys.executable)
    for name, (cls, _, fields, returned) in TYPES.items():
        tables.create_temporary_function(name, in_flink(cls, fields, returned))
    lines = []
    for name, (_, query) in PROGRAMS.items():
        lines.append(f"  {json.dumps(name)}: {json.dumps(result(tables, query))}")
        print(f"{len(lines)} of {len(PROGRAMS)} programs: {name}", file=sys.stderr)
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
