"""Patterns that take exponential time in a matcher that tries one way after the other, and those that people write."""

from __future__ import annotations

import pytest

from hintplan.plans.declarations.patterns import LONGEST_PATTERN, slow_pattern

SLOW = [
    # Java 17 works on these for minutes, in a text of forty letters.
    r"(.*a){12}$", r"(a+){1,100}b", r"(?:(?:a+)+)+b", r"(a*?)*?b",
    # Java 17 remembers where some of these have failed, which other versions need not.
    r"(a+)+$", r"(a*)*b", r"(a|a)*b", r"(a|aa)+$", r"(x+x+)+y", r"([a-zA-Z]+)*$", r"(\w+\s?)*$",
    r"(a|a?)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(?:\d+)+x", r"((ab)*)*c", r"(a?){50}a{50}", r"(?i)(a|A)*$",
    r"(\d|[0-9])*x", r"(?s)(.|\n)*x", r'([^"]|\\.)*"', r"(\w*)*", "(a+?)+b", "(é|ü)*x", r"(a{1,100}){1,100}b",
    r"(\x61|a)*b", r"(\Qa\E|a)*b", r"([a-m]|[k-z])*1", r"(\p{L}+)*$", r"(?:(?:a|b)|(?:b|c))*d", r"(?<x>a+)+b",
]  # fmt: skip
QUICK = [
    r"(\d+,)*\d+", r"[0-9]+", r".*foo.*", r"^\s*(\w+)\s*=\s*(.*)$", r"([a-z]+\.)+[a-z]{2,}", r"https?://[^/]+(/[^/?]*)*",
    r"(\w+)@(\w+)\.com", r"\A\p{L}+\z", r"[.]", r"%..|[-+.*_]", r"(a|b)*c", r"\d{4}-\d{2}-\d{2}", r"\s+",
    r"(\d{1,3}\.){3}\d{1,3}", "", "[]a]+", r"\[(.*?)\]", r"(ERROR|WARN|INFO): .*", r"^[\w.+-]+@\w+(\.\w+)+$",
    r"(foo|bar)+",
    r"\$0",
    r"(.|\n)*x", r'"(?:[^"\\]|\\.)*"', r"(?i)[a-z]+\d*", r"\Q(a+)+\E", r"a{2,5}b?c*", r"(?:ab|cd)*", r"[^a]*a[^b]*b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_with_several_ways_to_match_are_found(pattern: str) -> None:
    assert slow_pattern(pattern) in (
        "repeats a part that can match the same text in several ways",
        "repeats a part that may be empty a limited number of times",
    )


@pytest.mark.parametrize("pattern", QUICK)
def test_patterns_that_people_write_are_taken(pattern: str) -> None:
    assert slow_pattern(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(a)\\1", "refers to a group"),
        ("(?<n>a)\\k<n>", "refers to a group"),
        ("a" * (LONGEST_PATTERN + 1), "has more than 2,000 characters"),
        ("a" * 1_000, "too long"),
        ("(a", "not closed"),
        ("a)", "not open"),
        ("[a", "not closed"),
        ("(" * 1_500, "nested too deeply"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(pattern: str, said: str) -> None:
    assert said in (slow_pattern(pattern) or "")
