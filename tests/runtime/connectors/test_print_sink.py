"""What a print sink writes of values that anybody may have written."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

from hintplan.runtime.connectors import print_sink
from hintplan.runtime.connectors.print_sink import PrintBatch, print_raw
from hintplan.runtime.operator import KIND

ODD = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    "\u200b",
    "\u202e",
    "\u2028",
    "\u2066",
    "\ufeff",
    "\U000e0041",
]
"""Control characters, and those that hide, turn or break a line."""


@pytest.mark.parametrize("part", ["value", "nested value", "identifier"])
def test_each_row_is_one_line_that_a_terminal_shows_as_it_is(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    for odd in ODD:
        text = f"a{odd}+I[2, forged]{odd}b"
        value: object = [{"x": text}] if part == "nested value" else text if part == "value" else "c"
        table = pa.table({"n": [1, 2], "t": [value, value], KIND: pa.array([0, 1], pa.int8())})
        PrintBatch(identifier=text if part == "identifier" else "").write(table)
        printed = capsys.readouterr().out
        assert printed.count("\n") == 2
        assert len(printed.splitlines()) == 2
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in printed.replace("\n", ""))
        first, second = printed.splitlines()
        assert first.replace("+I[1", "", 1) == second.replace("-U[2", "", 1)
        assert "+I[2, forged]" in first
        assert first != f"+I[1, {text}]"


def test_text_that_prints_stays(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"t": ["Zoë 東京 🎉 \\ 'x'", None]})
    PrintBatch(identifier="größe").write(table)
    assert capsys.readouterr().out == "größe> +I[Zoë 東京 🎉 \\ 'x']\ngröße> +I[null]\n"


def test_whoever_starts_the_run_can_ask_for_rows_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(print_sink, "_as_they_are", False)  # put back in the end
    print_raw()
    PrintBatch(identifier="").write(pa.table({"t": ["a\nb\x1b[2K"]}))
    assert capsys.readouterr().out == "+I[a\nb\x1b[2K]\n"
