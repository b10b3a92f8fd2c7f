"""Rules of the linter, each with a plan that breaks it and one that does not; ignores, fixes, forms of the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hintplan as api
from hintplan import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.lint.check import LocatedFinding, fixed, lint_plan
from hintplan.plans.lint.registry import RULES, rule_called
from hintplan.plans.lint.run import lint_files
from tests.plans.in_process import hintplan
from tests.plans.lint.lint_examples import EXAMPLES, LEFT, RIGHT, SQL, edited, respelled

PAGE = (Path(__file__).parents[3] / "docs" / "lint.md").read_text(encoding="utf-8")
ELSEWHERE = {"HP001", "HP002", "HP103"}
"""Rules that look at ignores or at SQL, and so have tests of their own below."""


def findings(text: str, rule: str | None = None) -> list[LocatedFinding]:
    found = lint_plan(text.encode(), file="plan.json").found
    return [one for one in found if rule in (None, one.rule.id)]


def test_every_rule_has_an_example_and_a_section_and_a_row() -> None:
    assert set(RULES) == set(EXAMPLES) | ELSEWHERE
    sections = re.findall(r"^### (HP\d+) (\S+)$", PAGE, re.MULTILINE)
    assert sections == [(rule.id, rule.slug) for rule in RULES.values()]
    rows = re.findall(r"^\| \[(HP\d+)\]\(#(\S+)\) \| `(\S+)` \| (\w+) \| (.+?) \| (yes|) ?\|$", PAGE, re.MULTILINE)
    assert rows == [
        (r.id, f"{r.id.lower()}-{r.slug}", r.slug, r.level, r.about, "yes" if r.fixable else "") for r in RULES.values()
    ]


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_plan_that_breaks_a_rule_is_found_as_its_section_says(rule: str) -> None:
    (one, *more) = findings(EXAMPLES[rule].bad, rule)
    assert more == [] or rule == "HP000"
    section = PAGE.partition(f"### {rule} ")[2].partition("\n### ")[0]
    assert f"{one.finding.path.removeprefix('operators.')}: {one.finding.message}" in section
    assert re.sub(r"\s+", " ", RULES[rule].advice) in re.sub(r"\s+", " ", section)
    assert one.line is not None


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_plan_that_keeps_a_rule_is_not_found(rule: str) -> None:
    assert findings(EXAMPLES[rule].good, rule) == []
    assert api.loads(EXAMPLES[rule].good)


@pytest.mark.parametrize("rule", [rule for rule in EXAMPLES if RULES[rule].fixable and rule != "HP101"])
def test_what_a_fix_mends_is_not_found_again_and_runs_as_before(rule: str) -> None:
    checked = lint_plan(EXAMPLES[rule].bad.encode(), file="plan.json")
    data, mended = fixed(checked, facts=True)
    assert [one.rule.id for one in mended] == [rule]
    assert findings(data.decode(), rule) == []
    assert api.loads(data)
    before, after = EXAMPLES[rule].bad.splitlines(), data.decode().splitlines()
    assert len(set(before) ^ set(after)) < 20


def test_a_ttl_spelled_otherwise_than_its_hint_is_a_redundant_edit_that_a_fix_respells() -> None:
    (one,) = findings(respelled())
    assert (one.rule.id, one.finding.message) == ("HP101", "the edit, 480 h, equals the value of the hint, 20 d")
    data, _ = fixed(lint_plan(respelled().encode(), file=None), facts=False)
    assert data.decode() == edited()


def test_facts_are_not_mended_unless_asked_for() -> None:
    checked = lint_plan(EXAMPLES["HP105"].bad.encode(), file="plan.json")
    assert fixed(checked, facts=False) == (checked.data, ())


def test_a_function_that_no_operator_calls_is_unused() -> None:
    document = json.loads((Path(__file__).parents[1] / "located_orders.json").read_text())
    assert findings(json.dumps(document), "HP105") == []
    document["functions"]["spare"] = document["functions"]["locate"]
    found = lint_plan(json.dumps(document).encode(), file=None, allow_fact_edits=True).found
    assert [one.finding.message for one in found if one.rule.id == "HP105"] == ["no operator calls function 'spare'"]


def test_a_finding_names_the_line_of_the_setting() -> None:
    text = EXAMPLES["HP303"].bad
    (one,) = findings(text)
    assert text.splitlines()[(one.line or 0) - 1].strip() == '"capacity": 1,'


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [("1 min", "999 min", False), ("1 min", "1000 min", True), ("1 d", "0 ms", True), ("0 ms", "0 ms", False)],
)
def test_sides_of_an_outer_join_are_lopsided_from_a_thousandfold_on(left: str, right: str, found: bool) -> None:
    assert bool(findings(edited((LEFT, left), (RIGHT, right)), "HP203")) is found


def test_an_inner_join_may_have_sides_of_any_length() -> None:
    inner = compile_sql(SQL.replace("LEFT JOIN customers", "JOIN customers"), name="revenue")
    lopsided, _ = set_value(inner, LEFT, "1 s")
    assert findings(api.dumps(lopsided).decode(), "HP203") == []


@pytest.mark.parametrize(
    ("left", "right", "aggregate", "found"),
    [
        ("1 d", "20 d", "1 d", False),
        ("1 d", "20 d", "23 h", True),
        ("0 ms", "20 d", "30 d", True),  # rows of the preserved side wait forever for a partner
        ("0 ms", "20 d", "0 ms", False),
    ],
)
def test_an_aggregate_must_last_as_long_as_the_preserved_side_of_an_outer_join(
    left: str, right: str, aggregate: str, found: bool
) -> None:
    plan = edited((LEFT, left), (RIGHT, right), ("aggregate_t.state.groupAggregateState.ttl", aggregate))
    assert bool(findings(plan, "HP202")) is found


@pytest.mark.parametrize(("aggregate", "found"), [("1 d", False), ("23 h", True)])
def test_an_inner_join_lasts_as_long_as_the_shorter_of_its_sides(aggregate: str, found: bool) -> None:
    plan = compile_sql(SQL.replace("LEFT JOIN customers", "JOIN customers"), name="revenue")
    plan, _ = set_value(plan, "aggregate_t.state.groupAggregateState.ttl", aggregate)
    assert bool(findings(api.dumps(plan).decode(), "HP202")) is found


def test_a_global_aggregate_of_one_row_may_keep_it_forever() -> None:
    script = SQL.partition("INSERT")[0].replace("'1 d'", "'0 ms'")
    script += "CREATE TABLE totals (n BIGINT, m {type}) WITH ('connector' = 'blackhole');"
    for call, kind, found in (("SUM(total)", "DOUBLE", 0), ("COUNT(DISTINCT customer)", "BIGINT", 1)):
        query = f"INSERT INTO totals SELECT COUNT(*), {call} FROM orders;"
        plan = compile_sql(script.replace("{type}", kind) + query)
        assert len(findings(api.dumps(plan).decode(), "HP201")) == found


def test_no_two_rules_share_a_name_and_both_names_are_known() -> None:
    assert len({rule.slug for rule in RULES.values()}) == len(RULES)
    for rule in RULES.values():
        assert rule_called(rule.id.lower()) is rule_called(rule.slug) is rule


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "orders.json").write_text(EXAMPLES["HP303"].bad)
    (tmp_path / "plans" / "good.json").write_text(edited())
    (tmp_path / "job.sql").write_text(SQL)
    return tmp_path


def ignoring(folder: Path, *lines: str, name: str = "hintplan.toml", table: str = "lint.ignore") -> None:
    (folder / name).write_text(f"[[{table}]]\n" + "\n".join(lines) + "\n")


def found_in(folder: Path, *names: str) -> list[str]:
    report = lint_files([str(folder / "plans" / name) for name in names or ("orders.json",)])
    return [one.rule.id for one in report.found]


def test_an_ignore_with_a_reason_hides_a_finding_and_the_report_keeps_the_reason(folder: Path) -> None:
    ignoring(folder, 'rule = "async-capacity-one"', 'at = "lookup_r.async.*"', 'reason = "the service asks for it"')
    report = lint_files([str(folder / "plans" / "orders.json")])
    assert report.found == ()
    assert [ignore.reason for _, ignore in report.ignored] == ["the service asks for it"]


def test_an_ignore_may_stand_in_pyproject(folder: Path) -> None:
    lines = ('rule = "HP303"', 'reason = "the service asks for it"')
    ignoring(folder, *lines, name="pyproject.toml", table="tool.hintplan.lint.ignore")
    assert found_in(folder) == []


def test_an_ignore_without_reason_is_a_finding_at_its_line(folder: Path) -> None:
    ignoring(folder, 'rule = "HP303"')
    report = lint_files([str(folder / "plans" / "orders.json")])
    assert [(one.rule.id, Path(one.file or "").name, one.line) for one in report.found] == [
        ("HP001", "hintplan.toml", 1)
    ]


def test_a_finding_in_the_file_of_ignores_names_it_from_here(folder: Path) -> None:
    ignoring(folder, 'rule = "HP303"')
    done = hintplan("lint", "plans/orders.json", "--format", "github", folder=folder)
    assert done.stdout.startswith("::warning file=hintplan.toml,line=1,col=1,")


def test_an_ignore_that_matches_nothing_is_a_finding(folder: Path) -> None:
    ignoring(folder, 'rule = "HP303"', 'at = "lookup_x.*"', 'reason = "x"')
    assert found_in(folder) == ["HP303", "HP002"]


def test_an_ignore_for_another_plan_is_neither_used_nor_idle(folder: Path) -> None:
    ignoring(folder, 'rule = "HP303"', 'plan = "plans/other.json"', 'reason = "x"')
    assert found_in(folder) == ["HP303"]
    ignoring(folder, 'rule = "HP303"', 'plan = "plans/good.json"', 'reason = "x"')
    assert found_in(folder, "orders.json", "good.json") == ["HP303", "HP002"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['rule = "HP999"', 'reason = "x"'], "there is no rule 'HP999'"),
        (['reason = "x"'], "an ignore needs a 'rule'"),
        (['rule = "HP201"', 'resaon = "x"'], "did you mean 'reason'?"),
        (['rule = "HP201"', "reason = 3"], "'reason' must be a string"),
        (['rule = "HP000"', 'reason = "x"'], "HP000 invalid-plan cannot be ignored"),
        (['rule = "HP201'], "not valid TOML"),
    ],
)
def test_mistakes_in_the_file_of_ignores_are_errors(folder: Path, lines: list[str], message: str) -> None:
    ignoring(folder, *lines)
    with pytest.raises(api.PlanError, match=re.escape(message)):
        found_in(folder)


def test_hints_without_effect_are_found_in_the_sql(folder: Path) -> None:
    unused = "CREATE VIEW v AS SELECT /*+ STATE_TTL('x' = '1 d') */ x.id FROM orders x JOIN customers c ON x.id = c.id;"
    (folder / "job.sql").write_text(SQL.replace("INSERT", unused + "\nINSERT", 1))
    report = lint_files([str(folder / "plans" / "good.json")], script=str(folder / "job.sql"))
    (one,) = report.found
    assert one.rule.id == "HP103"
    line = (folder / "job.sql").read_text().splitlines()[(one.line or 0) - 1]
    assert line[(one.column or 0) - 1 :].startswith("'x' = '1 d'")


def test_the_exit_code_says_whether_something_is_as_grave_as_asked(folder: Path) -> None:
    bad, good = "plans/orders.json", "plans/good.json"
    done = hintplan("lint", bad, good, folder=folder)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "plans/orders.json:101:21: warning HP303 async-capacity-one: lookup_r.async.capacity: "
    )
    assert done.stderr == "1 warning in 2 plans\n"
    assert hintplan("lint", bad, "--fail-on", "error", folder=folder).returncode == 0
    done = hintplan("lint", good, folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing found in 1 plan\n")


def test_fix_writes_the_file_and_reports_what_it_mended(folder: Path) -> None:
    path = folder / "plans" / "orders.json"
    path.write_text(EXAMPLES["HP106"].bad)
    done = hintplan("lint", "--fix", "plans/orders.json", folder=folder)
    assert done.returncode == 0
    assert "fixed: tables.orders.options.lookup.cache: the option 'lookup.cache' has no effect" in done.stderr
    assert path.read_text() == edited()


def test_forms_for_build_servers(folder: Path) -> None:
    words = ("lint", "plans/orders.json", "--format")
    report = json.loads(hintplan(*words, "json", folder=folder).stdout)
    assert [(found["rule"], found["line"], found["level"]) for found in report["findings"]] == [
        ("HP303", 101, "warning")
    ]
    (line,) = hintplan(*words, "github", folder=folder).stdout.splitlines()
    assert line.startswith("::warning file=plans/orders.json,line=101,col=21,title=hintplan%3A HP303::")
    run = json.loads(hintplan(*words, "sarif", folder=folder).stdout)["runs"][0]
    assert run["results"][0]["ruleId"] == "HP303"
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"].startswith("async-capacity-one: ")
    assert 'classname="hintplan.HP303"' in hintplan(*words, "junit", folder=folder).stdout


def test_a_file_that_is_no_plan_is_an_error_like_any_other_finding(folder: Path) -> None:
    (folder / "plans" / "bad.json").write_text("{")
    done = hintplan("lint", "plans/bad.json", "plans/good.json", "--json", folder=folder)
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)["findings"]
    assert (found["rule"], found["level"], found["line"]) == ("HP000", "error", 1)


def test_an_operator_that_is_called_like_a_setting_may_have_an_edge_to_nowhere() -> None:
    plan = compile_sql(
        """CREATE TABLE s (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE r (k BIGINT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY k, window_start, window_end;"""
    )
    data = api.dumps(plan).replace(b'"inputs": ["scan_s"]', b'"inputs": ["scan"]')
    found = lint_plan(data, file=None, allow_fact_edits=True).found
    assert {each.rule.id for each in found} == {"HP000"}
    assert "operators.watermark_s.inputs[0]" in [each.finding.path for each in found]


def test_wrong_usage_is_told(folder: Path) -> None:
    assert hintplan("lint", folder=folder).returncode == 64
    assert hintplan("lint", "--fix", "-", folder=folder).returncode == 64
    assert "did you mean 'HP201'?" in hintplan("lint", "--explain", "HP20", folder=folder).stderr
    assert hintplan("lint", "--explain", "state-never-expires", folder=folder).stdout.startswith("HP201 ")


@pytest.mark.slow
def test_a_large_plan_is_checked_laid_out_and_merged() -> None:
    # Ten thousand operators take seconds each; these are enough to notice what is not linear.
    from hintplan.plans.files.fmt import canonical_text
    from hintplan.plans.merge.flat import flat_lines
    from hintplan.plans.merge.merge import merge_plans

    document = json.loads(edited())
    chains = []
    for number in range(250):
        for operator in document["operators"]:
            copy = json.loads(json.dumps(operator))
            copy["id"] = f"{copy['id']}_{number}"
            copy["inputs"] = [f"{name}_{number}" for name in copy.get("inputs", ())]
            if not copy["inputs"]:
                del copy["inputs"]
            chains.append(copy)
    document["operators"] = chains
    del document["digests"]["settings"]["lookup_r.retry"]
    base = api.loads(json.dumps(document), allow_fact_edits=True)
    assert len(base.operators) == 2_000
    data = api.dumps(base)
    ours, _ = set_value(base, "join_o_c_7.state.leftState.ttl", "0 ms")
    theirs, _ = set_value(base, "join_o_c_9.state.rightState.ttl", "9 d")
    done = merge_plans(base, ours, theirs).plan
    assert done is not None
    merged = api.dumps(done)
    assert canonical_text(merged) == merged
    rules = [one.rule.id for one in lint_plan(merged, file="plan.json").found]
    assert [rule for rule in rules if rule != "HP206"] == ["HP201", "HP203", "HP202"]
    assert rules.count("HP206") == 2 * 249, "the join and the aggregate of each chain but the first"
    assert len(set(merged.splitlines()) ^ set(data.splitlines())) == 2
    assert sum(1 for _ in flat_lines(done)) > 15_000


def test_of_a_rule_that_finds_much_the_first_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    document = json.loads(api.dumps(api.loads(EXAMPLES["HP201"].good)))
    document["tables"] |= {
        f"unused_{n}": {"columns": [{"name": "id", "type": "BIGINT"}], "options": {"connector": "blackhole"}}
        for n in range(30)
    }
    (tmp_path / "plan.json").write_text(json.dumps(document))
    short = hintplan("lint", "plan.json", "--allow-fact-edits", folder=tmp_path)
    listed = [line for line in short.stdout.splitlines() if ": no operator reads" in line]
    assert len(listed) == 10
    rest = [line for line in short.stdout.splitlines() if " more of " in line]
    assert len(rest) == 1
    assert rest[0].startswith("plan.json: 20 more of ")
    assert "--all lists them" in rest[0]
    assert "30 " in short.stderr
    whole = hintplan("lint", "plan.json", "--allow-fact-edits", "--all", folder=tmp_path)
    assert whole.stdout.count(": no operator reads") == 30
    as_json = hintplan("lint", "plan.json", "--allow-fact-edits", "--json", folder=tmp_path)
    assert len(json.loads(as_json.stdout)["findings"]) == 30


def test_a_join_whose_input_only_grows_takes_nothing_back() -> None:
    tables = "".join(
        f"CREATE TABLE {name} (id BIGINT, k BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{name}', 'format' = 'json');"
        for name in ("a", "b", "c")
    )
    sql = (
        f"{tables} CREATE TABLE r (id BIGINT) WITH ('connector' = 'print');"
        "INSERT INTO r SELECT /*+ STATE_TTL('a' = '9 d', 'b' = '9 d', 'c' = '9 d') */ a.id "
        "FROM a {} JOIN b ON a.k = b.k JOIN c ON c.k = a.k"
    )
    for kind, found in (("", False), ("LEFT", True)):
        plan, _ = set_value(compile_sql(sql.format(kind)), "join_a_b_c.leftState.ttl", "1 d")
        assert bool(findings(api.dumps(plan).decode(), "HP202")) is found


THREE = """
SET 'table.exec.state.ttl' = '7 d';
CREATE TABLE o (id BIGINT, c BIGINT, p BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE c (id BIGINT, n STRING) WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
CREATE TABLE p (id BIGINT, n STRING) WITH ('connector' = 'filesystem', 'path' = 'p', 'format' = 'json');
CREATE TABLE r (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO r {};
"""
JOINED = "SELECT /*+ STATE_TTL('o' = '1 d') */ o.id FROM o JOIN c ON o.c = c.id JOIN p ON o.p = p.id"


@pytest.mark.parametrize(
    ("query", "edits", "outlived"),
    [
        pytest.param(JOINED, {}, ["join_o_c_p.state.leftState.ttl"], id="a hint of the first join"),
        pytest.param(JOINED.replace("/*+ STATE_TTL('o' = '1 d') */", ""), {}, [], id="no hint"),
        pytest.param(JOINED.replace("1 d", "8 d"), {}, [], id="a longer hint"),
        pytest.param(JOINED, {"join_o_c_p.leftState.ttl": "6 d"}, [], id="a TTL of its own"),
        pytest.param(JOINED, {"join_o_c.leftState.ttl": "8 d"}, [], id="an edit over the hint"),
        pytest.param(
            JOINED.replace("/*+ STATE_TTL('o' = '1 d') */", ""),
            {"join_o_c.leftState.ttl": "6 h"},
            ["join_o_c_p.state.leftState.ttl"],
            id="an edit",
        ),
        pytest.param(
            JOINED, {"config.table.exec.state.ttl": "0 s"}, ["join_o_c_p.state.leftState.ttl"], id="forever by config"
        ),
        pytest.param(JOINED.replace("'o'", "'p'"), {}, [], id="a hint of the last join"),
        pytest.param(
            "SELECT /*+ STATE_TTL('c' = '1 d') */ o.id FROM o JOIN c ON o.c = c.id WHERE o.p IN (SELECT id FROM p)",
            {},
            ["join_o_c_p.state.leftState.ttl"],
            id="the preserved side of a semi join",
        ),
        pytest.param(
            "SELECT t.id FROM (SELECT /*+ STATE_TTL('o' = '1 d') */ COUNT(*) AS id FROM o JOIN c ON o.c = c.id GROUP "
            "BY o.p) AS t JOIN p ON t.id = p.id",
            {},
            [],
            id="groups are no rows",
        ),
        pytest.param(
            "SELECT t.id FROM (SELECT /*+ STATE_TTL('p' = '1 d') */ o.id FROM o WHERE o.p IN (SELECT id FROM p)) AS t "
            "JOIN c ON t.id = c.id",
            {},
            [],
            id="a semi join puts out no rows of its right side",
        ),
    ],
)
def test_copies_that_outlive_the_rows_that_a_hint_bounds(
    query: str, edits: dict[str, str], outlived: list[str]
) -> None:
    plan = compile_sql(THREE.format(query), name="three")
    for path, value in edits.items():
        plan, _ = set_value(plan, path, value)
    found = findings(api.dumps(plan).decode(), "HP207")
    assert [one.finding.path.removeprefix("operators.") for one in found] == outlived
