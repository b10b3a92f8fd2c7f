"""What Debezium writes of PostgreSQL, read as Flink reads it.

The messages are those of Debezium's own connector, by record.py; what must come out is Flink's answer, by
record_flink.py.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from plans.connectors.messages.formats import value_part
from plans.declarations.tables import Table, TableColumn
from runtime.connectors.messages.formats import changes_decoder
from runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from tests.connectors.messages.debezium.cases import CASES, COLUMN, HERE, Case, messages

FLINK = json.loads((HERE / "flink.json").read_text(encoding="utf-8"))
KINDS = {INSERT: "INSERT", UPDATE_BEFORE: "UPDATE_BEFORE", UPDATE_AFTER: "UPDATE_AFTER", DELETE: "DELETE"}


def decoder(case: Case) -> Any:
    columns = tuple(TableColumn(name=name, type=kind) for name, kind in COLUMN.findall(case.columns))
    options = {f"debezium-json.{name}": value for name, value in case.options.items()}
    table = Table(columns=columns, options={"connector": "kafka", "format": "debezium-json", **options})
    return changes_decoder(value_part(table), [column.name for column in columns])


def shown(value: Any) -> Any:
    """A value as record_flink.py writes it, but for numbers with a point."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return str(value) if isinstance(value, date | Decimal) else value


def told(value: Any, kind: str) -> Any:
    """A value of Flink's as :func:`shown`."""
    if value is None or kind not in ("FLOAT", "DOUBLE"):
        return value
    number = float(value)
    return struct.unpack("f", struct.pack("f", number))[0] if kind == "FLOAT" else number


def same(ours: Any, theirs: Any) -> bool:
    nan = isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours) and math.isnan(theirs)
    return nan or (type(ours) is type(theirs) and ours == theirs)


@pytest.mark.parametrize("name", CASES)
def test_messages_are_read_as_flink_reads_them(name: str) -> None:
    case, decode = CASES[name], decoder(CASES[name])
    kinds = [kind for _, kind in COLUMN.findall(case.columns)]
    found: list[list[Any] | None] = []
    for value in (value for _, value in messages(case.mode, case.table) if value is not None):
        try:
            found.append([[KINDS[kind], list(values)] for kind, values in decode(value.encode())])
        except ValueError:
            found.append(None)
    expected = FLINK[name]
    if len(expected) == 1:  # Flink has read all of them, as one file.
        assert None not in found
        found = [[change for changes in found for change in changes or ()]]
    assert [each is None for each in found] == [each is None for each in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert [kind for kind, _ in ours or ()] == [kind for kind, _ in theirs or ()]
        for (_, values), (_, wanted) in zip(ours or (), theirs or (), strict=True):
            for value, want, kind in zip(values, wanted, kinds, strict=True):
                assert same(shown(value), told(want, kind)), (value, want)
