"""Where in a script each setting was asked for: the places that `hintplan why` shows."""

from __future__ import annotations

from hintplan.planner.compile import compile_script

SQL = """SET 'table.exec.state.ttl' = '1 h';
SET 'table.exec.async-lookup.timeout' = '1 min';
CREATE TABLE orders (id BIGINT, c BIGINT, cur STRING, pt AS PROCTIME()) WITH ('connector' = 'datagen');
CREATE TABLE customers (id BIGINT, n STRING) WITH ('connector' = 'datagen');
CREATE TABLE rates (cur STRING, r DOUBLE) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'rates',
  'lookup.cache' = 'PARTIAL'
);
CREATE TABLE out1 (n STRING, r DOUBLE) WITH ('connector' = 'print');
INSERT INTO out1
SELECT /*+ STATE_TTL('o' = '1 d'), LOOKUP('table' = 'x', 'capacity' = '50') */ c.n, x.r
FROM orders AS o
JOIN customers AS c ON o.c = c.id
JOIN rates /*+ OPTIONS('lookup.partial-cache.max-rows' = '10') */ FOR SYSTEM_TIME AS OF o.pt AS x ON o.cur = x.cur;
"""


def starts(config: dict[str, str] | None = None) -> dict[tuple[str, str, str], str]:
    """What stands at each place, up to the end of its first quoted text."""
    found = compile_script(SQL, config, file="folder/job.sql")
    text = {}
    for key, place in found.positions.items():
        line = SQL.splitlines()[place.line - 1]
        assert SQL[place.offset] == line[place.column - 1]
        text[key] = line[place.column - 1 :].partition(" = ")[0]
    return text


def test_each_layer_of_a_setting_has_the_place_that_set_it() -> None:
    found = starts()
    assert found["join_o_c", "state.leftState.ttl", "hint"] == "'o'"
    assert found["join_o_c", "state.leftState.ttl", "config"] == "'table.exec.state.ttl'"
    assert found["join_o_c", "state.rightState.ttl", "config"] == "'table.exec.state.ttl'"
    assert ("join_o_c", "state.rightState.ttl", "hint") not in found
    assert found["lookup_x", "async.capacity", "hint"] == "'capacity'"
    assert found["lookup_x", "async.timeout", "config"] == "'table.exec.async-lookup.timeout'"
    assert found["lookup_x", "cache.lookup.cache", "table"] == "'lookup.cache'"
    assert found["lookup_x", "cache.lookup.partial-cache.max-rows", "hint"] == "'lookup.partial-cache.max-rows'"


def test_config_and_options_of_tables_have_places_of_their_own() -> None:
    found = starts()
    assert found["", "config.table.exec.state.ttl", "config"] == "'table.exec.state.ttl'"
    assert found["", "tables.rates.options.table-name", "table"] == "'table-name'"


def test_what_the_command_line_sets_has_no_place() -> None:
    found = starts({"table.exec.state.ttl": "2 h"})
    assert ("", "config.table.exec.state.ttl", "config") not in found
    assert ("join_o_c", "state.leftState.ttl", "config") not in found
    assert found["join_o_c", "state.leftState.ttl", "hint"] == "'o'"


def test_a_plan_names_its_script_without_folders() -> None:
    assert compile_script(SQL, file="folder/job.sql").plan.source == "job.sql"
    assert compile_script(SQL, file="<stdin>").plan.source is None
    assert compile_script(SQL).plan.source is None


def test_the_watermark_of_a_table_is_the_place_of_its_delay() -> None:
    table = "CREATE TABLE t (k BIGINT, ts TIMESTAMP(3){}) WITH ('connector' = 'filesystem', 'format' = 'json', {});\n"
    delay = "WATERMARK FOR ts AS ts - INTERVAL '4' SECOND"
    query = """CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT k FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY k, window_start, window_end;
"""
    for text in (
        table.format(f", {delay}", "'path' = 'x'") + query,
        table.format("", "'path' = 'x'") + f"ALTER TABLE t ADD {delay};\n" + query,
        table.format(f", {delay}", "'path' = 'x'").replace("TABLE t", "TABLE u")
        + "CREATE TABLE t WITH ('path' = 'y') LIKE u;\n"
        + query,
    ):
        place = compile_script(text).positions["watermark_t", "watermark.delay", "table"]
        assert text[place.offset :].startswith("WATERMARK FOR ts")
