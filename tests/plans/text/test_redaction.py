"""Secrets in texts: every form a message may write them in, short ones, and passwords in SQL."""

from __future__ import annotations

import base64
import json
import string
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hintplan.plans.errors import Diagnostic
from hintplan.plans.text.findings import diagnostic_text
from hintplan.plans.text.redaction import redact, variables_in, without_json_literals, without_literals

SECRET = "pä ss/w+rd&'\"=\\x%41"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes kept": quote,
    "form": quote_plus,
    "percent in lower case": lambda text: quote(text, safe="").lower() if text == text.lower() else quote(text),
    "JSON": lambda text: json.dumps(text),
    "JSON as it is": lambda text: json.dumps(text, ensure_ascii=False),
    "Python": repr,
    "Base64": lambda text: base64.b64encode(text.encode()).decode(),
    "Base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "Base64 after a user": lambda text: base64.b64encode(b"me:" + text.encode()).decode(),
    "Base64 after another": lambda text: base64.b64encode(b"user:" + text.encode() + b"\n").decode(),
    "Base64 after one more": lambda text: base64.b64encode(b"admin1:" + text.encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_found_in_every_form(form: str) -> None:
    written = FORMS[form](SECRET)
    said = redact(f"cannot reach db as <{written}> at all", {"PW": SECRET, "OTHER": "elsewhere"})
    assert "${env:PW}" in said
    assert said.startswith("cannot reach db as <")
    assert said.endswith("> at all")
    # No run of the written secret that would tell it is left; in Base64 ten characters may be of the user before it.
    left, start = said.replace("${env:PW}", " "), 10 if "after" in form else 0
    assert not any(written[i : i + 6] in left for i in range(start, len(written) - 6))


@given(st.text(st.characters(codec="utf-8"), min_size=4, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_no_value_survives(value: str, before: str, after: str) -> None:
    said = redact(before + value + after, {"PW": value})
    if value.strip():
        assert value not in said.replace("${env:PW}", "\0")


@pytest.mark.parametrize("value", ["e", "ab", "x1!"])
def test_a_short_value_takes_the_whole_text_along(value: str) -> None:
    said = redact(f"the server refuses {value} there", {"PW": value})
    assert said == "(withheld, since it may hold the value of ${env:PW})"
    assert redact("###", {"PW": value}) == "###"


def test_a_port_is_no_secret_and_blanks_are_none() -> None:
    assert redact("port 80 of db", {"PORT": "80", "NOTHING": "", "BLANK": "  "}) == "port 80 of db"


def test_the_longest_value_is_taken_first() -> None:
    assert redact("abcdef abcd", {"A": "abcd", "B": "abcdef"}) == "${env:B} ${env:A}"


def test_variables_are_those_of_options() -> None:
    assert variables_in({"url": "http://h/${env:B}/${env:A}", "x": "${HOME}"}) == ("A", "B")


@pytest.mark.parametrize(
    "sql",
    [
        "'password' = 'hunter2'",
        "'password'='hunter2' , 'url' = 'jdbc:x'",
        "'header.X-Api-Key' = 'hunter2'",
        "'properties.token' =\n   'hunter2'",
        "'PASSWORD' = 'it''s hunter2'",
        "'authorization' = 'Bearer hunter2",
    ],
)
def test_a_literal_secret_of_a_script_is_not_shown_with_an_error(sql: str) -> None:
    script = f"CREATE TABLE t (a INT) WITH (\n{sql}"
    shown = without_literals(script)
    assert "hunter2" not in shown
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in script.split("\n")]
    for line in range(1, script.count("\n") + 2):
        found = Diagnostic(message="wrong", file="job.sql", line=line, column=1)
        assert "hunter2" not in diagnostic_text(found, script, "error")


@pytest.mark.parametrize("sql", ["'password' = '${env:PW}'", "'key-pattern' = 'user:{id}'", "'url' = 'http://h/x'"])
def test_what_is_no_secret_stays(sql: str) -> None:
    assert without_literals(sql) == sql


def test_letters_of_a_value_are_not_replaced_one_by_one() -> None:
    text = string.ascii_lowercase
    assert redact(text, {"PW": "hunter2"}) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"password": "hunter2"', '"password": "*******"'),
        ('{"a":1,"header.X-Api-Key":"hun\\"ter2","b":2}', '{"a":1,"header.X-Api-Key":"*********","b":2}'),
        ('"password": "${env:PW}"', '"password": "${env:PW}"'),
        ('"properties.token": "not closed', '"properties.token": "**********'),
        ('"table-name": "d"', '"table-name": "d"'),
    ],
)
def test_values_of_secret_options_are_stars_in_the_text_of_a_plan(text: str, shown: str) -> None:
    assert without_json_literals(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "'" + "password " * 40_000 + "' , 'next'",
        "'" + "password " * 40_000,
        "'password' " * 40_000,
        "'password' = '" + "x''" * 40_000,
        "'password" + " " * 100_000 + "= 'x",
    ],
    ids=["words", "never closed", "names", "quotes", "blanks"],
)
def test_words_like_password_cost_no_more_than_the_text_is_long(text: str) -> None:
    before = time.process_time()
    without_literals(text)
    without_json_literals(text.replace("'", '"').replace("=", ":"))
    # Of processor time: minutes when each word was tried with each end, and hundredths of a second now.
    assert time.process_time() - before < 10
