"""The canonical layout as a command: nothing but layout changes, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hintplan as api
from hintplan.plans.files.fmt import canonical_text
from tests.plans.in_process import hintplan

PLANS = sorted(Path(__file__).parents[1].glob("*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_canonical_plan_stays_as_it_is(path: Path) -> None:
    assert canonical_text(path.read_bytes()) == path.read_bytes()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(PLANS), st.sampled_from([None, 0, 1, 4]), st.booleans())
def test_any_layout_becomes_canonical_and_means_the_same(path: Path, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(json.loads(path.read_text()), indent=indent, ensure_ascii=ascii_only)
    assert canonical_text(text.encode()) == path.read_bytes()


def test_a_duration_is_spelled_as_the_compiler_would(plan_text: str) -> None:
    assert canonical_text(plan_text.replace('"ttl": "3 d"', '"ttl": "72h"').encode()) == plan_text.encode()


def test_a_fact_changed_by_hand_keeps_the_digest_that_tells() -> None:
    path = next(path for path in PLANS if path.stem == "revenue_by_country")
    changed = path.read_text().replace('"filter": "o_total > 0"', '"filter": "o_total > 1"')
    assert canonical_text(changed.encode()).decode() == changed
    with pytest.raises(api.PlanError, match="its facts were changed by hand"):
        api.loads(canonical_text(changed.encode()))


def test_digests_that_are_missing_are_not_made_up(plan_text: str) -> None:
    document = json.loads(plan_text)
    del document["digests"]
    assert b"digests" not in canonical_text(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"mode": "streaming"', '"mode": "streaming", "mode": "streaming"', "duplicate key 'mode'"),
        ('"mode": "streaming"', '"mode": "streaming", "note": "x"', "unknown key 'note'"),
        ('"ttl": "3 d"', '"ttl": 3', "expected a string, found the number 3"),
    ],
)
def test_what_a_plan_cannot_hold_is_refused_and_no_file_is_touched(
    plan_text: str, tmp_path: Path, old: str, new: str, message: str
) -> None:
    bad, loose = tmp_path / "bad.json", tmp_path / "loose.json"
    bad.write_text(plan_text.replace(old, new, 1))
    loose.write_text(json.dumps(json.loads(plan_text)))
    before = [path.read_bytes() for path in (bad, loose)]
    done = hintplan("fmt", bad, loose)
    assert done.returncode == 1
    assert message in done.stderr
    assert [path.read_bytes() for path in (bad, loose)] == before


def test_check_exits_with_2_and_writes_nothing(plan_text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(plan_text)))
    before = path.read_bytes()
    done = hintplan("fmt", "--check", path)
    assert (done.returncode, done.stderr) == (2, f"{path}: would be reformatted\n")
    shown = hintplan("fmt", "--diff", path)
    assert shown.returncode == 2
    assert '+  "format": "1.0",' in shown.stdout
    assert path.read_bytes() == before
    assert hintplan("fmt", path).returncode == 0
    assert path.read_text() == plan_text
    assert hintplan("fmt", "--check", path).returncode == 0


def test_standard_input_goes_to_standard_output(plan_text: str) -> None:
    done = hintplan("fmt", "-", stdin=json.dumps(json.loads(plan_text)).encode())
    assert (done.returncode, done.stdout) == (0, plan_text)


def test_the_flat_form_has_a_line_for_each_setting_that_says_who_set_it(plan_text: str) -> None:
    lines = hintplan("flat", "-", stdin=plan_text.encode()).stdout.splitlines()
    assert "join_o_c.state.leftState.ttl = 3 d   (edit · hint 1 d · config 1 h)" in lines
    assert 'join_o_c.keys[0] = {"left": "o_custkey", "right": "c_custkey"}' in lines
    assert "config.table.exec.state.ttl = 1 h" in lines
    assert len(lines) == len(set(lines))


def test_the_lenient_flat_form_of_no_plan_is_its_text() -> None:
    done = hintplan("flat", "--lenient", "-", stdin=b"<no plan>\n")
    assert (done.returncode, done.stdout) == (0, "<no plan>\n")
    assert hintplan("flat", "-", stdin=b"<no plan>\n").returncode == 1
