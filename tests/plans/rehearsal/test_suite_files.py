"""Files of tests: what YAML's own types would misread stays text, and every mistake is named with its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from hintplan.plans.errors import PlanError
from hintplan.plans.rehearsal.reading import milliseconds, read_suite, suite_of, suites_in
from hintplan.plans.rehearsal.suite import Suite
from hintplan.plans.rehearsal.updating import rows_text, updated

HEAD = "plan: paid.json\ntests:\n  one:\n"


def read(text: str, folder: Path | None = None) -> Suite:
    file = "paid.test.yaml" if folder is None else str(folder / "paid.test.yaml")
    return suite_of(text, file)


def only_row(suite: Suite) -> dict[str, object]:
    (rows,) = suite.scenarios[0].steps[0].rows
    return {name: cell.value for name, cell in rows.rows[0].cells.items()}


def test_values_that_yaml_gives_types_stay_texts() -> None:
    row = "{a: 12:59, b: NO, c: 2026-03-01, d: 0x1F, e: 1e3, f: 007, g: ~, h: null, i: 'null', j: \"\", k: }"
    suite = read(f"{HEAD}    - orders: [{row}]\n")
    assert only_row(suite) == {
        "a": "12:59",
        "b": "NO",
        "c": "2026-03-01",
        "d": "0x1F",
        "e": "1e3",
        "f": "007",
        "g": None,
        "h": None,
        "i": "null",
        "j": "",
        "k": None,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: {}\n", "paid.test.yaml:1:1: neither plan nor sql is here"),
        ("plan: a.json\nsql: a.sql\ntests: {}\n", "paid.test.yaml:1:1: plan and sql are both here"),
        ("plan: a.json\ntest: {}\n", "paid.test.yaml:2:1: unknown key 'test'\n  hint: did you mean 'tests'?"),
        ("plan: a.json\n", "paid.test.yaml:1:1: there are no tests"),
        ("plan: a.json\ninit: b.sql\ntests: {}\n", "paid.test.yaml:2:1: init is for a script"),
        (f"{HEAD}    at: 10:00\n", "paid.test.yaml:4:5: a test is a list of steps, found a mapping"),
        (f"{HEAD}    - orders\n", "paid.test.yaml:4:7: a step is a mapping, found 'orders'"),
        (f"{HEAD}    - orders: 5 rows\n", "paid.test.yaml:4:15: '5 rows' "),
        (f"{HEAD}    - orders: [5]\n", "paid.test.yaml:4:16: a row is a mapping, found '5'"),
        (f"{HEAD}    - orders: [{{id: 1, id: 2}}]\n", "paid.test.yaml:4:24: 'id' is here twice, first in line 4"),
        (f"{HEAD}    - after: soon\n", "paid.test.yaml:4:14: 'soon' is no duration\n  hint: write after: 3 h 1 min"),
        (f"{HEAD}    - at: 10:00\n      after: 1 h\n", "paid.test.yaml:5:14: a step has a time, or a time after"),
        (f"{HEAD}    - state: {{a.b: many}}\n", "paid.test.yaml:4:20: 'many' is no number of rows"),
        (f"{HEAD}    - ends: perhaps\n", "paid.test.yaml:4:13: ends is true or false, found 'perhaps'"),
        (f"{HEAD}    - expect: {{paid: {{added: [], removed: []}}}}\n", "4:34: unknown key 'removed'"),
        (f"{HEAD}    - orders: &rows []\n", "paid.test.yaml:4:15: anchors and aliases are not read"),
        (f"{HEAD}    - orders: !!set []\n", "paid.test.yaml:4:15: the tag tag:yaml.org,2002:set is not read"),
        ("plan: [\n", "paid.test.yaml:2:1: the text is not YAML"),
        ("---\nplan: a\n---\nplan: b\n", "paid.test.yaml:3:1: the file has a second document"),
        ("", "paid.test.yaml:1:1: the file is empty"),
        (f"{HEAD}    - orders: ../orders.csv\n", "4:15: '../orders.csv' is not beneath the folder of the tests"),
        (f"{HEAD}    - orders: /etc/passwd\n", "4:15: '/etc/passwd' is not beneath the folder of the tests"),
        (f"{HEAD}    - orders: {{file: none.csv}}\n", "4:22: there is no file 'none.csv'"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "5 rows").write_text("")
    with pytest.raises(PlanError) as caught:
        read(text)
    assert said in str(caught.value)


def test_rows_come_from_files_next_to_the_tests(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"a, b"\n2,\n')
    (tmp_path / "b.json").write_text('{"id": 12345678901234567890.10, "name": null}\n')
    (tmp_path / "c.json").write_text('[{"id": 1}, {"id": 2}]')
    suite = read(f"{HEAD}    - {{a: a.csv, b: b.json, c: {{file: c.json}}}}\n", tmp_path)
    rows = {
        given.table: [{name: cell.value for name, cell in row.cells.items()} for row in given.rows]
        for given in suite.scenarios[0].steps[0].rows
    }
    assert rows["a"] == [{"id": "1", "name": "a, b"}, {"id": "2", "name": None}]
    assert rows["b"] == [{"id": "12345678901234567890.10", "name": None}]
    assert rows["c"] == [{"id": "1"}, {"id": "2"}]


def test_a_mistake_in_a_file_of_rows_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,2,3\n")
    (tmp_path / "b.json").write_text('{"id": 1}\n{"id": }\n')
    for name, said in (("a.csv", "a.csv:2:1: the line has 3 fields, and the first line 2"), ("b.json", "b.json:2:8:")):
        with pytest.raises(PlanError) as caught:
            read(f"{HEAD}    - {{a: {name}}}\n", tmp_path)
        assert said in str(caught.value)


def test_a_link_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text("id\n1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(PlanError, match="is not beneath the folder"):
        read(f"{HEAD}    - {{a: a.csv}}\n", tmp_path / "tests")


def test_durations_have_several_parts() -> None:
    assert milliseconds("3 h 1 min") == (3 * 60 + 1) * 60_000
    assert milliseconds("1d") == 86_400_000


def test_files_of_tests_are_found_beneath_a_folder(tmp_path: Path) -> None:
    for name in ("a.test.yaml", "b/c.test.yml", ".git/d.test.yaml", "e.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert suites_in([str(tmp_path)]) == [str(tmp_path / "a.test.yaml"), str(tmp_path / "b" / "c.test.yml")]
    with pytest.raises(PlanError, match="no file of tests"):
        suites_in([str(tmp_path / "e.yaml")])


def test_an_update_keeps_the_rest_of_the_file() -> None:
    rows_here = "        paid:  # all of them\n          - id: 1\n          - id: 2   # why\n"
    text = f"{HEAD}    - expect:\n{rows_here}      state: {{}}\n"
    suite = read(text)
    (expected,) = suite.scenarios[0].steps[0].expected
    assert expected.rows.owner is not None
    rows = rows_text(("id", "name"), [(3, "12:59"), (4, "a: b")], indent=8)
    after = updated(text, {expected.rows.owner: rows})
    assert "        paid:  # all of them\n          [" in after
    assert after.endswith("]   # why\n      state: {}\n")
    again = read(after).scenarios[0].steps[0].expected[0].rows.rows
    assert [{name: cell.value for name, cell in row.cells.items()} for row in again] == [
        {"id": "3", "name": "12:59"},
        {"id": "4", "name": "a: b"},
    ]


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.test.yaml"
    file.write_bytes(b"#" * ((16 << 20) + 1))
    with pytest.raises(PlanError, match="16 MiB"):
        read_suite(str(file))
