"""The form of a hint: where it stands, what it may contain, and the exact place of every complaint."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Aggregate

TABLES = (
    "CREATE TABLE t (a BIGINT) WITH ('connector' = 'datagen');CREATE TABLE s (a BIGINT) WITH ('connector' = 'print');\n"
)


def ttl_of(hint: str) -> str:
    plan = compile_script(f"{TABLES}INSERT INTO s SELECT {hint} COUNT(*) FROM t").plan
    (aggregate,) = [o for o in plan.operators if isinstance(o, Aggregate)]
    return aggregate.state[0].ttl


def refusal(query: str) -> tuple[str, str, str]:
    """Place (line 2 is the query's), message and hint."""
    with pytest.raises(SqlError) as caught:
        compile_script(f"{TABLES}{query}", file="job")
    (found,) = caught.value.diagnostics
    assert found.file == "job"
    return f"{found.line}:{found.column}", found.message, found.hint or ""


# Flink's TimeUtils, measured
@pytest.mark.parametrize(
    ("written", "ttl"),
    [
        ("1d", "1 d"), ("24h", "1 d"), ("86400000", "1 d"), ("P1D", "1 d"), ("1 day", "1 d"), ("1m", "1 min"),
        ("1 M", "1 min"), ("0", "0 ms"), ("0s", "0 ms"), ("PT0S", "0 ms"), ("36000s", "10 h"), ("26h", "26 h"),
        ("90 min", "90 min"), ("90000", "90 s"), ("1500 ms", "1500 ms"), ("PT1H30M", "90 min"), ("pt20m", "20 min"),
        ("P2DT3S", "172803 s"), ("7 days", "7 d"), (" 3 h ", "3 h"),
    ],
)  # fmt: skip
def test_duration_is_read_and_printed_as_flink_does(written: str, ttl: str) -> None:
    assert ttl_of(f"/*+ STATE_TTL('t'='{written}') */") == ttl


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("abc", "text does not start with a number, and is not a valid ISO-8601 duration format: abc"),
        ("-1d", "text does not start with a number, and is not a valid ISO-8601 duration format: -1d"),
        ("+5s", "text does not start with a number, and is not a valid ISO-8601 duration format: +5s"),
        ("PT-1H", "negative duration is not supported"),
        ("", "argument is an empty- or whitespace-only string"),
        ("1.5h", "Time interval unit label '.5h' does not match any of the recognized units"),
        ("1d 2h", "Time interval unit label 'd 2h' does not match any of the recognized units"),
        ("1 w", "Time interval unit label 'w' does not match any of the recognized units"),
        # Flink lets this pass the check and fails with an ArithmeticException later
        ("99999999999999999999 ms", "The value '99999999999999999999' cannot be represented as Duration"),
        # Flink makes 0 ms of it, which never expires
        ("100 ns", "the duration '100 ns' is not a whole number of milliseconds"),
    ],
)
def test_bad_duration_is_refused_where_it_stands(written: str, reason: str) -> None:
    place, message, hint = refusal(f"INSERT INTO s SELECT /*+ STATE_TTL('t'='{written}') */ COUNT(*) FROM t")
    assert place == "2:40"
    assert message.startswith(f"invalid STATE_TTL value '{written}': {reason}")
    assert hint


@pytest.mark.parametrize(
    "hint",
    [
        "/*+ state_ttl('t'='1d') */",
        "/*+STATE_TTL('t'='1d')*/",
        "/*+ STATE_TTL(t='1d') */",
        "/*+ STATE_TTL(`t`='1d') */",
        "/*+\n  STATE_TTL (\n    't' =\n '1d'\n  )\n*/",
        "/*+ BROADCAST(t), STATE_TTL('t'='1d') */",
        "/* one */ /*+ STATE_TTL('t'='1d') */ -- two\n",
    ],
)
def test_hint_is_read_in_any_of_its_forms(hint: str) -> None:
    assert ttl_of(hint) == "1 d"


FORM = "write /*+ STATE_TTL('table or alias'='1 d', ...) */"


@pytest.mark.parametrize(
    ("hint", "place", "message", "advice"),
    [
        ("STATE_TTL", "2:26", "STATE_TTL needs at least one key and value", FORM),
        ("STATE_TTL()", "2:26", "STATE_TTL needs at least one key and value", FORM),
        ("STATE_TTL(t)", "2:36", "STATE_TTL takes keys with values, not a list", "write 't'='1 d'"),
        ("STATE_TTL('t')", "2:36", "STATE_TTL takes keys with values, not a list", "write 't'='1 d'"),
        ("STATE_TTL('t', 'u')", "2:36", "STATE_TTL takes keys with values, not a list", "write 't'='1 d'"),
        ("STATE_TTL('t'=1000)", "2:40", "malformed hint: expected a duration in quotes, found '1000'",
         "write 't'='1 d'"),
        ("STATE_TTL('t'=)", "2:40", "malformed hint: expected a duration in quotes, found ')'", "write 't'='1 d'"),
        ("STATE_TTL('t' '1d')", "2:40", "malformed hint: expected '=', found '1d'", FORM),
        ("STATE_TTL('t'='1d' 'u'='2d')", "2:45", "malformed hint: expected ',' or ')', found 'u'", FORM),
        ("STATE_TTL('t'='1d'", "2:44", "malformed hint: expected ',' or ')', found the end of the hint", FORM),
        ("STATE_TTL('t'='1d',)", "2:45", "malformed hint: expected a table, view or alias, found ')'", FORM),
        ("STATE_TTL('t'='1d')) ", "2:45", "malformed hint: expected ',' or the end of the hint, found ')'", FORM),
        ("STATE_TTL 't'='1d'", "2:36", "malformed hint: expected '(', found 't'", FORM),
        ("STATE_TTL('t'='1d') STATE_TTL('u'='1d')", "2:46",
         "malformed hint: expected ',' or the end of the hint, found 'STATE_TTL'", FORM),
        ("'t'='1d'", "2:26", "malformed hint: expected the name of a hint, found 't'", FORM),
        ("", "2:26", "malformed hint: expected the name of a hint, found the end of the hint", FORM),
        ("STATE_TLL('t'='1d')", "2:26", "unknown hint 'STATE_TLL'", "did you mean 'STATE_TTL'?"),
        ("OPTIONS('a'='b')", "2:26", "OPTIONS does not follow SELECT",
         "put it after the name of the table: FROM <table> /*+ OPTIONS(...) */"),
    ],
)  # fmt: skip
def test_malformed_hint_is_refused_at_the_exact_place(hint: str, place: str, message: str, advice: str) -> None:
    assert refusal(f"INSERT INTO s SELECT /*+ {hint}*/ COUNT(*) FROM t") == (place, message, advice)


@pytest.mark.parametrize(
    ("query", "place", "message", "advice"),
    [
        ("SELECT DISTINCT /*+ STATE_TTL('t'='1d') */ a FROM t", "2:31", "a hint must be directly after SELECT",
         "put it before DISTINCT"),
        ("SELECT * /*+ STATE_TTL('t'='1d') */ FROM t", "2:24", "a hint must be directly after SELECT",
         "move it: SELECT /*+ ... */ ..."),
        # Flink accepts and forgets this one
        ("SELECT COUNT(*) FROM t /*+ STATE_TTL('t'='1d') */", "2:38", "a hint must be directly after SELECT",
         "move it: SELECT /*+ ... */ ..."),
        ("SELECT COUNT(*) FROM t AS x /*+ OPTIONS('number-of-rows'='1') */", "2:47",
         "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO",
         "write it directly after the name, before AS; for a view or CTE, at the table inside of it"),
        ("SELECT /*+ STATE_TTL('t'='1d') */ /*+ STATE_TTL('t'='1d') */ COUNT(*) FROM t", "2:49",
         "two hint blocks follow one SELECT", "put all hints into one /*+ ..., ... */"),
        ("SELECT /*+ STATE_TTL('t'='1d') COUNT(*) FROM t", "2:22", "this hint is never closed", "add the closing */"),
    ],
)  # fmt: skip
def test_hint_in_another_place_is_refused(query: str, place: str, message: str, advice: str) -> None:
    assert refusal(f"INSERT INTO s {query}") == (place, message, advice)


def test_what_looks_like_a_hint_inside_a_string_is_text() -> None:
    text = (
        TABLES + "CREATE TABLE u (a STRING) WITH ('connector' = 'print'); INSERT INTO u SELECT '/*+ X */ -- y' FROM t"
    )
    plan = compile_script(text).plan
    assert "'/*+ X */ -- y'" in repr(plan)
