"""Cases of the fuzzer by their number: the tables, the query, and where it runs; and what became of each.

Of twenty cases two run on real Spark streams and two as batch jobs, in bundles that share their tables; sixteen run in
this process (:mod:`tests.fuzz.in_process`), which costs a tenth and leaves out only what is Spark's own. A number gives
the same case in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import duckdb
from pyspark.sql import SparkSession

from hintplan.plans.errors import HintplanError, SqlError
from tests.fuzz.compiled import compiled, script
from tests.fuzz.data import World, random_world
from tests.fuzz.expressions import family
from tests.fuzz.in_process import run_in_process
from tests.fuzz.on_spark import run_together
from tests.fuzz.oracle import Oracle, difference
from tests.fuzz.queries import random_query
from tests.fuzz.trees import Query, columns_of, rendered

__all__ = ["Case", "Outcome", "bundles", "case_of", "check", "check_bundle"]

_BLOCK = 60
Share = Literal["in process", "stream", "batch"]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    number: int
    share: Share
    world: World
    query: Query

    @property
    def batch(self) -> bool:
        return self.share == "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``same`` has the rows of the oracle; ``refused`` said why, with its place; the others count as failures, but
    ``not asked``, of which DuckDB refuses the query."""

    status: Literal["same", "refused", "not asked", "different", "error"]
    detail: str = ""
    rows: int = 0

    @property
    def failed(self) -> bool:
        return self.status in ("different", "error")


def case_of(number: int) -> Case:
    """The case with this number."""
    share: Share = "stream" if number % 20 in (7, 8) else "batch" if number % 20 in (17, 18) else "in process"
    # Cases of a bundle read the same tables.
    block = number if share == "in process" else f"{share} {number // _BLOCK}"
    world = random_world(Random(f"tables {block}"), batch=share == "batch")
    query = random_query(Random(f"query {number}"), world, batch=share == "batch")
    if share != "in process" and any(family(c.type) == "nested" for c in columns_of(query)):
        # A union has no columns of nested types.
        share = "in process"
    return Case(number=number, share=share, world=world, query=query)


def bundles(numbers: Iterable[int]) -> Iterator[list[Case]]:
    """The cases with these numbers, which rise: those of a bundle together, any other alone."""
    together: dict[Share, list[Case]] = {}
    block = None
    for case in map(case_of, numbers):
        if case.number // _BLOCK != block:
            yield from together.values()
            together, block = {}, case.number // _BLOCK
        if case.share == "in process":
            yield [case]
        else:
            together.setdefault(case.share, []).append(case)
    yield from together.values()


def check_bundle(cases: Sequence[Case], spark: SparkSession) -> list[Outcome]:
    """What becomes of each of ``cases``, which share a world if they are several."""
    asked = [_asked(case) for case in cases]
    able = [case for case, outcome in zip(cases, asked, strict=True) if not isinstance(outcome, Outcome)]
    found: dict[int, Outcome] = {}
    if len(able) > 1:
        try:
            rows = run_together(able[0].world, [c.query for c in able], spark, batch=able[0].batch)
            found = {case.number: _compared(case, ours) for case, ours in zip(able, rows, strict=True)}
        except Exception:  # noqa: BLE001
            found = {}
    for case in able:
        if case.number not in found or found[case.number].failed:
            found[case.number] = check(case, spark)
    return [o if isinstance(o, Outcome) else found[c.number] for c, o in zip(cases, asked, strict=True)]


def check(case: Case, spark: SparkSession) -> Outcome:
    """What becomes of ``case`` alone."""
    asked = _asked(case)
    if isinstance(asked, Outcome):
        return asked
    try:
        if case.share == "in process":
            plan = compiled(script(case.world, rendered(case.query, batch=False), batch=False))
            rows = run_in_process(plan, case.world, spark)
        else:
            (rows,) = run_together(case.world, [case.query], spark, batch=case.batch)
    except Exception as error:  # noqa: BLE001
        return Outcome(status="error", detail=f"{type(error).__name__}: {error}"[:4000])
    return _compared(case, rows)


def _asked(case: Case) -> Outcome | None:
    """An outcome if either side refuses the query, or the compiler fails on it."""
    texts = rendered(case.query, batch=case.batch)
    try:
        compiled(script(case.world, texts, batch=case.batch))
    except SqlError as error:
        placed = all(problem.line is not None for problem in error.diagnostics)
        return Outcome(status="refused" if placed else "error", detail=str(error))
    except HintplanError as error:
        return Outcome(status="error", detail=f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001
        return Outcome(status="error", detail=f"compile: {type(error).__name__}: {error}"[:4000])
    try:
        Oracle(case.world).rows(texts.duck)
    except duckdb.Error as error:
        return Outcome(status="not asked", detail=str(error).splitlines()[0])
    return None


def _compared(case: Case, rows: list[Row]) -> Outcome:
    expected = Oracle(case.world).rows(rendered(case.query, batch=case.batch).duck)
    more, less = difference(rows, expected)
    if more or less:
        return Outcome(status="different", detail=f"only hintplan: {more[:5]}\nonly DuckDB:   {less[:5]}")
    return Outcome(status="same", rows=len(expected))
