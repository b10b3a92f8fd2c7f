"""The digests of settings as they were compiled, which tell an edit from what the SQL said."""

from __future__ import annotations

import hashlib
import json

import hintplan
from hintplan import compile_sql
from hintplan.plans.edit.edit import set_value

SQL = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE o (id BIGINT, pt AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '10');
CREATE TABLE r (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'r');
CREATE TABLE s (id BIGINT) WITH ('connector' = 'print');
INSERT INTO s
SELECT /*+ LOOKUP('table' = 'r', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay',
  'fixed-delay' = '10 s', 'max-attempts' = '3') */ r.id
FROM o JOIN r FOR SYSTEM_TIME AS OF o.pt AS r ON o.id = r.id;
"""


def settings(plan: hintplan.Plan) -> dict[str, str]:
    found: dict[str, str] = json.loads(hintplan.dumps(plan))["digests"]["settings"]
    return found


def test_a_compiled_plan_has_a_digest_of_each_setting_without_origin() -> None:
    expected = {"name": "s", "config.table.exec.state.ttl": "1 h", "tables.o.options.number-of-rows": "10"}
    expected |= {"tables.r.options.url": "jdbc:postgresql://db/shop", "tables.r.options.table-name": "r"}
    found = settings(compile_sql(SQL))
    assert found.keys() == {*expected, "lookup_r.retry"}
    for path, value in expected.items():
        assert found[path] == hashlib.sha256(value.encode()).hexdigest()[:8]


def test_an_edit_leaves_the_digests_of_what_was_compiled_alone() -> None:
    plan = compile_sql(SQL)
    edited = plan
    for path, value in (
        ("name", "other"),
        ("config.table.exec.state.ttl", "2 h"),
        ("tables.o.options.number-of-rows", "20"),
        ("lookup_r.retry", "off"),
    ):
        edited, _ = set_value(edited, path, value)
    assert settings(hintplan.loads(hintplan.dumps(edited))) == settings(plan)


def test_an_option_that_is_added_by_an_edit_has_no_digest() -> None:
    edited, _ = set_value(compile_sql(SQL), "tables.o.options.rows-per-second", "5")
    assert "tables.o.options.rows-per-second" not in settings(edited)
