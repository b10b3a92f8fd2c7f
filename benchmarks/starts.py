"""How long commands that start no Spark take, beside a Python that does nothing, and how many modules they load.

    python benchmarks/starts.py               # a minute or two
    python benchmarks/starts.py --rounds 50

The commands run in turn, in processes of their own, on a plan of a join and an aggregate. Times are of the processor,
since these tolerate a busy machine; ratios are of the best rounds and of the medians. The first round is not counted:
it leaves the bytecode that an installed package has from the start, unless ``PYTHONDONTWRITEBYTECODE`` is set.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import hintplan

SQL = """
CREATE TABLE orders (id BIGINT, customer BIGINT, amount DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE customers (id BIGINT, name STRING)
  WITH ('connector' = 'filesystem', 'path' = 'data/customers', 'format' = 'json');
CREATE TABLE sales (name STRING, total DOUBLE) WITH ('connector' = 'print');
SET 'table.exec.state.ttl' = '1 d';
INSERT INTO sales
  SELECT name, SUM(amount) FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY name
"""
KEY = "config.table.exec.state.ttl"


def commands(plan: str, other: str) -> dict[str, tuple[str, ...]]:
    """The arguments of Python for each line of the table."""
    words = {
        "--help": ("--help",),
        "validate": ("validate", plan),
        "explain": ("explain", plan),
        "diff": ("diff", plan, other),
        "lint": ("lint", plan),
        "why": ("why", plan, KEY),
        "set": ("set", other, f"{KEY}=2 d"),
    }
    return {"Python": ("-c", "pass"), **{name: ("-m", "hintplan", *given) for name, given in words.items()}}


def seconds(arguments: Sequence[str]) -> float:
    """Processor time of Python with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The commands print nothing that is read here, and `lint` may find something.
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def loaded(arguments: Sequence[str]) -> int:
    """The number of modules that Python loads with these arguments."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    return done.stderr.count("import time:") - 1  # the first line is a heading


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        plan, other = (str(Path(folder) / f"{name}.json") for name in "ab")
        compiled = hintplan.compile_sql(SQL)
        hintplan.dump(compiled, plan)
        hintplan.dump(hintplan.set(compiled, KEY, "2 d"), other)
        given = commands(plan, other)
        turns = [{name: seconds(arguments) for name, arguments in given.items()} for _ in range(rounds + 1)][1:]
        table = Table("", "ms", "best", "median", "modules")
        for name, arguments in given.items():
            times, empty = [turn[name] for turn in turns], [turn["Python"] for turn in turns]
            ratios = (min(times) / min(empty), median(times) / median(empty))
            table.add_row(
                name, f"{min(times) * 1e3:.0f}", *(f"{ratio:.1f}" for ratio in ratios), f"{loaded(arguments)}"
            )
    Console().print(table)


if __name__ == "__main__":
    main()
