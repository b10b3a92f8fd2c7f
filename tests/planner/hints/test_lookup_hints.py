"""LOOKUP and OPTIONS hints: every name and value, the exact place of every complaint, and the matrix of what is run."""

from __future__ import annotations

from typing import Any

import pytest

from hintplan import dumps, loads
from hintplan.planner.compile import Compilation, compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import LookupJoin

TABLES = """
CREATE TABLE o (id BIGINT, code STRING, pt AS PROCTIME()) WITH ('connector' = 'datagen');
CREATE TABLE d (id BIGINT, city STRING) WITH ({options});
CREATE TABLE s (a BIGINT, b STRING) WITH ('connector' = 'print');
"""
SYNC = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 'd'"
BOTH = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 'd'"
ASYNC = "'connector' = 'python', 'async-class' = 'm.Cities'"
RETRY = "'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='10s', 'max-attempts'='3'"


def compiled(
    hint: str = "", *, options: str = BOTH, at_table: str = "", config: dict[str, str] | None = None
) -> Compilation:
    select = f"/*+ {hint} */" if hint else ""
    tables = " ".join(TABLES.format(options=options).split())
    query = (
        f"INSERT INTO s SELECT {select} o.id, d.city FROM o JOIN d {at_table} FOR SYSTEM_TIME AS OF o.pt ON o.id = d.id"
    )
    done = compile_script(f"{tables}\n{query}", config, file="job")
    # What the planner makes must be what loading takes, origins included.
    assert loads(dumps(done.plan)) == done.plan
    return done


def group(done: Compilation, name: str) -> dict[str, Any]:
    (lookup,) = [o for o in done.plan.operators if isinstance(o, LookupJoin)]
    found = lookup.settings
    return dict(found[name].values) if name in found else {}


def refusal(hint: str = "", **more: Any) -> tuple[str, str, str]:
    with pytest.raises(SqlError) as caught:
        compiled(hint, **more)
    (found,) = caught.value.diagnostics
    return f"{found.line}:{found.column}", found.message, found.hint or ""


# Columns count from 26, where the hint's name stands.
FORM = "write /*+ LOOKUP('table'='<table or alias>', 'async'='true', ...) */"


@pytest.mark.parametrize(
    ("hint", "place", "message", "advice"),
    [
        ("LOOKUP", "2:26", "LOOKUP needs at least one key and value", FORM),
        ("LOOKUP()", "2:26", "LOOKUP needs at least one key and value", FORM),
        ("LOOKUP(d)", "2:33", "LOOKUP takes keys with values, not a list", FORM),
        ("LOOKUP('d')", "2:33", "LOOKUP takes keys with values, not a list", FORM),
        ("LOOKUP('async'='true')", "2:26", "LOOKUP needs the option 'table'", FORM),
        ("LOOKUP('TABLE'='d')", "2:33", "unknown LOOKUP option 'TABLE'", "did you mean 'table'?"),
        ("LOOKUP('table'='')", "2:41", "LOOKUP option 'table' is empty", "name the table or its alias"),
        ("LOOKUP('table'=d)", "2:41", "malformed hint: expected a value in quotes, found 'd'", "write 'table'='d'"),
        # Flink forgets unknown names; its own tests misspell this one
        ("LOOKUP('table'='d', 'time-out'='600s')", "2:46", "unknown LOOKUP option 'time-out'",
         "did you mean 'timeout'?"),
        ("LOOKUP('table'='d', 'output'='ordered')", "2:46", "unknown LOOKUP option 'output'",
         "did you mean 'output-mode'?"),
        ("LOOKUP('table'='d', 'async'='maybe')", "2:54",
         "LOOKUP option 'async': expected true or false, found 'maybe'", "write 'true' or 'false'"),
        ("LOOKUP('table'='d', 'output-mode'='UNORDERED')", "2:60",
         "LOOKUP option 'output-mode': expected one of ordered, allow_unordered, found 'UNORDERED'",
         "write 'allow_unordered'"),
        ("LOOKUP('table'='d', 'capacity'='0')", "2:57",
         "LOOKUP option 'capacity': expected a whole number of at least 1, found '0'", "write 1 or more, in digits"),
        ("LOOKUP('table'='d', 'capacity'='-5')", "2:57",
         "LOOKUP option 'capacity': expected a whole number of at least 1, found '-5'", "write 1 or more, in digits"),
        ("LOOKUP('table'='d', 'capacity'='3000000000')", "2:57",
         "LOOKUP option 'capacity': expected at most 100000, found 3000000000", "write a smaller number"),
        ("LOOKUP('table'='d', 'timeout'='5 weeks')", "2:56",
         "LOOKUP option 'timeout': bad duration '5 weeks': 'weeks' is not a unit; the units are", None),
        ("LOOKUP('table'='d', 'retry-predicate'='lookup_miss')", "2:46",
         "LOOKUP sets some retry options, but not 'retry-strategy', 'fixed-delay', 'max-attempts'",
         "set all four, or none"),
        ("LOOKUP('table'='d', 'max-attempts'='3', 'fixed-delay'='1 s')", "2:46",
         "LOOKUP sets some retry options, but not 'retry-predicate', 'retry-strategy'", "set all four, or none"),
        (f"LOOKUP('table'='d', {RETRY.replace('lookup_miss', 'exception')})", "2:64",
         "LOOKUP option 'retry-predicate': expected 'lookup_miss', found 'exception'", "write 'lookup_miss'"),
        (f"LOOKUP('table'='d', {RETRY.replace('fixed_delay', 'fixed-delay')})", "2:96",
         "LOOKUP option 'retry-strategy': expected 'fixed_delay', found 'fixed-delay'", "write 'fixed_delay'"),
        (f"LOOKUP('table'='d', {RETRY.replace('10s', '-1s')})", "2:125", None, None),
        (f"LOOKUP('table'='d', {RETRY[:-3]}'0')", "2:147",
         "LOOKUP option 'max-attempts': expected a whole number of at least 1, found '0'",
         "write 1 or more, in digits"),
        ("LOOKUP('table'='d' 'async'='true')", "2:45", "malformed hint: expected ',' or ')', found 'async'", FORM),
    ],
)  # fmt: skip
def test_lookup_hint_is_refused_at_the_exact_place(
    hint: str, place: str, message: str | None, advice: str | None
) -> None:
    found = refusal(hint)
    assert found[0] == place
    assert message is None or found[1].startswith(message)
    assert found[2] == advice if advice is not None else found[2]


@pytest.mark.parametrize(
    ("options", "place", "message", "advice"),
    [
        ("OPTIONS()", "2:54", "OPTIONS needs at least one key and value",
         "write <table> /*+ OPTIONS('key'='value', ...) */"),
        ("OPTIONS('lookup.cahce'='FULL')", "2:62", "table 'd': the jdbc connector has no option 'lookup.cahce'",
         "did you mean 'lookup.cache'?"),
        ("OPTIONS('lookup.cache'='SOME')", "2:77",
         "OPTIONS option 'lookup.cache': expected one of NONE, PARTIAL, FULL, found 'SOME'", "write 'NONE'"),
        ("OPTIONS('lookup.partial-cache.max-rows'='-1')", "2:94",
         "OPTIONS option 'lookup.partial-cache.max-rows': expected a whole number of at least 0, found '-1'",
         "write 0 or more, in digits"),
        ("OPTIONS('lookup.full-cache.periodic-reload.interval'='0 s')", "2:107",
         "OPTIONS option 'lookup.full-cache.periodic-reload.interval': expected more than zero, found '0 s'",
         "write it like '10 min'"),
        ("OPTIONS('lookup.full-cache.timed-reload.interval-in-days'='0')", "2:112",
         "OPTIONS option 'lookup.full-cache.timed-reload.interval-in-days': expected a whole number of at least 1, "
         "found '0'", "write 1 or more, in digits"),
        ("OPTIONS('lookup.full-cache.timed-reload.iso-time'='25:99')", "2:104",
         "OPTIONS option 'lookup.full-cache.timed-reload.iso-time': expected a time of day in ISO-8601, found '25:99'",
         "write it like '10:15', '10:15Z' or '10:15+07:00'"),
        ("OPTIONS('connector'='redis')", "2:62", "OPTIONS cannot change the connector of table 'd'",
         "declare another table, such as with CREATE TABLE ... LIKE"),
        ("OPTIONS('table.exec.async-lookup.timeout'='1 s')", "2:62",
         "'table.exec.async-lookup.timeout' belongs to the job",
         "write SET 'table.exec.async-lookup.timeout' = '...'"),
        ("OPTIONS('lookup.cache'='NONE'), LOOKUP('table'='d')", "2:84",
         "malformed hint: expected the end of the hint, found ','", None),
    ],
)  # fmt: skip
def test_options_hint_is_refused_at_the_exact_place(options: str, place: str, message: str, advice: str | None) -> None:
    found = refusal(at_table=f"/*+ {options} */")
    assert found[:2] == (place, message)
    assert found[2] == advice if advice is not None else found[2]


@pytest.mark.parametrize(
    ("options", "hint", "enabled", "warns"),
    [
        # Flink's matrix: what the source offers, what the hint suggests, what runs
        (SYNC, "", False, False),
        (SYNC, "'async'='true'", False, True),
        (SYNC, "'async'='false'", False, False),
        (ASYNC, "", True, False),
        (ASYNC, "'async'='true'", True, False),
        (ASYNC, "'async'='false'", True, True),
        (BOTH, "", True, False),
        (BOTH, "'async'='true'", True, False),
        (BOTH, "'async'='FALSE'", False, False),
    ],
)
@pytest.mark.parametrize("retry", ["", RETRY])
def test_the_source_decides_and_the_hint_suggests(
    options: str, hint: str, enabled: bool, warns: bool, retry: str
) -> None:
    asked = ", ".join(["'table'='d'", *filter(None, (hint, retry))])
    done = compiled(f"LOOKUP({asked})", options=options)
    assert group(done, "async")["enabled"] is enabled
    assert group(done, "retry") == (
        {
            "retry-predicate": "lookup_miss",
            "retry-strategy": "fixed_delay",
            "fixed-delay": "10 s",
            "max-attempts": 3,
            "mode": "inline",
        }
        if retry
        else {}
    )
    assert [f.diagnostic.message.startswith("LOOKUP option 'async' has no effect") for f in done.findings] == (
        [True] if warns else []
    )


def test_defaults_are_those_of_the_specification() -> None:
    done = compiled()
    assert group(done, "async") == {"enabled": True, "output-mode": "ordered", "capacity": 100, "timeout": "5 min"}
    assert group(done, "retry") == {}
    assert group(done, "cache") == {"lookup.cache": "NONE", "lookup.max-retries": 3}


def test_values_are_read_in_any_case_and_stand_in_one_spelling() -> None:
    hint = f"lookup('table'='d', 'async'='TRUE', 'output-mode'='ALLOW_UNORDERED', 'timeout'='600s', {RETRY.upper()})"
    keys = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
    for key in keys:
        hint = hint.replace(key.upper(), key)
    done = compiled(hint)
    assert group(done, "async") == {
        "enabled": True,
        "output-mode": "allow_unordered",
        "capacity": 100,
        "timeout": "10 min",
    }
    assert [group(done, "retry")[key] for key in keys] == ["lookup_miss", "fixed_delay", "10 s", 3]


def test_rows_wait_in_state_where_others_may_overtake_them() -> None:
    unordered = compiled(f"LOOKUP('table'='d', 'output-mode'='allow_unordered', {RETRY})")
    ordered = compiled(f"LOOKUP('table'='d', 'output-mode'='ordered', {RETRY})")
    assert (group(unordered, "retry")["mode"], group(ordered, "retry")["mode"]) == ("deferred", "inline")


def test_zero_is_a_timeout_that_never_comes_and_a_delay_that_does_not_wait() -> None:
    done = compiled(f"LOOKUP('table'='d', 'timeout'='0s', {RETRY.replace('10s', '0s')})")
    assert (group(done, "async")["timeout"], group(done, "retry")["fixed-delay"]) == ("0 ms", "0 ms")


def test_the_qualified_name_of_a_table_is_its_name() -> None:
    done = compiled("LOOKUP('table'='default_catalog.default_database.d', 'capacity'='3')")
    assert group(done, "async")["capacity"] == 3


LAYERS = (
    ("config", "table", "hint", "5"),
    ("config", "table", None, "4"),
    ("config", None, None, "3"),
    ("config", None, "hint", "5"),
    (None, "table", "hint", "5"),
    (None, "table", None, "4"),
    (None, None, "hint", "5"),
)


@pytest.mark.parametrize(("config", "table", "hint", "rows"), LAYERS)
def test_config_gives_way_to_the_table_and_the_table_to_the_hint(
    config: str | None, table: str | None, hint: str | None, rows: str
) -> None:
    name = "lookup.partial-cache.max-rows"
    settings = {"lookup.cache": "PARTIAL"} | ({name: "3"} if config else {})
    done = compiled(
        options=BOTH + (f", '{name}' = '4'" if table else ""),
        at_table=f"/*+ OPTIONS('{name}'='5') */" if hint else "",
        config=settings,
    )
    assert group(done, "cache")[name] == int(rows)
    (lookup,) = [o for o in done.plan.operators if isinstance(o, LookupJoin)]
    said = {layer: values[name] for layer, values in lookup.cache.origin.items() if name in values}
    assert said == {
        layer: value
        for layer, value in (("config", 3 if config else 0), ("table", 4 if table else 0), ("hint", 5 if hint else 0))
        if value
    }


def test_config_may_hold_options_of_caches_that_some_lookups_do_not_have() -> None:
    config = {"lookup.partial-cache.max-rows": "3", "lookup.full-cache.periodic-reload.interval": "1 h"}
    done = compiled(config=config)
    assert group(done, "cache") == {"lookup.cache": "NONE", "lookup.max-retries": 3}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("table.exec.async-lookup.buffer-capacity", "0", "expected a whole number of at least 1, found '0'"),
        ("table.exec.async-lookup.output-mode", "any", "expected one of ordered, allow_unordered, found 'any'"),
        ("table.exec.async-lookup.timeout", "soon", "bad duration 'soon'"),
        ("lookup.cache", "ALL", "expected one of NONE, PARTIAL, FULL, found 'ALL'"),
    ],
)
def test_a_wrong_value_in_config_is_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(SqlError, match=f"'{key}': {message}"):
        compiled(config={key: value})


def test_every_option_of_every_hint_is_accounted_for() -> None:
    done = compiled(
        f"LOOKUP('table'='d', 'async'='true', 'capacity'='5', {RETRY})",
        options=SYNC,
        at_table="/*+ OPTIONS('lookup.cache'='PARTIAL', 'lookup.partial-cache.max-rows'='5') */",
    )
    assert [(h.key, h.status, h.detail) for h in done.hints if h.status == "applied"] == [
        ("table", "applied", "lookup_d"),
        ("retry-predicate", "applied", "lookup_d.retry.retry-predicate"),
        ("retry-strategy", "applied", "lookup_d.retry.retry-strategy"),
        ("fixed-delay", "applied", "lookup_d.retry.fixed-delay"),
        ("max-attempts", "applied", "lookup_d.retry.max-attempts"),
        ("lookup.cache", "applied", "lookup_d.cache.lookup.cache"),
        ("lookup.partial-cache.max-rows", "applied", "lookup_d.cache.lookup.partial-cache.max-rows"),
    ]
    assert [(h.key, h.status) for h in done.hints if h.status != "applied"] == [
        ("async", "refused"),
        ("capacity", "refused"),
    ]


def test_a_synchronous_lookup_has_neither_capacity_nor_timeout() -> None:
    done = compiled("LOOKUP('table'='d', 'timeout'='9 s', 'capacity'='5')", options=SYNC)
    assert [(h.key, h.status) for h in done.hints] == [
        ("table", "applied"),
        ("timeout", "refused"),
        ("capacity", "refused"),
    ]
    chosen = compiled("LOOKUP('table'='d', 'async'='false', 'timeout'='9 s', 'capacity'='5')")
    assert [f.diagnostic.message for f in chosen.findings] == [
        "LOOKUP option 'timeout' has no effect with 'async'='false'",
        "LOOKUP option 'capacity' has no effect with 'async'='false'",
    ]


def test_shuffle_is_known_and_without_effect() -> None:
    done = compiled("LOOKUP('table'='d', 'shuffle'='true')")
    (finding,) = done.findings
    assert finding.diagnostic.message == "LOOKUP option 'shuffle' has no effect: rows are looked up where they are"


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "'output-mode'='allow_unordered'",
            "'output-mode'='allow_unordered', 'capacity'='100', 'timeout'='180s'",
        ),
        ("'timeout'='300s'", "'output-mode'='ordered', 'capacity'='100', 'timeout'='300s'"),
    ],
)
def test_what_a_hint_leaves_out_is_the_jobs_as_flip_234_says(short: str, long: str) -> None:
    job = {
        "table.exec.async-lookup.output-mode": "ORDERED",
        "table.exec.async-lookup.buffer-capacity": "100",
        "table.exec.async-lookup.timeout": "180s",
    }
    found = [compiled(f"LOOKUP('table'='d', 'async'='true', {options})", config=job) for options in (short, long)]
    assert group(found[0], "async") == group(found[1], "async")


CUSTOMERS = """
CREATE TABLE Orders (order_id INT, total DOUBLE, customer_id INT, proc_time AS PROCTIME())
WITH ('connector' = 'datagen');
CREATE TABLE Customers (id INT, name STRING, country STRING, zip STRING)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://host/customerdb', 'table-name' = 'customers');
CREATE TABLE enriched (order_id INT, total DOUBLE, country STRING, zip STRING) WITH ('connector' = 'print');
"""


@pytest.mark.parametrize("asynchronous", ["true", "false", None])
def test_the_example_of_flip_234_compiles_with_its_hint_applied(asynchronous: str | None) -> None:
    mode = f"'async'='{asynchronous}', " if asynchronous else ""
    done = compile_script(
        f"""{CUSTOMERS} INSERT INTO enriched
        SELECT /*+ LOOKUP('table'='Customers', {mode}{RETRY}) */ o.order_id, o.total, c.country, c.zip
        FROM Orders AS o JOIN Customers FOR SYSTEM_TIME AS OF o.proc_time AS c ON o.customer_id = c.id;"""
    )
    assert group(done, "async")["enabled"] is (asynchronous != "false")
    assert (group(done, "retry")["fixed-delay"], group(done, "retry")["max-attempts"]) == ("10 s", 3)
    assert all(outcome.status == "applied" for outcome in done.hints)
    (note,) = done.findings
    assert (note.severity, note.diagnostic.message) == (
        "note",
        "LOOKUP table 'Customers' is called 'c' in this query block",
    )
