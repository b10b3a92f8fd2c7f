r"""Finds the ends of records in a CSV file whose fields in quotes may contain line breaks, as Spark's reader does.

A record ends at ``\n`` outside quotes. In a file with regular quotes, that is a matter of counting. Otherwise the
records are followed character by character, by the rules of Spark's parser (Univocity, ``STOP_AT_DELIMITER``): a field
whose closing quote is followed by another character ends at the next delimiter or line end. The delimiter is no blank,
and a quote in a field is doubled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hintplan.runtime.connectors.filesystem.csv_blocks import CsvForm, quotes_of

_BOM = b"\xef\xbb\xbf"
_LINE_END = ord("\n")
_BLANK = ord(" ")
_COMMENT = ord("#")
_NONE = 0
"""The mark of the state before the first character, as in Spark's parser."""


def ends_of_records(data: bytes, form: CsvForm) -> np.ndarray[Any, Any]:
    """Return the positions behind the records of ``data`` that end in it."""
    marks = np.frombuffer(data, np.uint8)
    line_ends = np.flatnonzero(marks == _LINE_END)
    if form.quote.encode() not in data:
        return line_ends + 1
    commented = form.comments and (data.startswith(b"#") or b"\n#" in data)
    quotes = None if commented or data.startswith(_BOM) else quotes_of(data, marks, form, cut=True)
    if quotes is None:
        return np.array(_followed(data, form), np.int64)
    outside: np.ndarray[Any, Any] = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return outside + 1


class _EndOfData(Exception):
    """The data end in a record."""


def _followed(data: bytes, form: CsvForm) -> list[int]:
    walk = _Walk(data, form)
    at = len(_BOM) if data.startswith(_BOM) else 0
    ends: list[int] = []
    while at < len(data):
        try:
            at = walk.behind_line(at) if form.comments and data[at] == _COMMENT else walk.behind_record(at)
        except _EndOfData:
            break
        ends.append(at)
    return ends


class _Walk:
    """Follows the characters of CSV records."""

    def __init__(self, data: bytes, form: CsvForm) -> None:
        """Prepare for the records in ``data``."""
        self.data = data
        self.delimiter = ord(form.delimiter)
        self.quote = ord(form.quote)

    def behind_line(self, at: int) -> int:
        """Return the position behind the line of ``at``."""
        end = self.data.find(b"\n", at)
        if end < 0:
            raise _EndOfData
        return end + 1

    def behind_record(self, at: int) -> int:
        """Return the position behind the record that begins at ``at``."""
        while True:
            at = self._end_of_quoted(at) if self._mark(at) == self.quote else self._end_of_plain(at)
            if self._mark(at) == _LINE_END:
                return at + 1
            at += 1

    def _mark(self, at: int) -> int:
        if at >= len(self.data):
            raise _EndOfData
        return self.data[at]

    def _end_of_plain(self, at: int) -> int:
        """Return the position of the next delimiter or line end, from ``at`` on."""
        while (mark := self._mark(at)) != self.delimiter and mark != _LINE_END:
            at += 1
        return at

    def _end_of_quoted(self, at: int) -> int:
        """Return the position of the delimiter or line end behind the field whose quote is at ``at``."""
        before, at = _NONE, at + 1
        while True:
            mark = self._mark(at)
            if before == self.quote and (mark <= _BLANK or mark == self.delimiter):
                break
            if mark != self.quote:
                if before == self.quote:
                    return self._end_of_plain(at + 1)
                while (mark := self._mark(at)) not in (self.quote, _NONE):
                    at += 1
            elif before == self.quote:  # a doubled quote
                mark = _NONE
            before, at = mark, at + 1
        if mark == self.delimiter or mark == _LINE_END:
            return at
        while (mark := self._mark(at)) <= _BLANK:
            if mark == _LINE_END:
                return at
            at += 1
        return at if mark == self.delimiter else self._end_of_plain(at + 1)
