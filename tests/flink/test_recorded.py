"""Each expression that Flink is asked has a recorded answer; a file of answers is replaced as a whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.flink import recording

HERE = Path(__file__).parent
EXPRESSIONS = {
    "functions": "record_functions.py --missing",
    "functions_of_rows": "record_function_values.py --missing",
    "nested": "record_nested.py --missing",
    "literals": "record_literals.py",
}
"""Files of expressions, each with what records the answers to those that are new."""


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_expression_has_an_answer_of_flink(name: str) -> None:
    answers = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    wanted: set[tuple[str, ...]] = set()
    table: tuple[str, ...] = ()
    for line in recording.lines_of(HERE / f"{name}.txt"):
        if name == "functions_of_rows" and line.startswith("["):
            table = (line.strip("[]"),)
        else:
            wanted.add((*table, line))
    tables = answers if name == "functions_of_rows" else {}
    known = {(each, text) for each, texts in tables.items() for text in texts} or {(text,) for text in answers}
    run = f"run: .flink/bin/python tests/flink/{EXPRESSIONS[name]}"
    assert wanted - known == set(), f"{name}.txt has expressions without an answer in {name}.json; {run}"
    assert known - wanted == set(), f"{name}.json has answers that {name}.txt no longer asks for; {run}"


def test_only_what_has_no_answer_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.json"
    assert recording.recorded(path) == {}
    recording.replace(path, recording.by_expression({"a": 1, "gone": 2}))
    assert recording.recorded(path) == {}, "all are asked for again"
    monkeypatch.setattr(sys, "argv", ["record.py", "--missing"])
    assert recording.missing(recording.recorded(path), ["b", "a"]) == (["b"], {"a": 1})


def test_answers_stay_as_they_are_if_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    recording.replace(path, "{}\n")
    with pytest.raises(UnicodeEncodeError):
        recording.replace(path, "begin \ud800")
    assert path.read_text() == "{}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["answers.json"]
