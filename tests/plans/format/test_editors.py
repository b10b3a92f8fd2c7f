"""`hintplan init`: what it writes, what it leaves alone, and that running it twice changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hintplan.plans.commands.init import PATTERNS, URL, init_command
from hintplan.plans.errors import HintplanError
from hintplan.plans.format.editor_schema import editor_schema


def init(*arguments: str | Path) -> Result:
    return CliRunner().invoke(init_command, [str(argument) for argument in arguments], standalone_mode=False)


def settings(folder: Path) -> Any:
    return json.loads((folder / ".vscode" / "settings.json").read_text())


def put(folder: Path, text: str) -> Path:
    (folder / ".vscode").mkdir()
    path = folder / ".vscode" / "settings.json"
    path.write_text(text)
    return path


def test_a_new_workspace_gets_settings_and_a_schema(tmp_path: Path) -> None:
    result = init(tmp_path)
    assert result.exception is None
    assert settings(tmp_path) == {"json.schemas": [{"fileMatch": list(PATTERNS), "url": URL}]}
    assert json.loads((tmp_path / URL).read_text()) == editor_schema()
    assert result.output.count(": written") == 2


def test_running_it_again_changes_nothing(tmp_path: Path) -> None:
    init(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / ".vscode").iterdir()}
    result = init(tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / ".vscode").iterdir()} == before
    assert result.output.count("as it should be") == 2


def test_plans_that_are_there_and_patterns_that_are_given_are_matched(tmp_path: Path, plan_text: str) -> None:
    (tmp_path / "revenue.json").write_text(plan_text)
    (tmp_path / "package.json").write_text('{"name": "x"}')
    init(tmp_path, "--match", "jobs/*.json")
    assert settings(tmp_path)["json.schemas"][0]["fileMatch"] == [*PATTERNS, "revenue.json", "jobs/*.json"]
    # A second run without the option does not forget it.
    init(tmp_path)
    assert "jobs/*.json" in settings(tmp_path)["json.schemas"][0]["fileMatch"]


def test_other_settings_and_schemas_stay(tmp_path: Path) -> None:
    other = {"fileMatch": ["x.json"], "url": "https://example.com/x.json"}
    path = put(tmp_path, json.dumps({"editor.tabSize": 8, "json.schemas": [other], "ö": "ü"}, indent=4))
    init(tmp_path)
    written = settings(tmp_path)
    assert list(written) == ["editor.tabSize", "json.schemas", "ö"]
    assert written["json.schemas"][0] == other
    assert written["json.schemas"][1]["url"] == URL
    assert '\n    "editor.tabSize": 8' in path.read_text()


@pytest.mark.parametrize(
    "text",
    ['{\n  // mine\n  "editor.tabSize": 8\n}', '{"a": 1,}', "[]", '{"json.schemas": {}}'],
    ids=["comment", "comma", "list", "wrong schemas"],
)
def test_settings_that_could_not_be_written_back_are_left_alone(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    error = init(tmp_path).exception
    assert isinstance(error, HintplanError)
    assert URL in str(error)
    assert path.read_text() == text
    assert sorted(p.name for p in (tmp_path / ".vscode").iterdir()) == ["settings.json"]


def test_settings_with_comments_are_fine_once_the_entry_is_in_them(tmp_path: Path) -> None:
    entry = json.dumps({"fileMatch": list(PATTERNS), "url": URL})
    text = f'{{\n  // mine\n  "json.schemas": [{entry}],\n}}'
    path = put(tmp_path, text)
    assert init(tmp_path).exception is None
    assert path.read_text() == text
    assert (tmp_path / URL).exists()
