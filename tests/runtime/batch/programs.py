"""Batch plans for tests of running: compiled from SQL, over JSON files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import planner
from plans.model.plan import Plan
from tests.groups import cached_result

__all__ = ["batch_plan", "cached", "read_rows", "write_rows"]


def batch_plan(text: str, name: str = "job", **config: str) -> Plan:
    """``text`` compiled in batch mode."""
    settings = {"execution.runtime-mode": "batch", "parallelism.default": "2", **config}
    return planner.compile_sql(text, config=settings, name=name)


def cached(plan: Plan, operator: str, level: str = "MEMORY_AND_DISK", *, enabled: bool = True) -> Plan:
    """The plan with the result of ``operator`` cached, as an edit of the plan would."""
    settings = cached_result({}, {"enabled": enabled, "storage-level": level})
    operators = tuple(
        replace(o, settings={**o.settings, **settings}) if o.id == operator else o for o in plan.operators
    )
    assert operators != plan.operators, f"no operator {operator}"
    return replace(plan, operators=operators)


def write_rows(directory: Path, rows: Iterable[Mapping[str, Any]], name: str = "0.json") -> None:
    """A JSON file in ``directory``, which is made."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_rows(directory: Path) -> list[dict[str, Any]]:
    """The rows of all files that Spark has written to ``directory``, in the order of the files."""
    files = sorted(path for path in directory.glob("*.json") if not path.name.startswith((".", "_")))
    return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
