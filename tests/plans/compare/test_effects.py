"""What a change does to a running job: every setting is classified, and nothing that differs goes unseen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.model.config import KEYS
from hintplan.plans.model.settings import plan_settings
from hintplan.plans.operators import KINDS
from hintplan.plans.settings.cached import CACHED as CACHED
from hintplan.plans.settings.effects import LEVELS, MEANING

FOLDER = Path(__file__).parents[1]
SAMPLES = sorted(path for path in FOLDER.glob("*.json") if '"operators"' in path.read_text())


def test_every_setting_that_there_is_has_an_effect() -> None:
    settings = [(group.name, setting) for kind in KINDS for group in kind.groups for setting in group.settings.values()]
    assert {("async", "capacity"), ("cache", "lookup.cache")} <= {(group, setting.name) for group, setting in settings}
    assert {setting.effect.level for _, setting in settings} | {key.effect.level for key in KEYS.values()} <= {*LEVELS}


def test_every_setting_of_the_sample_plans_has_an_effect() -> None:
    assert len(SAMPLES) >= 2
    for path in SAMPLES:
        for setting in plan_settings(hintplan.load(path)):
            assert setting.effect.because


def test_every_level_has_a_meaning() -> None:
    assert set(MEANING) == set(LEVELS)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, (*path, index))
    else:
        yield path


def other(value: Any) -> Iterator[Any]:
    """Values near ``value``, some of which the schema takes in its place."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif value is None:
        yield "a"
    else:
        yield from ("5 d", "left", "inner", "full", "ordered", "allow_unordered", "inline", "deferred", "NONE")
        yield from ("TIMED", "FIXED_RATE", "BIGINT", "STRING", "COUNT", f"{value}x", None, "l.a > r.b", "+U", "right.a")


def changed_plans(path: Path) -> Iterator[tuple[str, hintplan.Plan, hintplan.Plan]]:
    """The plan of ``path`` with one value changed, for every value and everything that can stand there."""
    document = json.loads(path.read_text())
    before = hintplan.load(path)
    for leaf in leaves(document):
        if leaf[0] in ("format", "digests", "source"):
            continue
        for value in other(deepcopy(leaf_value(document, leaf))):
            if value == leaf_value(document, leaf):
                continue
            edited = deepcopy(document)
            leaf_value(edited, leaf[:-1])[leaf[-1]] = value
            try:
                after = hintplan.loads(json.dumps(edited), allow_fact_edits=True, check_meaning=False)
            except hintplan.PlanError:
                continue
            if after != before:
                yield ".".join(map(str, leaf)), before, after


def leaf_value(document: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        document = document[part]
    return document


@pytest.mark.part(of=2)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.slow
def test_whatever_value_of_a_plan_changes_is_a_difference(path: Path) -> None:
    number = 0
    for leaf, before, after in changed_plans(path):
        assert compare_plans(before, after), leaf
        number += 1
    assert number > 100
