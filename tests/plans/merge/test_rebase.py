"""Edits outlive a recompilation: each is kept, found to be no edit any more, or the reason why nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hintplan as api
from hintplan import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.merge.decompose import decompose, settings_by_key
from hintplan.plans.merge.merge_text import path_of
from hintplan.plans.merge.rebase import RebasedPlan, rebase_plan
from hintplan.plans.merge.rebase_report import obstacles, rebase_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import setting_at
from tests.plans.in_process import hintplan
from tests.plans.merge.versions import EDIT_LISTS, VARIANTS, compiled, edited

SQL = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE orders (id BIGINT, customer BIGINT, total DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE customers (id BIGINT, country STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/customers', 'format' = 'json');
CREATE TABLE result (id BIGINT, country STRING) WITH ('connector' = 'print');
INSERT INTO result
SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, c.country FROM orders AS o JOIN customers AS c ON o.customer = c.id;
"""
LEFT = "join_o_c.state.leftState.ttl"


def value(plan: Plan | None, path: str) -> object:
    assert plan is not None
    found = setting_at(plan, path)
    assert found is not None, path
    return found.value


def other_name(sql: str) -> Plan:
    """The plan of ``sql`` with another alias for ``o``, so that the join has another id."""
    return compile_sql(sql.replace("AS o ", "AS x ").replace("o.", "x.").replace("'o'", "'x'"))


def texts(rebased: RebasedPlan) -> str:
    return "\n".join(str(problem) for problem in obstacles(rebased, "old.json"))


def test_without_edits_the_result_is_the_new_plan() -> None:
    done = rebase_plan(compiled("hint and sink"), compiled())
    assert done.plan == compiled("hint and sink")
    assert rebase_text(done) == "no edits to keep"


def test_with_the_same_sql_the_result_is_the_old_plan() -> None:
    old = edited(compiled(), (LEFT, "3 d"), ("config.table.exec.state.ttl", "2 h"), ("lookup_r.retry", "off"))
    done = rebase_plan(compiled(), old)
    assert api.dumps(done.plan or compiled()) == api.dumps(old)
    assert len(done.kept) == 3
    assert done.changed_underneath == ()


def test_an_edit_is_kept_when_unrelated_sql_changes() -> None:
    done = rebase_plan(compiled("sink"), edited(compiled(), (LEFT, "3 d")))
    assert value(done.plan, LEFT) == "3 d"
    assert [(edit.path, edit.value, edit.before) for edit in done.kept] == [(LEFT, "3 d", "hint 1 d")]


def test_an_edit_whose_hint_changed_is_kept_over_the_new_hint_and_reported() -> None:
    done = rebase_plan(compiled("hint"), edited(compiled(), (LEFT, "3 d")))
    assert value(done.plan, LEFT) == "3 d"
    (edit,) = done.changed_underneath
    assert (edit.before, edit.after) == ("hint 1 d", "hint 2 d")
    assert "over hint 2 d; it was over hint 1 d" in rebase_text(done)


def test_an_edit_that_the_sql_now_says_itself_is_no_edit_any_more() -> None:
    done = rebase_plan(compiled("hint"), edited(compiled(), (LEFT, "2 d")))
    assert done.plan == compiled("hint")
    assert [edit.path for edit in done.same] == [LEFT]


def test_an_unedited_option_follows_the_sql_and_an_edited_one_does_not() -> None:
    path = "tables.orders.options.path"
    assert value(rebase_plan(compiled("path"), compiled()).plan, path) == "data/orders/v2"
    done = rebase_plan(compiled("path"), edited(compiled(), (path, "data/test")))
    assert value(done.plan, path) == "data/test"
    assert [edit.path for edit in done.changed_underneath] == [path]


def test_an_edited_config_reaches_every_operator_of_the_new_plan() -> None:
    old = edited(compiled(), ("config.table.exec.state.ttl", "3 h"))
    done = rebase_plan(compiled("config"), old)
    assert value(done.plan, "config.table.exec.state.ttl") == "3 h"
    assert api.loads(api.dumps(done.plan or old)) == done.plan


def test_a_retry_that_was_taken_away_stays_away() -> None:
    done = rebase_plan(compiled("sink"), edited(compiled(), ("lookup_r.retry", "off")))
    assert done.plan is not None
    assert done.plan.operator("lookup_r").retry is None  # type: ignore[union-attr]
    assert [(edit.path, edit.value) for edit in done.kept] == [("lookup_r.retry", "off")]


def test_the_size_of_a_cache_that_the_sql_took_away_is_an_orphan() -> None:
    path = "lookup_r.cache.lookup.partial-cache.max-rows"
    old = edited(compiled(), (path, "10"))
    new = compiled(cache="'lookup.cache' = 'NONE'")
    done = rebase_plan(new, old)
    assert done.plan is None
    assert [orphan.name for orphan in done.orphans] == [path]
    dropped = rebase_plan(new, old, drop_orphans=True)
    assert [edit.path for edit in dropped.dropped] == [path]
    assert dropped.plan == new


def test_edits_follow_an_operator_that_is_only_called_otherwise() -> None:
    old = edited(compiled(), (LEFT, "3 d"), ("join_o_c.state.rightState.ttl", "30 d"))
    done = rebase_plan(compiled(o="ord"), old)
    assert done.renamed == {"join_o_c": "join_ord_c"}
    assert value(done.plan, "join_ord_c.state.leftState.ttl") == "3 d"
    assert value(done.plan, "join_ord_c.state.rightState.ttl") == "30 d"
    assert rebase_text(done).startswith("join_o_c is called join_ord_c now, and keeps its edits\n2 edits kept\n")
    assert rebase_plan(compiled(o="ord"), old, {"join_o_c": "join_ord_c"}).plan == done.plan
    assert rebase_plan(compiled(o="ord"), compiled()).renamed == {}


def test_an_edit_whose_operator_is_gone_names_its_likeliest_successor() -> None:
    old = edited(compiled(), (LEFT, "3 d"), ("join_o_c.state.rightState.ttl", "30 d"))
    new = other_name(SQL.replace(" JOIN", " LEFT JOIN"))
    done = rebase_plan(new, old)
    assert done.plan is None
    assert "--map join_o_c=join_x_c" in texts(done)
    mapped = rebase_plan(new, old, {"join_o_c": "join_x_c"})
    assert value(mapped.plan, "join_x_c.state.leftState.ttl") == "3 d"
    assert value(mapped.plan, "join_x_c.state.rightState.ttl") == "30 d"
    dropped = rebase_plan(new, old, drop_orphans=True)
    assert dropped.plan == new
    assert len(dropped.dropped) == 2


def test_what_does_the_same_with_rows_of_other_tables_is_asked_for() -> None:
    grouped = "SELECT /*+ STATE_TTL('{0}' = '1 d') */ id, CAST(COUNT(*) AS STRING) FROM {0} GROUP BY id;"
    start = SQL[: SQL.index("SELECT")]
    old, _ = set_value(compile_sql(start + grouped.format("orders")), "aggregate_orders.groupAggregateState.ttl", "3 d")
    done = rebase_plan(compile_sql(start + grouped.format("customers")), old)
    assert done.plan is None
    assert "'aggregate_customers' may have taken its place: it does the same, under another name" in texts(done)


def test_a_join_at_the_end_keeps_the_edits_of_the_aggregate_above() -> None:
    joined = "FROM orders AS o JOIN customers AS c ON o.customer = c.id {} GROUP BY c.country;"
    start = SQL[: SQL.index("SELECT")] + "SELECT COUNT(*), c.country "
    old, _ = set_value(compile_sql(start + joined.format("")), "aggregate_result.groupAggregateState.ttl", "3 d")
    more = "JOIN customers AS d ON d.id = c.id LEFT JOIN orders AS p ON p.id = o.id"
    done = rebase_plan(compile_sql(start + joined.format(more)), old)
    assert done.renamed == {}
    assert value(done.plan, "aggregate_result.state.groupAggregateState.ttl") == "3 d"


def test_a_successor_that_does_something_else_too_is_named_with_what_it_shares() -> None:
    old, _ = set_value(compile_sql(SQL), LEFT, "3 d")
    done = rebase_plan(other_name(SQL.replace(" JOIN", " LEFT JOIN")), old)
    (orphan,) = done.orphans
    assert orphan.successor is not None
    assert orphan.successor.id == "join_x_c"
    why = "a join too, with the same inputs, keys and output, but other state inputs and join-type"
    assert orphan.successor.why == why
    unlike = compile_sql(SQL.replace(SQL[SQL.index("SELECT") :], "SELECT id, 'x' FROM orders;"))
    (orphan,) = rebase_plan(unlike, old).orphans
    assert orphan.successor is None


def test_a_join_whose_sides_were_swapped_keeps_each_ttl_with_its_input(tmp_path: Path) -> None:
    old, _ = set_value(compile_sql(SQL), LEFT, "3 d")
    swapped = "orders AS o JOIN customers AS c", "customers AS c JOIN orders AS o"
    new = compile_sql(SQL.replace(*swapped))
    done = rebase_plan(new, old, {"join_o_c": "join_c_o"})
    assert value(done.plan, "join_c_o.state.rightState.ttl") == "3 d"
    assert value(done.plan, "join_c_o.state.leftState.ttl") == "1 h"


def test_two_edits_of_one_setting_are_a_conflict() -> None:
    done = rebase_plan(edited(compiled(), (LEFT, "5 d")), edited(compiled(), (LEFT, "3 d")))
    assert done.plan is None
    assert [edit.path for edit in done.conflicts] == [LEFT]
    assert "3 d (edit over hint 1 d), the new one 5 d (edit over hint 1 d)" in texts(done)


def test_a_reason_goes_with_its_edit() -> None:
    old, _ = set_value(compiled(), LEFT, "3 d", reason="late payments")
    mapped = rebase_plan(compiled(o="ord"), old, {"join_o_c": "join_ord_c"})
    assert mapped.plan is not None
    assert mapped.plan.reasons == {"join_ord_c.state.leftState.ttl": "late payments"}
    same = rebase_plan(compiled(ttl="3 d"), old)
    assert same.plan is not None
    assert same.plan.reasons == {}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"join_x": "join_o_c"}, "the old plan has no operator or table 'join_x'"),
        ({"join_o_c": "join_x"}, "the new plan has no operator or table 'join_x'"),
        ({"join_o_c": "aggregate_t"}, "are not of the same kind"),
    ],
)
def test_a_wrong_mapping_is_refused(mapping: dict[str, str], message: str) -> None:
    with pytest.raises(api.PlanError, match=message):
        rebase_plan(compiled(), compiled(), mapping)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*VARIANTS]), st.sampled_from([*VARIANTS]), EDIT_LISTS)
def test_every_edit_is_kept_or_accounted_for(before: str, after: str, edits: list[tuple[str, str]]) -> None:
    old, new = edited(compiled(before), *edits), compiled(after)
    done = rebase_plan(new, old)
    if done.plan is None:
        assert texts(done)
        done = rebase_plan(new, old, drop_orphans=True)
    assert done.plan is not None
    assert api.loads(api.dumps(done.plan)) == done.plan
    dropped = {edit.path for edit in done.dropped}
    now = {path_of(key): setting for key, setting in settings_by_key(decompose(done.plan).units).items()}
    for key, setting in settings_by_key(decompose(old).units).items():
        if setting.edited and isinstance(setting.edit, str | int) and path_of(key) not in dropped:
            assert now[path_of(key)].value == setting.edit
    # Facts are the new plan's, and doing it again changes nothing.
    assert {o.id for o in done.plan.operators} == {o.id for o in new.operators}
    assert rebase_plan(done.plan, done.plan).plan == done.plan
    again = rebase_plan(new, done.plan)
    assert again.plan == done.plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.sql").write_text(SQL)
    assert hintplan("compile", "job.sql", "-o", "plan.json", folder=tmp_path).returncode == 0
    assert hintplan("set", "plan.json", f"{LEFT}=3 d", folder=tmp_path).returncode == 0
    return tmp_path


def test_compile_keeps_the_edits_of_the_file_it_replaces(folder: Path) -> None:
    (folder / "job.sql").write_text(SQL.replace("'1 d'", "'2 d'"))
    done = hintplan("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json", folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "1 edit kept, changed underneath\n"
        f"  {LEFT}   3 d   over hint 2 d; it was over hint 1 d\n"
    )  # fmt: skip
    assert value(api.load(folder / "plan.json"), LEFT) == "3 d"


def test_an_orphan_leaves_the_file_as_it_was_and_exits_with_1(folder: Path) -> None:
    before = (folder / "plan.json").read_bytes()
    renamed = SQL.replace("AS o", "AS x").replace("o.", "x.").replace("'o'", "'x'")
    (folder / "job.sql").write_text(renamed.replace(" JOIN", " LEFT JOIN"))
    done = hintplan("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json", folder=folder)
    assert done.returncode == 1
    gone = "the new plan has no operator 'join_o_c', which has edits:\n  join_o_c.state.leftState.ttl 3 d"
    assert gone in done.stderr
    assert "--map join_o_c=join_x_c carries the edits over, --drop-orphans drops them" in done.stderr
    assert (folder / "plan.json").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["job.sql", "plan.json"]
    words = ("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json", "--map", "join_o_c=join_x_c")
    assert hintplan(*words, folder=folder).returncode == 0
    assert value(api.load(folder / "plan.json"), "join_x_c.state.leftState.ttl") == "3 d"


def test_rebase_reports_as_json(folder: Path) -> None:
    shutil.copy(folder / "plan.json", folder / "old.json")
    assert hintplan("compile", "job.sql", "-o", "new.json", folder=folder).returncode == 0
    done = hintplan("rebase", "old.json", "--onto", "new.json", "-o", "new.json", "--json", folder=folder)
    report = json.loads(done.stdout)
    assert report["done"] is True
    assert [edit["path"] for edit in report["kept"]] == [LEFT]
    assert (folder / "new.json").read_bytes() == (folder / "old.json").read_bytes()


def test_a_plan_to_keep_edits_of_that_is_missing_is_an_error_unless_it_is_the_output(folder: Path) -> None:
    done = hintplan("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plam.json", folder=folder)
    assert done.returncode == 1
    assert "plam.json: the plan whose edits should be kept does not exist" in done.stderr
    assert (
        hintplan("compile", "job.sql", "-o", "first.json", "--keep-edits", "first.json", folder=folder).returncode == 0
    )


def test_options_that_go_together_are_asked_for_together(folder: Path) -> None:
    assert hintplan("compile", "job.sql", "--drop-orphans", folder=folder).returncode == 64
    assert hintplan("compile", "job.sql", "--keep-edits", "plan.json", "--json", folder=folder).returncode == 64
    assert hintplan("rebase", "plan.json", "--onto", "plan.json", "--map", "a", folder=folder).returncode == 64


def test_facts_that_were_changed_by_hand_are_named_and_left_to_the_sql(folder: Path) -> None:
    text = (folder / "plan.json").read_text()
    (folder / "plan.json").write_text(text.replace('"join-type": "inner"', '"join-type": "left"'))
    words = ("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json")
    done = hintplan(*words, folder=folder)
    assert done.returncode == 1
    assert "its facts were changed by hand" in done.stderr
    done = hintplan(*words, "--allow-fact-edits", folder=folder)
    assert done.returncode == 0
    assert "facts that were changed by hand are as the SQL has them: operator 'join_o_c'" in done.stderr
    assert (folder / "plan.json").read_text() == text


def test_a_literal_secret_is_never_repeated(folder: Path) -> None:
    text = (folder / "plan.json").read_text()
    path, secret = "tables.lookup.options.password", "hunter2-hunter2"
    table = {"columns": [{"name": "id", "type": "BIGINT"}], "options": {"connector": "redis", "password": secret}}
    document = json.loads(text)
    document["tables"]["lookup"] = table
    (folder / "secret.json").write_text(json.dumps(document))
    shutil.copy(folder / "plan.json", folder / "new.json")
    shown = hintplan("flat", "secret.json", folder=folder)
    assert f"{path} = (refused)" in shown.stdout
    words = ("rebase", "secret.json", "--onto", "new.json", "-o", "out.json", "--allow-fact-edits")
    for more in ((), ("--json",), ("--drop-orphans",)):
        done = hintplan(*words, *more, folder=folder)
        assert path in done.stdout + done.stderr
        assert secret not in done.stdout + done.stderr
        shown = hintplan("lint", "secret.json", "--allow-fact-edits", folder=folder)
        assert secret not in shown.stdout + shown.stderr


def test_moves_that_the_project_keeps_need_no_map(folder: Path) -> None:
    renamed = SQL.replace("AS o", "AS x").replace("o.", "x.").replace("'o'", "'x'")
    (folder / "job.sql").write_text(renamed.replace(" JOIN", " LEFT JOIN"))
    project = folder / "hintplan.toml"
    keep = ("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json")
    project.write_text(MOVED.format("join_o_c", "join_y_c", "plan.json"))
    done = hintplan(*keep, folder=folder)
    assert done.returncode == 1
    said = "'join_o_c' has moved to 'join_y_c', which the new plan does not have"
    assert f"hintplan.toml: {said}\n  hint: did you mean 'join_x_c'?" in done.stderr
    # One after the other, as they were written over time; entries of other plans do not count.
    both = MOVED.format("join_o_c", "join_y_c", "plan.json") + MOVED.format("join_y_c", "join_x_c", "*")
    project.write_text(both + MOVED.format("join_o_c", "join_z_c", "other.json"))
    done = hintplan(*keep, folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert value(api.load(folder / "plan.json"), "join_x_c.state.leftState.ttl") == "3 d"
    # What was followed says nothing any more.
    assert hintplan(*keep, folder=folder).returncode == 0


MOVED = '[[moved]]\nfrom = "{}"\nto = "{}"\nplan = "{}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("moved = 3", "'moved' must be a list of tables\n  hint: write [[moved]]"),
        ("moved = [3]", "'moved[0]' must be a table"),
        ('[[moved]]\nfrom = "a"', "'moved[0]' has no 'to'"),
        ('[[moved]]\nfrom = "a"\nto = 3', "'moved[0].to' must be a string"),
        ('[[moved]]\nform = "a"', "unknown key 'moved[0].form'\n  hint: did you mean 'from'?"),
        (MOVED.format("a", "b", "*") + MOVED.format("a", "c", "*"), "'moved[1]' gives 'a' a second successor"),
    ],
)
def test_a_mistake_in_the_moves_of_a_project_is_named(folder: Path, text: str, said: str) -> None:
    (folder / "hintplan.toml").write_text(text)
    done = hintplan("rebase", "plan.json", "--onto", "plan.json", folder=folder)
    assert done.returncode == 1
    assert f"hintplan.toml: {said}" in done.stderr
