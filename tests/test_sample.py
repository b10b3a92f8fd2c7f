"""Samples of matrices: what is left out is marked and nothing is lost; another seed draws others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import conftest
from tests.sample import VARIABLE, each_once, gate_seed, in_turn, mark_rest, sampled, seed_text

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def fresh_seed() -> Iterator[None]:
    seed_text.cache_clear()
    yield
    seed_text.cache_clear()


def seeded(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    monkeypatch.setenv(VARIABLE, seed)
    seed_text.cache_clear()


def values(cases: list[Any], *, nightly: bool) -> list[tuple[Any, ...]]:
    parameters = [pytest.param(case) if not isinstance(case, type(pytest.param())) else case for case in cases]
    return [p.values for p in parameters if nightly == any(mark.name == "nightly" for mark in p.marks)]


def test_a_sample_and_the_rest_are_all_cases() -> None:
    cases = sampled(range(20), keep=5)
    assert len(values(cases, nightly=False)) == 5
    assert sorted(values(cases, nightly=False) + values(cases, nightly=True)) == [(i,) for i in range(20)]


def test_seeds_draw_different_samples_until_every_case_was_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for seed in range(40):
        seeded(monkeypatch, str(seed))
        drawn.add(tuple(values(sampled(range(20), keep=5), nightly=False)))
    assert len(drawn) > 30
    assert {value for sample in drawn for value in sample} == {(i,) for i in range(20)}


def test_one_seed_draws_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded(monkeypatch, "a1b2c3")
    first = values(sampled(range(20), keep=5), nightly=False)
    seed_text.cache_clear()
    assert first == values(sampled(range(20), keep=5), nightly=False)
    assert gate_seed() == gate_seed()


@pytest.mark.parametrize("seed", range(8))
def test_one_of_those_that_take_turns_is_in_the_gate(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    seeded(monkeypatch, str(seed))

    def marks(place: int) -> list[str]:
        @in_turn(place, of=3)
        def test() -> None: ...

        return [mark.name for mark in getattr(test, "pytestmark", ())]

    assert sorted(map(marks, range(3))) == [[], ["nightly"], ["nightly"]]


def test_no_more_than_there_are() -> None:
    assert values(sampled([1, 2], keep=5), nightly=True) == []


@pytest.mark.parametrize("seed", range(20))
def test_each_value_of_each_axis_is_in_the_sample(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    seeded(monkeypatch, str(seed))
    cases = each_once("abcde", "xyz", [1])
    kept = values(cases, nightly=False)
    assert len(kept) == 5
    assert [{case[i] for case in kept} for i in range(3)] == [set("abcde"), set("xyz"), {1}]
    assert len(kept) + len(values(cases, nightly=True)) == 15


def test_marks_and_names_of_parameters_stay() -> None:
    named = [pytest.param(i, i + 1, id=f"n{i}", marks=pytest.mark.spark) for i in range(3)]
    cases = sampled(named, keep=1)
    assert [case.id for case in cases] == ["n0", "n1", "n2"]
    assert sorted(case.values for case in cases) == [(0, 1), (1, 2), (2, 3)]
    assert all("spark" in {mark.name for mark in case.marks} for case in cases)
    assert [case.id for case in each_once(named[:1], [pytest.param("x", id="x")])] == ["n0-x"]


def test_a_tuple_is_a_value_for_each_argument() -> None:
    assert [case.values for case in each_once([("a", 1)], ["x"])] == [("a", 1, "x")]
    assert values(sampled([("a", 1), ("b", 2)], keep=0), nightly=True) == [("a", 1), ("b", 2)]


MATRIX = """
import pytest

@pytest.fixture(params="pq")
def fixed(request):
    return request.param

@pytest.mark.sampled
@pytest.mark.parametrize("letter", "abcde")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_axes(fixed, letter, number):
    pass

@pytest.mark.sampled(keep=4)
@pytest.mark.parametrize("number", range(30))
def test_some(number):
    pass

def test_other():
    pass
"""


def test_the_mark_draws_from_stacked_axes_and_fixtures(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(MATRIX)
    pytester.makeconftest("from tests.sample import mark_rest\n\ndef pytest_collection_modifyitems(items):\n"
                          "    mark_rest(items)\n")  # fmt: skip
    pytester.makeini("[pytest]\nmarkers =\n    sampled\n    nightly\n")
    samples = set()
    for seed in range(2):
        seeded(monkeypatch, str(seed))
        items, _ = pytester.inline_genitems()
        kept = {item.nodeid.partition("::")[2] for item in items if item.get_closest_marker("nightly") is None}
        assert len(items) == 30 + 30 + 1
        axes = [name[len("test_axes[") : -1].split("-") for name in kept if name.startswith("test_axes")]
        assert [set(axis) for axis in zip(*axes, strict=True)] in (
            [set("pq"), set("123"), set("abcde")],
            [set("pq"), set("abcde"), set("123")],
        )
        assert 5 <= len(axes) <= 7
        assert len(kept) - len(axes) == 4 + 1
        samples.add(frozenset(kept))
    assert len(samples) == 2


FILE = (
    """
import pytest

pytestmark = pytest.mark.part(of=3, fixture="costly")

@pytest.fixture
def costly():
    pass

@pytest.mark.parametrize("number", range(10))
def test_some(costly, number):
    pass

@pytest.mark.sampled(keep=6)
@pytest.mark.parametrize("number", range(12))
def test_less(costly, number):
    pass

"""
    + "".join(f"def test_{name}(costly):\n    pass\n\n" for name in "abcde")
    + "def test_quick(): pass\n"
)


def test_a_part_of_a_file_is_drawn_of_each_matrix_and_of_the_tests_without(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(FILE)
    pytester.makeconftest("from tests.sample import mark_rest\n\ndef pytest_collection_modifyitems(items):\n"
                          "    mark_rest(items)\n")  # fmt: skip
    pytester.makeini("[pytest]\nmarkers =\n    sampled\n    part\n    nightly\n")
    samples = set()
    for seed in range(3):
        seeded(monkeypatch, str(seed))
        items, _ = pytester.inline_genitems()
        assert len(items) == 10 + 12 + 5 + 1
        kept = {item.nodeid.partition("::")[2] for item in items if item.get_closest_marker("nightly") is None}
        assert "test_quick" in kept
        assert sum(name.startswith("test_some[") for name in kept) == 4
        assert sum(name.startswith("test_less[") for name in kept) == 2
        assert len(kept) == 4 + 2 + 2 + 1
        samples.add(frozenset(kept))
    assert len(samples) == 3


SHARED = (
    "import pytest\n\n"
    + "".join(f"@pytest.mark.spark\ndef test_{name}():\n    pass\n\n" for name in "abcd")
    + "".join(f"@pytest.mark.integration\ndef test_long_{name}():\n    pass\n\n" for name in "abcde")
    + "@pytest.mark.spark\n@pytest.mark.nightly\ndef test_left_out(): pass\n\n"
    + "@pytest.mark.spark\n@pytest.mark.each_gate\ndef test_kept(): pass\n\n"
    + "def test_quick(): pass\n"
)


def test_a_share_of_what_starts_much_is_in_each_gate_and_all_of_it_in_some(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        test_many=SHARED, test_one="import pytest\n\n@pytest.mark.integration\ndef test_alone(): pass\n"
    )
    pytester.makeini("[pytest]\nmarkers =\n    spark\n    integration\n    each_gate\n    nightly\n")
    items, _ = pytester.inline_genitems()
    own = {item: [*item.own_markers] for item in items}
    drawn, numbers, alone = set(), [], []
    for seed in range(100):
        seeded(monkeypatch, str(seed))
        for item, markers in own.items():
            item.own_markers[:] = markers
        mark_rest(items)
        kept = {item.name for item in items if item.get_closest_marker("nightly") is None}
        assert {"test_kept", "test_quick"} < kept
        assert "test_left_out" not in kept
        shared = kept - {"test_kept", "test_quick", "test_alone"}
        long = {name for name in shared if name.startswith("test_long")}
        assert len(shared - long) == 1, "of four"
        drawn |= shared
        numbers.append(len(long))
        alone.append("test_alone" in kept)
    assert drawn == {f"test_{name}" for name in "abcd"} | {f"test_long_{name}" for name in "abcde"}
    assert set(numbers) == {0, 1}, "of five, in half of the gates"
    assert 35 <= numbers.count(1) <= 65
    assert 8 <= sum(alone) <= 32


def test_marks_of_a_folder_are_there_before_shares_are_drawn() -> None:
    """Of two hooks that want to be first, the later one runs first, and those of folders are registered later."""
    hook = conftest.pytest_collection_modifyitems
    assert hook.pytest_impl["tryfirst"]


def test_the_seed_is_the_commit_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert answer.stdout.startswith(seed_text()) if answer.returncode == 0 else seed_text() == "no-commit"
