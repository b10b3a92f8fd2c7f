"""Samples of matrices for the gate; `make nightly` runs all of each.

@pytest.mark.parametrize("case", sampled(CASES, keep=5))            # five, others at each commit
@pytest.mark.parametrize("fault, sink", each_once(FAULTS, SINKS))   # each fault and each sink once, in other pairs
@in_turn(0, of=3)                                                   # a test at a third of the commits; others have 1, 2
@pytest.mark.sampled                                                 # of stacked axes and fixtures, each value once
@pytest.mark.sampled(keep=5)                                         # or so many of their combinations
pytestmark = pytest.mark.part(of=3)                                  # a third of a file's tests, and of each matrix
pytestmark = pytest.mark.part(of=3, fixture="spark")                 # of those of its tests that ask for the fixture
range(gate_seed() % 1000, ...)                                       # numbers for random cases
pytestmark = pytest.mark.each_gate                                   # of tests on Spark, those that every gate has

Of what all that leaves, the gate has a fifth of each file's tests on Spark, and of those for `make integration` a
fifth of those in half of the files, both rounded up; a single one is in every fifth gate.

A tuple is one value for each of several arguments, as in `parametrize`; a tuple for one argument is written
`pytest.param((1, 2))`.

What is not in the sample is marked `nightly`, which `make test` and `make integration` leave out. The seed is the
commit's, so each landing covers another part; HINTPLAN_TEST_SEED in the environment wins, and repeats a run. `python -m
tests.sample` prints it as a number.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

ParameterSet = type(pytest.param())

__all__ = ["VARIABLE", "each_once", "gate_seed", "in_turn", "mark_rest", "sampled", "seed_text"]

VARIABLE = "HINTPLAN_TEST_SEED"
_OUTSIDE_GIT = "no-commit"


def sampled(cases: Iterable[Any], *, keep: int) -> list[Any]:
    """Give all cases as parameters, in their order; all but ``keep`` of them, drawn by the seed, marked `nightly`."""
    cases = list(cases)
    kept = set(Random(f"{seed_text()} {len(cases)} {keep}").sample(range(len(cases)), min(keep, len(cases))))
    return [case if place in kept else _nightly(case) for place, case in enumerate(cases)]


def each_once(*given: Iterable[Any]) -> list[Any]:
    """Give every combination of the axes as parameters; all marked `nightly` but as many as the longest axis has
    values, in which each value of each axis is at least once.
    """
    axes = [list(axis) for axis in given]
    dice = Random(f"{seed_text()} {[len(axis) for axis in axes]}")
    drawn = [dice.sample(range(len(axis)), len(axis)) for axis in axes]
    longest = max(len(axis) for axis in axes)
    kept = {tuple(places[i % len(places)] for places in drawn) for i in range(longest)}
    combinations = itertools.product(*(range(len(axis)) for axis in axes))
    return [
        _combined([axis[place] for axis, place in zip(axes, places, strict=True)], nightly=places not in kept)
        for places in combinations
    ]


def in_turn(place: int, *, of: int) -> Any:
    """Mark a test `nightly` unless it is its turn, ``place`` of as many; so one of several alike is in the gate."""
    assert place < of
    return (lambda test: test) if gate_seed() % of == place else pytest.mark.nightly


def mark_rest(items: Sequence[pytest.Item]) -> None:
    """Mark `nightly` what the seed does not draw: of tests marked `sampled` or `part`, then of those on Spark."""
    _mark_combinations(items)
    _mark_parts(items)
    _mark_shares(items)


def _mark_combinations(items: Sequence[pytest.Item]) -> None:
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, combinations in tests.items():
        mark = combinations[0].get_closest_marker("sampled")
        drawn = Random(f"{seed_text()} {test}").sample(combinations, len(combinations))
        keep = mark.kwargs.get("keep") if mark is not None else None
        kept = _covering(drawn) if keep is None else drawn[:keep]
        for item in drawn:
            if item not in kept:
                item.add_marker("nightly")


def _mark_parts(items: Sequence[pytest.Item]) -> None:
    """Keep an nth, rounded up: of the combinations of each test that has some, and of the tests of a file without."""
    groups: dict[tuple[str, int], list[Any]] = {}
    for item in items:
        mark = item.get_closest_marker("part")
        if mark is None or item.get_closest_marker("nightly") is not None:
            continue
        if mark.kwargs.get("fixture") not in (None, *getattr(item, "fixturenames", ())):
            continue
        test, combination, _ = item.nodeid.partition("[")
        groups.setdefault((test if combination else test.partition("::")[0], mark.kwargs["of"]), []).append(item)
    for (name, of), tests in groups.items():
        for item in Random(f"{seed_text()} {name}").sample(tests, len(tests))[-(-len(tests) // of) :]:
            item.add_marker("nightly")


_SHARE = 5
_FILES = 2


def _mark_shares(items: Sequence[pytest.Item]) -> None:
    """Keep a fifth, rounded up, of each file's tests on Spark, and of the tests on clusters in half of the files."""
    files: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        names = {mark.name for mark in item.iter_markers()}
        if names & {"spark", "integration"} and not names & {"nightly", "each_gate"}:
            files.setdefault((item.nodeid.partition("::")[0], "integration" in names), []).append(item)
    for (file, long), tests in files.items():
        dice = Random(f"{seed_text()} {'long' if long else 'short'} {file}")
        if len(tests) == 1:
            kept = int(dice.randrange(_SHARE) == 0)
        else:
            kept = 0 if long and dice.randrange(_FILES) else -(-len(tests) // _SHARE)
        for item in dice.sample(tests, len(tests))[kept:]:
            item.add_marker("nightly")


def _covering(items: Sequence[Any]) -> list[Any]:
    """Give few that have each value of each axis: those of which all values are new, then those of which any is."""
    kept: list[Any] = []
    missing = set().union(*map(_values_of, items))
    for wanted in (set.issuperset, set.intersection):
        for item in items:
            if wanted(missing, _values_of(item)):
                kept.append(item)
                missing -= _values_of(item)
    return kept


def _values_of(item: Any) -> set[tuple[str, int]]:
    """Give the parameters of a test, each value as the object that all combinations share."""
    return {(name, id(value)) for name, value in item.callspec.params.items()}


def gate_seed() -> int:
    """Give the seed as a number below 2**31, for generators of random cases."""
    return Random(seed_text()).getrandbits(31)


@cache
def seed_text() -> str:
    """Give the seed as it is printed and set: of the environment, or else the commit."""
    return os.environ.get(VARIABLE) or _commit() or _OUTSIDE_GIT


def _commit() -> str | None:
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _nightly(case: Any) -> Any:
    return _combined([case], nightly=True)


def _combined(cases: Sequence[Any], *, nightly: bool) -> Any:
    """Give one parameter set of ``cases``: values, tuples of values for several arguments, or parameter sets."""
    sets = [case if isinstance(case, ParameterSet) else pytest.param(*_values(case)) for case in cases]
    marks = [mark for one in sets for mark in one.marks]
    names = [str(one.id) for one in sets if one.id is not None]
    return pytest.param(
        *(value for one in sets for value in one.values),
        marks=[*marks, pytest.mark.nightly] if nightly else marks,
        id="-".join(names) if len(names) == len(sets) else None,
    )


def _values(case: Any) -> Sequence[Any]:
    return case if type(case) is tuple else (case,)


if __name__ == "__main__":
    print(gate_seed())
