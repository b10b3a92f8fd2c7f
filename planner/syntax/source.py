"""The SQL text of a compilation, and the positions in it that errors and warnings show.

This module owns offsets, lines and columns, and collects warnings. The planner uses offsets into the text; only this
module converts them to ``file:line:column``. It knows no SQL.

>>> Source(text="SELECT 1\\nFROM t", file="job.sql").place(9)
(2, 1)
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from hintplan.planner.syntax.budget import Budget
from hintplan.planner.syntax.problems import Ended, Problems
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.text.findings import CompilerFinding, Severity

_BREAK = re.compile("\n")

CHECK_HERE = "check the text here and just before"
"""The hint for a syntax error without a more specific one."""


@dataclass(slots=True, kw_only=True)
class Source:
    """The whole text of a script, and its name for messages. A session appends each new text.

    ``included`` are the init files before the script, with their offsets. The script starts at ``begin``.
    """

    text: str
    file: str | None = None
    included: list[tuple[int, str]] = field(default_factory=list)
    begin: int = 0
    budget: Budget = field(default_factory=Budget)
    problems: Problems = field(default_factory=Problems)
    _breaks: list[int] = field(default_factory=list)
    _searched: int = 0

    def include(self, file: str, text: str) -> None:
        """Add the text of an init file, before any text of the script."""
        self.included.append((self.begin, file))
        self.text += f"{text}\n"
        self.begin = len(self.text)

    def included_at(self, offset: int) -> str | None:
        """Return the init file that contains ``offset``, or None for the script."""
        return self._part(offset)[1]

    def texts(self) -> dict[str, str]:
        """Return the texts of the init files, by name."""
        ends = [*(start for start, _ in self.included), self.begin][1:]
        return {file: self.text[start : end - 1] for (start, file), end in zip(self.included, ends, strict=True)}

    def text_of(self, file: str | None) -> str:
        """Return the text of one file, from whose start its lines count."""
        return self.texts().get(file or "", self.text[self.begin :])

    def _part(self, offset: int) -> tuple[int, str | None]:
        part: tuple[int, str | None] = (self.begin, None)
        for start, file in self.included:
            if start <= offset < self.begin:
                part = (start, file)
        return part

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of ``offset`` in its file, both counted from 1. A tab counts as one column."""
        offset = min(max(offset, 0), len(self.text))
        start, _ = self._part(offset)
        self._breaks += (match.start() for match in _BREAK.finditer(self.text, self._searched))
        self._searched = len(self.text)
        before = bisect_left(self._breaks, offset)
        line_start = self._breaks[before - 1] + 1 if before else 0
        return before - bisect_left(self._breaks, start) + 1, offset - max(line_start, start) + 1

    def diagnostic(self, message: str, offset: int, hint: str | None = None) -> Diagnostic:
        line, column = self.place(offset)
        file = self.included_at(offset) or self.file
        return Diagnostic(message=message, hint=hint, file=file, line=line, column=column)

    def error(self, message: str, offset: int, hint: str | None = None) -> SqlError:
        """Return the error to raise for the text at ``offset``. ``hint`` is the advice to the user."""
        return SqlError(diagnostics=(self.diagnostic(message, offset, hint),))

    def spend(self, name: str, number: int, offset: int) -> None:
        """Count ``number`` against the limit ``name``. Raise SqlError at ``offset`` if it is exceeded."""
        exceeded = self.budget.exceeded(name, number)
        if exceeded is not None:
            raise Ended(diagnostics=(self.diagnostic(exceeded[0], offset, exceeded[1]),))

    def in_order(self, diagnostic: Diagnostic) -> tuple[int, int, int]:
        """Return the sort key that puts diagnostics in the order of the text. Init files come first."""
        files = [file for _, file in self.included]
        file = files.index(diagnostic.file) if diagnostic.file in files else len(files)
        return file, diagnostic.line or 0, diagnostic.column or 0

    def raise_problems(self, last: SqlError | None = None) -> None:
        """Raise SqlError with all recorded errors and the ``last`` one, in the order of the text.

        Discard the recorded errors.
        """
        recorded = (*self.problems.found, *(() if last is None else last.diagnostics))
        diagnostics = tuple(sorted(dict.fromkeys(recorded), key=self.in_order))
        assert diagnostics or not self.problems.doubts, "a part was skipped, and no error gives the reason"
        self.problems = Problems()
        if diagnostics:
            raise SqlError(diagnostics=diagnostics)

    def where(self, offset: int) -> str:
        """Return ``line:column`` for a second position in a message, preceded by the name of an init file."""
        line, column = self.place(offset)
        file = self.included_at(offset)
        return f"{line}:{column}" if file is None else f"{file}:{line}:{column}"


@dataclass(slots=True, kw_only=True)
class Diagnostics:
    """Collects findings once each, in the order of the text.

    With ``strict_hints``, warnings about hints become errors.
    """

    source: Source
    strict_hints: bool = False
    findings: list[CompilerFinding] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)
    _known: set[CompilerFinding | Diagnostic] = field(default_factory=set)

    def warn(self, message: str, offset: int, hint: str | None = None) -> None:
        self._add("warning", message, offset, hint)

    def note(self, message: str, offset: int | None = None, hint: str | None = None) -> None:
        """Add a note. Without ``offset``, it is about a setting from outside the script."""
        self._add("note", message, offset, hint)

    def note_idle(self, message: str, offset: int | None = None) -> None:
        """Add a note about a setting of Flink that has no effect."""
        self._add("note", message, offset, None, idle=True)

    def note_bare(self, text: str, offset: int) -> None:
        """Note that a duration without a unit, such as ``'12'``, is in milliseconds, as in Flink's ``TimeUtils``."""
        number = text.strip()
        if number.isdecimal() and number.strip("0"):
            advice = f"write '{number} ms', or the unit that is meant"
            self.note(f"'{number}' has no unit and means {number} ms, as in Flink", offset, advice)

    def warn_of_hint(self, message: str, offset: int, hint: str | None = None) -> None:
        """Warn that a hint does not have its intended effect. Under ``strict_hints``, this is an error."""
        if self.strict_hints:
            diagnostic = self.source.diagnostic(message, offset, hint)
            if diagnostic not in self._known:
                self._known.add(diagnostic)
                self.refusals.append(diagnostic)
        else:
            self._add("warning", message, offset, hint)

    def _add(
        self, severity: Severity, message: str, offset: int | None, hint: str | None, *, idle: bool = False
    ) -> None:
        outside = Diagnostic(message=message, hint=hint) if offset is None else None
        about = outside or self.source.diagnostic(message, offset or 0, hint)
        finding = CompilerFinding(severity=severity, diagnostic=about, idle=idle)
        if finding not in self._known:
            self._known.add(finding)
            self.findings.append(finding)

    def finish(self, on_warning: Callable[[Diagnostic], None] | None) -> None:
        """Pass the findings to ``on_warning`` in the order of the text.

        Under ``strict_hints``, raise SqlError with all warnings about hints instead.
        """
        if self.refusals:
            raise SqlError(diagnostics=tuple(sorted(self.refusals, key=self.source.in_order)))
        self.findings.sort(key=lambda f: self.source.in_order(f.diagnostic))
        if on_warning is not None:
            for finding in self.findings:
                on_warning(finding.diagnostic)
