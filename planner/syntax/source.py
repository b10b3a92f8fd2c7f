"""The SQL text being compiled, and how a place in it is named in errors and warnings.

Owns offsets, lines and columns, and the collection of warnings. Places are offsets into the text everywhere in the
planner; they become ``file:line:column`` only here. Knows nothing of SQL.

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
from hintplan.plans.text.findings import Finding, Severity

_BREAK = re.compile("\n")

CHECK_HERE = "check what stands here and just before"
"""The advice for a syntax error about which no more is known."""


@dataclass(slots=True, kw_only=True)
class Source:
    """The whole text of a script and the name to show for it; what a session is told is added at the end.

    ``included`` are the init files before the script, and where each begins; the script is from ``begin`` on.
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
        """Add the text of an init file, before the first of the script's."""
        self.included.append((self.begin, file))
        self.text += f"{text}\n"
        self.begin = len(self.text)

    def included_at(self, offset: int) -> str | None:
        """The init file that ``offset`` is in; None for the script."""
        return self._part(offset)[1]

    def texts(self) -> dict[str, str]:
        """The texts of the init files, by name."""
        ends = [*(start for start, _ in self.included), self.begin][1:]
        return {file: self.text[start : end - 1] for (start, file), end in zip(self.included, ends, strict=True)}

    def text_of(self, file: str | None) -> str:
        """The text of one file, in which its lines are counted."""
        return self.texts().get(file or "", self.text[self.begin :])

    def _part(self, offset: int) -> tuple[int, str | None]:
        found: tuple[int, str | None] = (self.begin, None)
        for start, file in self.included:
            if start <= offset < self.begin:
                found = (start, file)
        return found

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of ``offset`` in its file, both counted from 1; a tab counts as one column."""
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
        """The error to raise for what stands at ``offset``; ``hint`` says what to write instead."""
        return SqlError(diagnostics=(self.diagnostic(message, offset, hint),))

    def spend(self, name: str, number: int, offset: int) -> None:
        """Count ``number`` against the limit ``name``; SqlError at ``offset`` if that is exceeded."""
        exceeded = self.budget.exceeded(name, number)
        if exceeded is not None:
            raise Ended(diagnostics=(self.diagnostic(exceeded[0], offset, exceeded[1]),))

    def in_order(self, diagnostic: Diagnostic) -> tuple[int, int, int]:
        """The key that sorts diagnostics as they stand in the text, of which init files come first."""
        files = [file for _, file in self.included]
        file = files.index(diagnostic.file) if diagnostic.file in files else len(files)
        return file, diagnostic.line or 0, diagnostic.column or 0

    def raise_problems(self, last: SqlError | None = None) -> None:
        """SqlError with all errors that were taken down, and the ``last`` one, in the order of the text.

        None of them counts any more.
        """
        known = (*self.problems.found, *(() if last is None else last.diagnostics))
        found = tuple(sorted(dict.fromkeys(known), key=self.in_order))
        assert found or not self.problems.doubts, "something was left out, and no error says why"
        self.problems = Problems()
        if found:
            raise SqlError(diagnostics=found)

    def where(self, offset: int) -> str:
        """``line:column``, for messages that name a second place; with the file, if that is an init file."""
        line, column = self.place(offset)
        file = self.included_at(offset)
        return f"{line}:{column}" if file is None else f"{file}:{line}:{column}"


@dataclass(slots=True, kw_only=True)
class Report:
    """Collects findings once each, in the order of the text, and turns hint warnings into errors if told to."""

    source: Source
    strict_hints: bool = False
    findings: list[Finding] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)
    _known: set[Finding | Diagnostic] = field(default_factory=set)

    def warn(self, message: str, offset: int, hint: str | None = None) -> None:
        self._add("warning", message, offset, hint)

    def note(self, message: str, offset: int | None = None, hint: str | None = None) -> None:
        """A note; without ``offset``, on what was said outside of the script."""
        self._add("note", message, offset, hint)

    def note_idle(self, message: str, offset: int | None = None) -> None:
        """A note of a setting of Flink that has no effect."""
        self._add("note", message, offset, None, idle=True)

    def note_bare(self, text: str, offset: int) -> None:
        """Say what a duration without a unit means, such as ``'12'``: ``TimeUtils`` of Flink takes milliseconds."""
        number = text.strip()
        if number.isdecimal() and number.strip("0"):
            advice = f"write '{number} ms', or the unit that is meant"
            self.note(f"'{number}' has no unit and means {number} ms, as in Flink", offset, advice)

    def warn_of_hint(self, message: str, offset: int, hint: str | None = None) -> None:
        """A warning that a hint does not do what it says: an error under ``strict_hints``."""
        if self.strict_hints:
            found = self.source.diagnostic(message, offset, hint)
            if found not in self._known:
                self._known.add(found)
                self.refusals.append(found)
        else:
            self._add("warning", message, offset, hint)

    def _add(
        self, severity: Severity, message: str, offset: int | None, hint: str | None, *, idle: bool = False
    ) -> None:
        said = Diagnostic(message=message, hint=hint) if offset is None else None
        about = said or self.source.diagnostic(message, offset or 0, hint)
        found = Finding(severity=severity, diagnostic=about, idle=idle)
        if found not in self._known:
            self._known.add(found)
            self.findings.append(found)

    def finish(self, on_warning: Callable[[Diagnostic], None] | None) -> None:
        """Hand out the findings in text order; SqlError with all hint warnings at once under ``strict_hints``."""
        if self.refusals:
            raise SqlError(diagnostics=tuple(sorted(self.refusals, key=self.source.in_order)))
        self.findings.sort(key=lambda f: self.source.in_order(f.diagnostic))
        if on_warning is not None:
            for finding in self.findings:
                on_warning(finding.diagnostic)
