"""Functions of JSON beside Flink's: the same documents from files, the same SQL, the same results.

    python benchmarks/json_functions.py                       # a million documents of some 200 bytes
    python benchmarks/json_functions.py --documents 200000 --queries value,query

Two values of each document (`value`), a part of it (`query`), a document made of columns (`object`), and those that are
documents (`filter`, a tenth is cut off). Engines take turns; each run is one streaming job from files of Parquet to
`blackhole`, in two cores. What the results have in common is compared once: their number and their lengths.
Flink runs as benchmarks/flink.py says.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.flink import HEAP, THROUGHPUT, Flink, flink_python
from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.spark.session import start_session

FILES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of ``docs``, with the columns of its result."""

    name: str
    columns: str
    text: str


QUERIES = (
    Query(
        name="value",
        columns="id BIGINT, country STRING, price STRING",
        text="SELECT id, JSON_VALUE(d, '$.customer.country'), JSON_VALUE(d, 'lax $.items[0].price') FROM docs",
    ),
    Query(name="query", columns="id BIGINT, items STRING", text="SELECT id, JSON_QUERY(d, '$.items') FROM docs"),
    Query(
        name="object",
        columns="id BIGINT, made STRING",
        text="SELECT id, JSON_OBJECT(KEY 'id' VALUE id, KEY 'country' VALUE country, KEY 'total' VALUE total, "
        "KEY 'note' VALUE note) FROM docs",
    ),
    Query(name="filter", columns="id BIGINT, d STRING", text="SELECT id, d FROM docs WHERE d IS JSON OBJECT"),
)
COLUMNS = "id BIGINT, country STRING, total DOUBLE, note STRING, d STRING"


def documents(number: int) -> Iterator[dict[str, Any]]:
    """Rows of ``docs``: columns, and a document that says the same and more; each tenth is cut off."""
    chance = random.Random(1)
    for each in range(number):
        country, total = chance.choice(("de", "fr", "it", "日本")), round(chance.uniform(0, 1000), 2)
        note = chance.choice(("by the door, please", 'call "Ann" first', "größer als gedacht", ""))
        document = {
            "id": each,
            "customer": {"name": f"customer {chance.randrange(50_000)}", "country": country},
            "items": [
                {"sku": f"A-{chance.randrange(1000)}", "qty": chance.randrange(9), "price": round(total / 3, 2)}
                for _ in range(2)
            ],
            "note": note,
        }
        text = json.dumps(document, ensure_ascii=False)
        yield {"id": each, "country": country, "total": total, "note": note, "d": text if each % 10 else text[:-9]}


def write(folder: Path, number: int) -> float:
    """Files with so many documents; the bytes that one has."""
    folder.mkdir()
    table = pa.Table.from_pylist(list(documents(number)))
    for file in range(FILES):
        part = table.slice(file * number // FILES, (file + 1) * number // FILES - file * number // FILES)
        pq.write_table(part, folder / f"{file}.parquet", row_group_size=50_000)
    return sum(len(text.encode()) for text in table["d"].to_pylist()) / number


def declared(folder: Path) -> str:
    return (
        f"CREATE TABLE docs ({COLUMNS}) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{folder}');\n"
    )


def script(query: Query, folder: Path) -> str:
    """The SQL of a run, for either engine."""
    sink = f"CREATE TABLE r ({query.columns}) WITH ('connector' = 'blackhole');\n"
    return f"{declared(folder)}{sink}INSERT INTO r {query.text};"


def ours(spark: Any, text: str) -> float:
    """Seconds from the start of the query to its end."""
    began = time.monotonic()
    execution = execute(compile_sql(text, {"parallelism.default": "2"}), spark, once=True)
    assert execution.await_termination(1200)
    execution.raise_failure()
    return time.monotonic() - began


def compared(query: Query, folder: Path, spark: Any, flink: Flink, settings: dict[str, str], scratch: Path) -> None:
    """Both engines have as many rows, with as long texts."""
    texts = [column.split()[0] for column in query.columns.split(", ") if column.endswith("STRING")]
    names = ", ".join(column.split()[0] for column in query.columns.split(", "))
    sums = ", ".join(f"COUNT({text}), SUM(CHAR_LENGTH({text}))" for text in texts)
    counted = f"SELECT COUNT(*), {sums} FROM ({query.text}) AS q ({names})"
    (theirs,) = flink.fold(f"{declared(folder)}{counted};", settings)
    path = scratch / f"compared-{query.name}"
    columns = ", ".join(["c BIGINT", *(f"n{i} BIGINT, l{i} INT" for i in range(len(texts)))])
    sink = f"CREATE TABLE r ({columns}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}');\n"
    plan = compile_sql(f"{declared(folder)}{sink}INSERT INTO r {counted};", {"execution.runtime-mode": "batch"})
    assert execute(plan, spark).await_termination(600)
    (row,) = (json.loads(line) for file in path.glob("*.json") for line in file.read_text().splitlines())
    assert tuple(row.values()) == theirs, f"{query.name}: {row}, in Flink {theirs}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--flink", metavar="PYTHON")
    parser.add_argument("--queries", default=",".join(query.name for query in QUERIES))
    chosen = parser.parse_args()
    settings = {**THROUGHPUT, **HEAP}
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as text:
        scratch = Path(text)
        size = write(scratch / "docs", chosen.documents)
        write(scratch / "some", chosen.documents // 10)
        conf = {"spark.driver.memory": "3g", "spark.local.dir": text, "spark.sql.warehouse.dir": text}
        spark = start_session("local[2]", conf)
        print(f"{chosen.documents:,} documents of {size:.0f} bytes, seconds of each run, documents/s of the median one")
        with Flink.start(flink_python(chosen.flink), jvm=("-Xmx3g",)) as flink:
            for query in (query for query in QUERIES if query.name in chosen.queries.split(",")):
                compared(query, scratch / "some", spark, flink, settings, scratch)
                seconds: dict[str, list[float]] = {"hintplan": [], "Flink": []}
                for run in range(chosen.runs + 1):
                    folder = scratch / ("docs" if run else "some")  # the first is for compilers and caches
                    seconds["hintplan"].append(ours(spark, script(query, folder)))
                    seconds["Flink"].append(flink.run(script(query, folder), settings))
                medians = {engine: statistics.median(found[1:]) for engine, found in seconds.items()}
                for engine, found in seconds.items():
                    shown = " ".join(f"{each:6.1f}" for each in found[1:])
                    ratio = medians["Flink"] / medians[engine]
                    rate = chosen.documents / medians[engine]
                    print(f"{query.name:8} {engine:10} {shown}  {rate:10,.0f}  {ratio:5.2f} x Flink", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
