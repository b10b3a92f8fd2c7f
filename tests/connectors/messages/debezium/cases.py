"""How tables are declared over what Debezium wrote: what was recorded, the table, its columns and its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
COLUMN = re.compile(r"`?(\w+)`? ([A-Z_]+(?:\([\d, ]+\))?)")
"""A column in ``columns``: its name and its type."""
ORDERS = (
    "id BIGINT, customer BIGINT, price {}, weight DOUBLE, small SMALLINT, ratio FLOAT, `day` {}, `at` {}, "
    "seen TIMESTAMP_LTZ(6), code STRING, `raw` BYTES"
)
CUSTOMERS = "id BIGINT, name STRING, vip BOOLEAN, token STRING, extra STRING, made BIGINT"
NOTES = "id BIGINT, done BOOLEAN, text STRING"
VISITS = "id BIGINT, page STRING"
TAGS = "id BIGINT, tag STRING, text STRING"
ISO = {"timestamp-format.standard": "ISO-8601"}
WRAPPED = {"schema-include": "true"}
LENIENT = {"ignore-parse-errors": "true"}


class Case(NamedTuple):
    mode: str
    table: str
    columns: str
    options: dict[str, str]


CASES = {
    "decimals as bytes": Case("defaults", "orders", ORDERS.format("BYTES", "INT", "BIGINT"), ISO),
    "bytes as decimals": Case("defaults", "orders", ORDERS.format("DECIMAL(10, 2)", "INT", "BIGINT"), ISO),
    "bytes as decimals, lenient": Case(
        "defaults", "orders", ORDERS.format("DECIMAL(10, 2)", "INT", "BIGINT"), ISO | LENIENT
    ),
    "numbers as times": Case("defaults", "orders", ORDERS.format("BYTES", "DATE", "TIMESTAMP(6)"), ISO),
    "times as SQL writes them": Case("defaults", "orders", ORDERS.format("BYTES", "INT", "BIGINT"), {}),
    "customers": Case("defaults", "customers", CUSTOMERS, {}),
    "notes": Case("defaults", "notes", NOTES, {}),
    "truncation left out": Case("defaults", "visits", VISITS, {}),
    "no rows before": Case("defaults", "tags", TAGS, {}),
    "no rows before, lenient": Case("defaults", "tags", TAGS, LENIENT),
    "no schema": Case("defaults", "visits", VISITS, WRAPPED),
    "decimals as text": Case("string", "orders", ORDERS.format("DECIMAL(10, 2)", "INT", "BIGINT"), ISO | WRAPPED),
    "customers with schema": Case("string", "customers", CUSTOMERS, WRAPPED),
    "no rows before, with schema": Case("string", "tags", TAGS, WRAPPED),
    "unexpected schema": Case("string", "visits", VISITS, {}),
    "unexpected schema, lenient": Case("string", "visits", VISITS, LENIENT),
    "times in ISO 8601": Case("double", "orders", ORDERS.format("DECIMAL(10, 2)", "STRING", "TIMESTAMP_LTZ(6)"), ISO),
    "days and times with a zone": Case("double", "orders", ORDERS.format("DOUBLE", "DATE", "TIMESTAMP(6)"), ISO),
    "days and times with a zone, lenient": Case(
        "double", "orders", ORDERS.format("DOUBLE", "DATE", "TIMESTAMP(6)"), ISO | LENIENT
    ),
    "truncation": Case("double", "visits", VISITS, {}),
    "truncation, lenient": Case("double", "visits", VISITS, LENIENT),
}


def messages(mode: str, table: str) -> list[tuple[str | None, str | None]]:
    """The keys and values of the messages of a table."""
    found = []
    for line in (HERE / f"{mode}.tsv").read_text(encoding="utf-8").splitlines():
        name, key, value = line.split("\t")
        if name == table:
            found.append((None if key == "null" else key, None if value == "null" else value))
    return found
