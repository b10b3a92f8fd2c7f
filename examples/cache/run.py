"""Runs sales.sql without and with its cached join, and prints how long each sink took.

    python run.py [--sales 300000]

Both runs are sessions of the same Spark. What is left is sales.db, with the tables per_day, most_bands and widest.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import hintplan
from hintplan.plans.text.counts import human_bytes
from hintplan.runtime.spark.session import start_session


def main() -> None:
    parser = argparse.ArgumentParser(description="One join used by three sinks, without and with cache.")
    parser.add_argument("--sales", type=int, default=300_000, help="How many sales to join.")
    sales = parser.parse_args().sales

    script = Path(__file__).with_name("sales.sql")
    compiled = hintplan.compile_sql(script.read_text(encoding="utf-8"), name="sales")
    cached = hintplan.set(compiled, "tables.sales.options.number-of-rows", str(sales))
    (join,) = (operator.id for operator in compiled.operators if operator.id.startswith("join"))
    uncached = hintplan.set(cached, f"{join}.cached.enabled", "false")

    spark = start_session("local[*]", {"spark.sql.shuffle.partitions": "4"})
    try:
        # The first job of a JVM pays for its start; neither run should.
        run(spark, hintplan.set(uncached, "tables.sales.options.number-of-rows", "1000"))
        seconds = [run(spark, plan) for plan in (uncached, cached)]
    finally:
        spark.stop()

    print(f"\n{'':<20}{'without cache':>15}{'with cache':>15}")
    for sink in seconds[0]:
        print(f"{sink:<20}" + "".join(f"{one[sink]:>13.1f} s" for one in seconds))
    without, with_cache = (sum(one.values()) for one in seconds)
    print(f"{'all':<20}{without:>13.1f} s{with_cache:>13.1f} s   {without / with_cache:.1f} times as fast")


def run(spark: object, plan: hintplan.Plan) -> dict[str, float]:
    """Seconds per sink, by its id. The database begins empty."""
    Path("sales.db").unlink(missing_ok=True)
    with hintplan.Session(spark) as session:
        started = time.monotonic()
        execution = session.execute(plan)
        execution.await_termination()
        elapsed = time.monotonic() - started
        for result in session.cached_results():
            print(
                f"{result.operator} of {result.plan}: {result.rows:,} rows, {human_bytes(result.bytes or 0)}, "
                f"{result.storage_level}, {result.hits} hits, {elapsed:.1f} s in all"
            )
        return {sink: job.duration_ms / 1000 for sink, job in execution.progress.items()}


if __name__ == "__main__":
    main()
