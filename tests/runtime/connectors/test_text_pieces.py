"""Pieces and blocks of text files: every cut gives each record once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hintplan.runtime.connectors.filesystem.text_files import parts
from hintplan.runtime.connectors.filesystem.text_pieces import blocks, content, piece

TEXTS = (b"", b"\n", b"ab", b"ab\n", b"a\nbb\r\nccc\rd\n\n\r\r\n\nee", b"\r\na\r\n\r\nb\r", b"\r", b"a\rb\rc\r")


def lines(text: bytes) -> list[bytes]:
    """The lines that have characters."""
    return [line for line in re.split(rb"\r\n|\n|\r", text) if line]


def last_end(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))) + 1


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_cut_at_every_byte_have_each_line_once(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a").write_bytes(text)
    for size in range(1, len(text) + 2):
        cut = [b"".join(piece(str(tmp_path / "a"), start, size)) for start in range(0, max(len(text), 1), size)]
        assert b"".join(cut) == text
        assert [line for part in cut for line in lines(part)] == lines(text)


@pytest.mark.parametrize("text", TEXTS)
def test_blocks_of_every_size_have_each_line_once(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a").write_bytes(text)
    for size in range(1, len(text) + 2):
        for chunk in range(1, len(text) + 1):
            chunks = (text[at : at + chunk] for at in range(0, len(text), chunk))
            cut = list(blocks(chunks, last_end, size))
            assert b"".join(cut) == text
            assert [line for part in cut for line in lines(part)] == lines(text)
    assert b"".join(blocks(content(str(tmp_path / "a")), last_end)) == text


def test_the_records_of_a_block_that_cannot_be_read_are_given_as_they_are() -> None:
    block = b"".join(b"%d\n" % number for number in range(100))
    ends = [match.end() for match in re.finditer(b"\n", block)]
    found = list(parts(block, lambda data: None, lambda data: ends))
    assert [record for part in found for record in part] == [b"%d\n" % number for number in range(100)]
