"""The processor time of reading and writing a message in each format, in batches and one by one, without a broker.

    python benchmarks/messages.py                     # 50,000 messages of five columns

A message has a BIGINT, a STRING, a DECIMAL(10, 2), an INT and a TIMESTAMP(3). One in a hundred decimals is a whole
number, and may have an exponent in JSON. Changes are inserts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.tables import TableColumn
from hintplan.runtime.connectors.messages import registry
from hintplan.runtime.connectors.messages.avro_values import avro_schema
from hintplan.runtime.connectors.messages.change_avro import envelope_of
from hintplan.runtime.connectors.messages.formats import batch_encoder, change_encoder
from hintplan.runtime.connectors.messages.rows import Messages
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import INSERT
from hintplan.runtime.types import to_arrow

COLUMNS = {"id": "BIGINT", "name": "STRING", "price": "DECIMAL(10, 2)", "amount": "INT", "at": "TIMESTAMP(3)"}
FORMATS = ("json", "csv", "debezium-json", "canal-json", "avro", "avro-confluent", "debezium-avro-confluent")
BATCH = 10_000
SCHEMA = 1


def rows(count: int) -> pa.RecordBatch:
    start = datetime(2026, 1, 1)
    columns = (
        range(count),
        (f"name {number % 977}" for number in range(count)),
        (Decimal(number * 100 if number % 100 == 0 else number % 9999 + 1) / 100 for number in range(count)),
        (number % 50 for number in range(count)),
        (start + timedelta(milliseconds=137 * number) for number in range(count)),
    )
    described = zip(columns, COLUMNS.values(), strict=True)
    arrays = [pa.array(list(values), to_arrow(kind)) for values, kind in described]
    return pa.record_batch(arrays, names=list(COLUMNS))


def part_of(format_: str) -> Part:
    columns = tuple(TableColumn(name=name, type=kind) for name, kind in COLUMNS.items())
    options = {} if format_ == "avro" else {f"{format_}.url": "http://registry:8081"}
    return Part(format=format_, columns=columns, fields=tuple(COLUMNS), options=options)


def microseconds(run: Callable[[], object], count: int) -> float:
    """The processor time of a message, the least of three runs."""
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return least / count * 1e6


def measure(format_: str, batch: pa.RecordBatch) -> tuple[float, float, float, float]:
    """Microseconds of writing a message one by one and in batches, and of reading it one by one and in batches."""
    part, count, kinds = part_of(format_), batch.num_rows, [INSERT] * batch.num_rows
    schema = None
    if format_.endswith("confluent"):
        schema = SCHEMA
        text = json.dumps(envelope_of(part) if format_.startswith("debezium") else avro_schema(part))
        registry._schema = lambda *_: text  # type: ignore[assignment]
    one, many = change_encoder(part, schema), batch_encoder(part, schema)
    batches = [batch.slice(start, BATCH) for start in range(0, count, BATCH)]

    def write_rows() -> Sequence[bytes | None]:
        found: list[bytes | None] = []
        for each in batches:
            values = zip(*(each.column(name).to_pylist() for name in COLUMNS), strict=True)
            found += [one(kind, row) for kind, row in zip(kinds, values, strict=False)]
        return found

    messages = Messages(
        table="t", columns=tuple(COLUMNS), key=None, value=part, upserts=False, changes=True, ordered=True, topic="t"
    )
    values = [many(each, [INSERT] * each.num_rows) for each in batches]
    inputs = [
        pa.record_batch(
            {
                "value": each,
                "partition": pa.array([0] * len(each), pa.int32()),
                "offset": pa.array(range(len(each)), pa.int64()),
            }
        )
        for each in values
    ]
    by_row = messages._row_reader()
    return (
        microseconds(write_rows, count),
        microseconds(lambda: [many(each, [INSERT] * each.num_rows) for each in batches], count),
        microseconds(lambda: [by_row(each) for each in inputs], count),
        microseconds(lambda: [table.num_rows for table in messages.read(inputs, Report())], count),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--formats", default=",".join(FORMATS))
    options = parser.parse_args(arguments)
    batch = rows(options.messages)
    print("µs of processor time a message | write one by one | in batches | read one by one | in batches")
    for format_ in options.formats.split(","):
        written = " | ".join(f"{each:6.2f}" for each in measure(format_, batch))
        print(f"{format_:30} | {written}", flush=True)


if __name__ == "__main__":
    main()
