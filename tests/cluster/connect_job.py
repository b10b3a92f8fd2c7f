"""Run by ``test_connect.py`` in a process of its own: sinks and a source through Spark Connect.

    python connect_job.py URL DIRECTORY

Appends ten generated rows to ``DIRECTORY/out.db`` in two micro-batches, runs the last of them again, and does the same
with an upsert sink. Prints what went wrong to standard error, and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import read_stream, stream_writer
from hintplan.runtime.spark.shipping import ship_code

OPTIONS = {
    "connector": "datagen",
    "rows-per-second": "5",
    "number-of-rows": "10",
    "fields.id.kind": "sequence",
    "fields.id.start": "1",
    "fields.id.end": "10",
}


def run(spark: SparkSession, folder: Path, name: str, key: tuple[str, ...]) -> None:
    columns = (TableColumn(name="id", type="BIGINT"), TableColumn(name="s", type="STRING"))
    options = {"connector": "jdbc", "url": f"jdbc:sqlite:{folder}/out.db", "table-name": name}
    target = Table(columns=columns, options=options, primary_key=key)
    checkpoint = str(folder / f"{name}-checkpoint")
    rows = read_stream(spark, "gen", Table(columns=columns, options=OPTIONS), ("id", "s"))
    out = stream_writer(rows, name, target, changelog=False, checkpoint=checkpoint)
    out.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def main(url: str, folder: Path) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")  # as a run does that ends
    ship_code(spark)
    try:
        for name, key in (("log", ()), ("latest", ("id",))):
            run(spark, folder, name, key)
            for commit in (folder / f"{name}-checkpoint" / "commits").glob("*1*"):
                commit.unlink()
            run(spark, folder, name, key)
        missing = Table(
            columns=(TableColumn(name="id", type="BIGINT"),),
            options={"connector": "filesystem", "path": str(folder / "none"), "format": "json"},
        )
        try:
            read_stream(spark, "missing", missing, ("id",))
        except RunError:
            return
        print("a missing path was not noticed", file=sys.stderr)
        sys.exit(1)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
