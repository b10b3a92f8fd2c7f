"""Docstrings, comments and messages of the code are read once: none has the words that ``tests/english.py`` finds."""

from __future__ import annotations

import pytest

from tests.english import CODE, ROOT, faults, files


@pytest.mark.parametrize("package", CODE)
def test_nothing_in_the_code_must_be_read_twice(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{fault.line}: {fault.words!r}: write {fault.instead}"
        for path in files((ROOT / package,))
        for fault in faults(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"""What a plan is."""', "What ..."),
        ('"""A plan."""\nX = 1\n"""Whether it is."""', "Whether ..."),
        ('def f():\n    """Return it, but\n    for nothing."""', "but for"),
        ("x = 1  # the run goes on", "goes on"),
        ('class A:\n    """Rows and those of others."""', "those of"),
        ('say(f"the plan {name} says otherwise")', "says"),
        ('option("retries", "How often a sink tries again.")', "How ..."),
    ],
)
def test_such_words_are_found(source: str, words: str) -> None:
    assert [fault.words for fault in faults(source)] == [words]


@pytest.mark.parametrize(
    "source", ['"""Return what is left."""', '"""A file ``beside`` it."""', 'print("What goes on")', "x = 'those of'"]
)
def test_other_words_are_not(source: str) -> None:
    assert faults(source) == []
