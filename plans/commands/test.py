"""``hintplan test``: tests with a clock, which run a plan step by step without Spark's streams and without waiting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hintplan.plans.commands.options import allow_module_option, json_option, show_json
from hintplan.plans.errors import PlanError
from hintplan.plans.extras import require
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.lazy import load
from hintplan.plans.rehearsal.reading import suites_in
from hintplan.plans.text.terminal import print_data, print_message

_RUNTIME = "hintplan.runtime.rehearsal"


@click.command("test")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option("-k", "name", metavar="NAME", help="Run only tests whose names contain this.")
@click.option(
    "--slices",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Run each test again with the rows of each step in N parts; the tables must be the same.",
)
@click.option("--update", is_flag=True, help="Write what came into the files, for a review.")
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Write JUnit XML here.")
@allow_module_option
@json_option
def test_command(
    paths: tuple[str, ...],
    name: str | None,
    slices: int,
    update: bool,
    junit_file: str | None,
    allow_modules: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run tests of plans: files *.test.yaml, given or beneath folders; without PATH, beneath this folder.

    A test has steps with times, rows of sources, and the expected rows of sinks. Exits with 1 if a test fails.
    """
    require("test")
    started = time.perf_counter()
    files = suites_in(paths)
    spark: Any = load(f"{_RUNTIME}.spark:SharedSpark")()
    outcomes: list[Any] = []
    try:
        run_suites = load(f"{_RUNTIME}.suites:run_suites")
        for outcome in run_suites(files, name=name, slices=slices, modules=allow_modules, spark=spark):
            outcomes.append(outcome)
            if not as_json:
                print_data(load(f"{_RUNTIME}.report:suite_text")(outcome))
            text = load(f"{_RUNTIME}.suites:updated_suite")(outcome) if update else None
            if text is not None:
                write_plan_bytes(text.encode(), Path(outcome.file))
                print_message(f"{outcome.file}: updated; review it with git diff")
    finally:
        spark.stop()
    if not outcomes:
        raise PlanError(f"no test has '{name}' in its name", hint="leave out -k to run all tests")
    if junit_file is not None:
        suites = load(f"{_RUNTIME}.report:junit_suites")(outcomes)
        write_plan_bytes(load("hintplan.plans.review.junit:junit_text")(suites).encode(), junit_file)
    if as_json:
        show_json(load(f"{_RUNTIME}.report:outcomes_json")(outcomes))
    else:
        print_data(load(f"{_RUNTIME}.report:summary_text")(outcomes, time.perf_counter() - started))
    return 1 if any(outcome.has_errors if update else outcome.failed for outcome in outcomes) else 0
