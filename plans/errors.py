"""The error tree of hintplan, shared by planner, plans and runtime.

    HintplanError            an error that a user can cause; rendered without a traceback
    ├── SqlError             the SQL is wrong or unsupported (planner)
    ├── PlanError            the plan document is wrong (plans)
    └── RunError             the plan cannot be run, or the run failed (runtime)
        ├── NotInstalled     required packages are not installed
        └── Unavailable      a required service is down for now; a retry may succeed

Every error states the problem, its location, and what to do next:

>>> print(SqlError("unknown table 'ordres'", file="job.sql", line=3, column=15, hint="did you mean 'orders'?"))
job.sql:3:15: unknown table 'ordres'
  hint: did you mean 'orders'?
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hintplan.plans.frozen import frozen
from hintplan.plans.python_words import in_python, is_for_a_command

_MOST_SHOWN, _WIDEST, _LARGEST_FILE = 10, 160, 10_000_000
"""In a notebook: findings shown with their source line, characters of a line, and bytes of a file that is read."""

_MAY_BE_SECRET = r"(?i)secret|passw|token|credential|authorization|cookie|api[-_.]?key|access[-_.]?key|jaas|user[-.]?info|://[^/\s]*@"
"""Source lines that may contain a literal password, and are never shown."""

_LONGEST_PATH, _LONGEST_MESSAGE, _LONGEST_LIST = 600, 6_000, 12_000
"""Maximum characters of a plan path, of a message or hint, and of an error. A longer error only counts further
diagnostics.
"""


@frozen
class Diagnostic:
    """A finding: ``message`` states the problem, ``hint`` what to type next; ``line`` and ``column`` count from 1."""

    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        place = on_one_line(self.file or "")
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
            if self.column is not None:
                place += f":{self.column}"
        text = f"{place}: " if place else ""
        text += f"{on_one_line(clipped(self.path, _LONGEST_PATH))}: " if self.path else ""
        text += clipped(self.message)
        return text + (f"\n  hint: {clipped(self.hint)}" if self.hint else "")


def on_one_line(name: str) -> str:
    """Escape the line breaks of a user-supplied name, so that no part of it can pass for output of hintplan."""
    return name.replace("\n", "\\n")


def clipped(text: str, most: int = _LONGEST_MESSAGE) -> str:
    """Return ``text`` without its middle if it is longer than ``most``: names in a plan may have any length."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}... ({len(text):,} characters) ...{text[-most // 3 :]}"


def for_python(found: Diagnostic, *, compiling: bool = False) -> Diagnostic:
    """Return the diagnostic worded for Python callers, or unchanged if a command shows it."""
    if is_for_a_command():
        return found
    hint = None if found.hint is None else in_python(found.hint, compiling=compiling)
    return replace(found, message=in_python(found.message, compiling=compiling), hint=hint)


def _listed(diagnostics: tuple[Diagnostic, ...]) -> str:
    """Join ``diagnostics`` in the given order, up to ``_LONGEST_LIST`` characters."""
    texts: list[str] = []
    size = 0
    for index, diagnostic in enumerate(diagnostics):
        texts.append(str(diagnostic))
        size += len(texts[-1])
        if size > _LONGEST_LIST and index + 1 < len(diagnostics):
            texts.append(f"... and {len(diagnostics) - index - 1:,} more")
            break
    return "\n".join(texts)


def _printable(line: str) -> str:
    """Replace each unprintable character of ``line`` by a blank, because it might control a terminal."""
    return "".join(c if c.isprintable() else " " for c in line)


def _excerpt(found: Diagnostic, texts: Mapping[str | None, str]) -> list[str]:
    """Return the source line of a diagnostic, with a caret below its column; nothing if the text is unavailable."""
    text = texts.get(found.file)
    if text is None and found.file is not None and found.line is not None:
        with suppress(OSError, UnicodeDecodeError):
            if os.path.getsize(found.file) <= _LARGEST_FILE:
                with open(found.file, encoding="utf-8") as file:
                    text = file.read()
    lines = [] if text is None or found.line is None else text.split("\n")[found.line - 1 : found.line]
    if not lines or re.search(_MAY_BE_SECRET, lines[0]):
        return []
    column = max((found.column or 1) - 1, 0)
    first = max(column - _WIDEST * 2 // 3, 0) if len(lines[0]) > _WIDEST else 0
    line = _printable(lines[0][first : first + _WIDEST])
    number = f"{found.line:>5} | "
    return ["", f"{number}{line}", *([f"{' ' * (len(number) - 2)}| {' ' * (column - first)}^"] if found.column else [])]


class HintplanError(Exception):
    """One or more diagnostics; ``str()`` lists them, up to a readable length.

    Outside of a command, they name Python arguments instead of options (:mod:`hintplan.plans.python_words`).
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        diagnostics: tuple[Diagnostic, ...] = (),
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
    ) -> None:
        if message is not None:
            first = Diagnostic(message=message, hint=hint, file=file, line=line, column=column, path=path)
            diagnostics = (first, *diagnostics)
        compiling = isinstance(self, SqlError)
        self.diagnostics = tuple(for_python(diagnostic, compiling=compiling) for diagnostic in diagnostics)
        self.texts: Mapping[str | None, str] = {}
        super().__init__(_listed(self.diagnostics))

    def _render_traceback_(self, *_: object) -> list[str]:
        """Return the lines that IPython shows instead of a traceback: each finding with its source line.

        ``texts`` has the source texts by file name; for other findings, the file itself is read if it exists.
        """
        shown = [f"{type(self).__name__}: {_listed(self.diagnostics[:1])}"]
        for number, diagnostic in enumerate(self.diagnostics[:_MOST_SHOWN]):
            shown += [str(diagnostic)] if number else []
            shown += _excerpt(diagnostic, self.texts)
        if len(self.diagnostics) > _MOST_SHOWN:
            shown.append(f"... and {len(self.diagnostics) - _MOST_SHOWN:,} more")
        return [_printable(line) for line in "\n".join(shown).split("\n")]


class SqlError(HintplanError):
    """The SQL is wrong or uses an unsupported feature."""


class PlanError(HintplanError):
    """The plan document is wrong: its text, its schema, its meaning, or a changed fact."""


class RunError(HintplanError):
    """The plan cannot be run as requested, or the run failed."""


class NotInstalled(RunError):
    """The operation needs packages of an extra of hintplan that this Python lacks."""


class Unavailable(RunError):
    """A source, service or sink of a run is unavailable for now; a retry may succeed."""
