"""Jobs for tests of installed runs, and what must come out of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess

import hintplan
from tests.connectors.lookup.test_lookups_on_spark import job as rates_job
from tests.connectors.lookup.test_lookups_on_spark import orders, rate
from tests.runtime.functions.test_functions_on_spark import TEXTS, texts
from tests.runtime.functions.test_functions_on_spark import job as words_job
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample
from tests.spark.timed_plan import add_events, with_windows

__all__ = ["check_run_and_restart", "closed_windows", "prepare_rates", "prepare_words"]

ROOT = Path(__file__).parents[2]


def check_run_and_restart(run: Callable[..., CompletedProcess[str]], directory: Path, *arguments: str) -> None:
    """A join, an aggregate and windows, run twice on the same checkpoint, come to what they mean."""
    rows = sample(0, 40)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", rows[:20])
    add_events(directory, "events", [(1, 1_000), (1, 2_500), (2, 2_000)], "json")
    hintplan.dump(with_windows(revenue_plan(directory), directory), directory / "plan.json")
    first = run("plan.json", "--once", "--checkpoint", "state", *arguments)
    assert first.returncode == 0, first.stderr
    assert fold(changes(directory)) == expected(rows[:20])
    assert "aggregate_t 3 rows" in first.stderr
    assert "window_a: 3 rows in open windows" in first.stderr
    assert closed_windows(directory) == []
    add_rows(directory, "late", rows[20:])
    add_events(directory, "events", [(2, 13_000)], "json")
    again = run("plan.json", "--drain", "--checkpoint", "state", *arguments)
    assert again.returncode == 0, again.stderr
    assert fold(changes(directory)) == expected(rows)
    assert closed_windows(directory) == [(1, 2, 10), (2, 1, 10), (2, 1, 20)]


def closed_windows(directory: Path) -> list[tuple[int, int, int]]:
    """The windows of 10 s that are written: key, number of windows of 2 s, and the second of the end."""
    rows = [json.loads(line) for path in (directory / "r").glob("*.json") for line in path.open()]
    return sorted((row["k"], row["n"], datetime.fromisoformat(row["ending"]).second) for row in rows)


def prepare_words(directory: Path) -> str:
    """Texts and a plan that calls a function of the module that is returned, which lies in ``directory``/own."""
    texts(directory, *TEXTS)
    _own_module(directory, ROOT / "tests" / "runtime" / "functions" / "samples.py", "words_of_text")
    plan = words_job(directory, "AsyncWords")
    moved = replace(plan.functions["words"], class_name="words_of_text.AsyncWords")
    hintplan.dump(replace(plan, functions={"words": moved}), directory / "plan.json")
    return "words_of_text"


def prepare_rates(directory: Path, *, hint: str = "") -> str:
    """Orders and a plan that looks up their rates in a class of the module that is returned, as in a package."""
    rate(directory, "EUR", 1.1)
    orders(directory, (1, "EUR"), (2, "XXX"), (3, "EUR"))
    package = directory / "own" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "tests" / "connectors" / "lookup" / "rates.py", package / "reading.py")
    (package / "rates.py").write_text(
        "from shop.reading import AsyncRates as _Rates\n\nclass AsyncRates(_Rates): ...\n"
    )
    cache = {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "10"}
    plan = rates_job(directory, hint=hint, **{"async-class": "shop.rates.AsyncRates", **cache})
    hintplan.dump(plan, directory / "plan.json")
    return "shop.rates"


def _own_module(directory: Path, source: Path, name: str) -> None:
    (directory / "own").mkdir()
    shutil.copy(source, directory / "own" / f"{name}.py")
