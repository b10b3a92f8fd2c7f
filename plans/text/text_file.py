"""Reading of SQL scripts: UTF-8, with or without a byte order mark, with the line ends of any system.

>>> read_text("job.sql", "job.sql")                                # doctest: +SKIP
"""

from __future__ import annotations

import sys

from hintplan.plans.errors import SqlError
from hintplan.plans.text.links import reason, refuse_leading_out


def read_text(path: str, file: str) -> str:
    """Return the text at ``path``, or on stdin for ``-``; raise SqlError about ``file`` if it cannot be read."""
    if path != "-":
        refuse_leading_out(path, shown=file)
    try:
        data = sys.stdin.buffer.read() if path == "-" else open(path, "rb").read()  # noqa: SIM115
    except OSError as error:
        raise SqlError(f"cannot be read: {reason(error, path)}", file=file) from error
    return script_text(data, file)


def script_text(data: bytes, file: str) -> str:
    """Return the text of a script; raise SqlError about ``file`` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, start = before.count(b"\n") + 1, before.rfind(b"\n") + 1
        column = len(before[start:].decode("utf-8", errors="replace")) + 1
        raise SqlError(
            "the script is not UTF-8", file=file, line=line, column=column, hint="save it as UTF-8"
        ) from error
