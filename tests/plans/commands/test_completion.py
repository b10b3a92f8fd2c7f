"""Completion at the Tab key: by real bash with the script it gets, and what is offered to all shells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hintplan.plans.commands.completion import shell_completions
from hintplan.plans.commands.completion_paths import assignments, operators, setting_paths
from hintplan.plans.commands.root import COMMANDS
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
Tab = Callable[[str], list[str]]


def environment(folder: Path) -> dict[str, str]:
    """An environment in which ``hintplan`` is this source."""
    command = folder / "bin" / "hintplan"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hintplan "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.fixture
def tab(tmp_path: Path, plan_text: str) -> Tab:
    """What bash offers for a line with the cursor at its end; a plan lies in ``plan.json``."""
    (tmp_path / "plan.json").write_text(plan_text)
    env = environment(tmp_path)
    source = subprocess.run(["hintplan", "completion", "bash"], env=env, capture_output=True, text=True, check=True)
    (tmp_path / "completion.bash").write_text(source.stdout)
    # What readline does before it calls the function: words, also cut at "=" and ":", and the place of the cursor.
    program = """
        shopt -s expand_aliases
        compopt() { echo "option $2"; }
        source completion.bash
        COMP_LINE="$1"; COMP_POINT=${#1}; COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        read -ra COMP_WORDS <<< "$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _hintplan_completion hintplan "${COMP_WORDS[COMP_CWORD]}" ""
        printf '%s\\n' "${COMPREPLY[@]}"
    """

    def press(line: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", program, "bash", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [offer for offer in done.stdout.split("\n") if offer]

    return press


def test_bash_offers_commands(tab: Tab) -> None:
    assert tab("hintplan ") == list(COMMANDS)
    assert tab("hintplan e") == ["explain"]


def test_bash_offers_the_options_of_a_command(tab: Tab) -> None:
    assert tab("hintplan show plan.json --f") == ["--format"]
    assert tab("hintplan show plan.json --format m") == ["mermaid"]


def test_bash_offers_the_settings_of_the_plan_on_the_line(tab: Tab) -> None:
    # "option nospace": the value follows without a blank.
    assert tab("hintplan set plan.json join") == [
        "option nospace",
        "option nospace",
        "join_o_c.state.leftState.ttl=",
        "join_o_c.state.rightState.ttl=",
    ]


def test_bash_offers_values_behind_the_equals_sign_where_it_cuts_words(tab: Tab) -> None:
    # 3 d runs, the hint asked for 1 d, the config for 1 h; blanks are escaped.
    assert tab("hintplan set plan.json join_o_c.state.leftState.ttl=") == ["3\\ d", "1\\ h", "1\\ d"]


def test_bash_offers_the_settings_that_one_can_ask_about(tab: Tab) -> None:
    assert tab("hintplan why plan.json join_o_c.") == [
        "join_o_c.max-rows-per-key.left",
        "join_o_c.max-rows-per-key.right",
        "join_o_c.state.leftState.ttl",
        "join_o_c.state.rightState.ttl",
    ]


def test_bash_offers_files_where_a_plan_belongs(tab: Tab) -> None:
    assert tab("hintplan explain ") == ["option default"]
    assert tab("hintplan set pl") == ["option default"]


def test_the_second_setting_on_a_line_is_completed_like_the_first(tab: Tab) -> None:
    line = "hintplan set plan.json join_o_c.state.leftState.ttl=3\\ d agg"
    assert "aggregate_t.state.groupAggregateState.ttl=" in tab(line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_ones_that_their_shells_can_read(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    env = environment(tmp_path)
    source = subprocess.run(["hintplan", "completion", shell], env=env, capture_output=True, text=True, check=True)
    script = tmp_path / f"completion.{shell}"
    script.write_text(source.stdout)
    done = subprocess.run([shell, "-n", str(script)], env=env, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_zsh_and_fish_are_answered_in_their_forms(tmp_path: Path, plan_text: str) -> None:
    (tmp_path / "plan.json").write_text(plan_text)
    env = environment(tmp_path)

    def ask(shell: str, words: str, word: str) -> str:
        asked = {**env, "_HINTPLAN_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": word}
        return subprocess.run(["hintplan"], cwd=tmp_path, env=asked, capture_output=True, text=True, check=True).stdout

    assert ask("zsh", "hintplan set plan.json agg", "3") == ("open\naggregate_t.state.groupAggregateState.ttl=\n1 h\n")
    assert ask("fish", "hintplan set plan.json agg", "agg") == "plain,aggregate_t.state.groupAggregateState.ttl=\t1 h\n"


def test_every_path_that_is_offered_can_be_set(plan: Plan, plan_text: str) -> None:
    for path, value, _ in setting_paths(json.loads(plan_text)):
        set_value(plan, path, str(value))


def test_config_keys_that_a_plan_lacks_are_offered(plan_text: str) -> None:
    document = json.loads(plan_text)
    offers = [offer.text for offer in assignments(document, "config.")]
    assert "config.parallelism.default=" in offers or "config.parallelism." in offers
    assert [o.text for o in assignments(document, "config.par")] == ["config.parallelism.default="]


def test_settings_with_few_values_offer_them() -> None:
    document = json.loads((ROOT / "tests" / "plans" / "enriched_orders.json").read_text())
    offers = {offer.text for offer in assignments(document, "lookup_rates.async.output-mode=")}
    assert offers >= {"lookup_rates.async.output-mode=ordered", "lookup_rates.async.output-mode=allow_unordered"}
    key = "config.table.optimizer.agg-phase-strategy"
    assert {offer.text for offer in assignments(document, f"{key}=")} == {
        f"{key}={value}" for value in ("AUTO", "ONE_PHASE", "TWO_PHASE")
    }


def test_settings_that_nobody_asked_for_are_offered_behind_their_operator() -> None:
    document = {"mode": "batch", "operators": [{"id": "scan_o", "op": "scan"}, {"id": "calc_o", "op": "calc"}]}
    assert assignments(document, "scan") == []
    texts = [offer.text for offer in assignments(document, "scan_o.")]
    assert texts == ["scan_o.cached.enabled=", "scan_o.cached.storage-level="]
    texts = [offer.text for offer in assignments(document, "scan_o.cached.enabled=")]
    assert texts == ["scan_o.cached.enabled=false", "scan_o.cached.enabled=true"]
    assert assignments({**document, "mode": "streaming"}, "scan_o.") == []


def large(count: int) -> dict[str, Any]:
    entry = {"name": "leftState", "ttl": "1 d", "origin": {"config": "1 d"}}
    return {"operators": [{"id": f"join_{i}", "op": "join", "state": [entry]} for i in range(count)]}


def test_many_settings_are_offered_step_by_step() -> None:
    texts = [offer.text for offer in assignments(large(300), "join_29")]
    assert texts[:2] == ["join_29.state.leftState.ttl=", "join_290.state.leftState.ttl="]
    texts = [offer.text for offer in assignments(large(300), "")]
    assert "join_0." in texts
    assert all(text.count(".") <= 1 for text in texts)


def test_names_that_a_shell_would_run_are_not_offered() -> None:
    bad = ["$(reboot)", "`reboot`", "a;b", "a b", "a\nb", "\x1b[2J", "-rf", "\u202e", "a'b", "*"]
    entry = {"name": "leftState", "ttl": "$(reboot)", "origin": {"hint": "`reboot`"}}
    document = {
        "operators": [{"id": name, "state": [entry]} for name in bad] + [{"id": "join_a", "state": [entry]}],
        "config": dict.fromkeys(bad, "1"),
        "tables": {name: {"options": {name: "x"}} for name in bad},
    }
    assert [offer.text for offer in operators(document)] == ["join_a"]
    assert [o.text for o in assignments(document, "join_a")] == ["join_a.state.leftState.ttl="]
    assert assignments(document, "join_a.state.leftState.ttl=") == []
    assert [path for path, _, _ in setting_paths(document)] == ["join_a.state.leftState.ttl"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"operators": 7}', '{"operators": [7, {"id": 3}, {"state": 1}]}'])
def test_a_file_that_is_no_plan_offers_nothing_and_complains_not(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    offers = shell_completions(["set", str(path)], "")
    assert all(item.type == "file" or item.value.startswith(("config.", "tables.")) for item in offers)


def test_completion_does_not_load_what_it_does_not_need(tmp_path: Path, plan_text: str) -> None:
    (tmp_path / "plan.json").write_text(plan_text)
    program = (
        "import sys\nfrom hintplan.plans.commands.completion import shell_completions\nimport hintplan.plans.cli\n"
        "assert shell_completions(['set', 'plan.json'], 'join')\n"
        "heavy = ('hintplan.plans.model.plan', 'hintplan.plans.files.codec', 'sqlglot', 'pyspark')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_the_time_of_a_completion_is_told(tab: Tab, record_property: Callable[[str, object], None]) -> None:
    started = time.perf_counter()
    assert tab("hintplan set plan.json join_o_c.state.l")
    record_property("seconds", round(time.perf_counter() - started, 3))
