"""What a diagnostic shows of long lines and names."""

from __future__ import annotations

from hintplan.plans.errors import Diagnostic
from hintplan.plans.text.findings import diagnostic_text


def test_of_a_long_line_the_place_is_shown() -> None:
    line = "".join(f"{n:09} " for n in range(1000))
    found = diagnostic_text(Diagnostic(message="m", file="f", line=1, column=5001), line, "error").split("\n")
    assert found[0] == "f:1:5001: error: m"
    assert found[1] == f"  ... {line[4800:5200]} ..."
    assert found[1][found[2].index("^") :].startswith("000000500 ")
    short = diagnostic_text(Diagnostic(message="m", line=1, column=3), line[:400], "error").split("\n")
    assert short[1:] == [f"  {line[:400]}", "    ^"]


def test_messages_are_bounded() -> None:
    text = diagnostic_text(Diagnostic(message="x" * 1_000_000, hint="y" * 1_000_000), "", "error")
    assert len(text) < 20_000
    assert "(1,000,000 characters)" in text
