"""Suites of tests over plans that are compiled here, for plans that Arrow computes alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.plans.rehearsal.reading import suite_of
from hintplan.runtime.rehearsal.local_rows import Session
from hintplan.runtime.rehearsal.rehearsal import Rehearsal
from hintplan.runtime.rehearsal.report import failure_text
from hintplan.runtime.rehearsal.scenarios import run_scenario

FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = "
PAID = f"""
CREATE TABLE orders (id BIGINT, total DECIMAL(10, 2)) WITH ({FILES}'orders');
CREATE TABLE payments (order_id BIGINT, `method` STRING) WITH ({FILES}'payments');
CREATE TABLE paid (id BIGINT, total DECIMAL(10, 2), `method` STRING) WITH ('connector' = 'print');
INSERT INTO paid SELECT /*+ STATE_TTL('o' = '3 h', 'p' = '1 h') */ o.id, o.total, p.`method`
FROM orders AS o JOIN payments AS p ON o.id = p.order_id;
"""


def no_spark() -> SparkSession:
    raise AssertionError("Arrow computes this plan, and Spark was started")


def compiled(sql: str = PAID, config: Mapping[str, str] | None = None) -> Plan:
    return hintplan.compile_sql(sql, config)


def failures(
    plan: Plan, tests: str, *, slices: int = 1, session: Session = no_spark, folder: Path = Path()
) -> list[str]:
    """The failures of all ``tests``, which are the YAML below the names of tests."""
    found = outcomes(plan, tests, slices=slices, session=session, folder=folder)
    return [text for texts in found.values() for text in texts]


def outcomes(
    plan: Plan, tests: str, *, slices: int = 1, session: Session = no_spark, folder: Path = Path()
) -> dict[str, list[str]]:
    """The failures of each of ``tests``, by its name."""
    suite = suite_of(f"plan: p.json\n{tests}", str(folder / "p.test.yaml"))
    rehearsal = Rehearsal(plan, session=session)
    return {
        scenario.name: [
            failure_text(failure) for failure in run_scenario(rehearsal, scenario, suite, slices=slices).failures
        ]
        for scenario in suite.scenarios
    }
