"""Jobs for tests of installed runs, and what must come out of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import plans
from tests.connectors.lookup.test_lookups_on_spark import job as rates_job
from tests.connectors.lookup.test_lookups_on_spark import orders, rate
from tests.runtime.functions.test_functions_on_spark import TEXTS, texts
from tests.runtime.functions.test_functions_on_spark import job as words_job
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

__all__ = ["check_run_and_restart", "prepare_rates", "prepare_words"]

ROOT = Path(__file__).parents[2]


def check_run_and_restart(run: Callable[..., CompletedProcess[str]], directory: Path, *arguments: str) -> None:
    """A join and an aggregate, run twice on the same checkpoint, come to what they mean."""
    rows = sample(0, 40)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", rows[:20])
    plans.dump(revenue_plan(directory), directory / "plan.json")
    first = run("plan.json", "--once", "--checkpoint", "state", *arguments)
    assert first.returncode == 0, first.stderr
    assert fold(changes(directory)) == expected(rows[:20])
    assert "aggregate_t 3 rows" in first.stderr
    add_rows(directory, "late", rows[20:])
    again = run("plan.json", "--once", "--checkpoint", "state", *arguments)
    assert again.returncode == 0, again.stderr
    assert fold(changes(directory)) == expected(rows)


def prepare_words(directory: Path) -> str:
    """Texts and a plan that calls a function of the module that is returned, which lies in ``directory``/own."""
    texts(directory, *TEXTS)
    _own_module(directory, ROOT / "tests" / "runtime" / "functions" / "samples.py", "words_of_text")
    plan = words_job(directory, "AsyncWords")
    moved = replace(plan.functions["words"], class_name="words_of_text.AsyncWords")
    plans.dump(replace(plan, functions={"words": moved}), directory / "plan.json")
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
    plans.dump(plan, directory / "plan.json")
    return "shop.rates"


def _own_module(directory: Path, source: Path, name: str) -> None:
    (directory / "own").mkdir()
    shutil.copy(source, directory / "own" / f"{name}.py")
