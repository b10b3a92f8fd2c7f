"""The SQL text being compiled, and how a place in it is named in errors and warnings.

Owns offsets, lines and columns, and the collection of warnings. Places are offsets into the text everywhere in the
planner; they become ``file:line:column`` only here. Knows nothing of SQL.

>>> Source(text="SELECT 1\\nFROM t", file="job.sql").place(9)
(2, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plans.errors import Diagnostic, SqlError
from plans.text.findings import Finding, Severity

CHECK_HERE = "check what stands here and just before"
"""The advice for a syntax error about which no more is known."""


@dataclass(slots=True, kw_only=True)
class Source:
    """The whole text of a script and the name to show for it; what a session is told is added at the end."""

    text: str
    file: str | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of ``offset``, both counted from 1; a tab counts as one column."""
        offset = min(max(offset, 0), len(self.text))
        return self.text.count("\n", 0, offset) + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def diagnostic(self, message: str, offset: int, hint: str | None = None) -> Diagnostic:
        line, column = self.place(offset)
        return Diagnostic(message=message, hint=hint, file=self.file, line=line, column=column)

    def error(self, message: str, offset: int, hint: str | None = None) -> SqlError:
        """The error to raise for what stands at ``offset``; ``hint`` says what to write instead."""
        return SqlError(diagnostics=(self.diagnostic(message, offset, hint),))

    def where(self, offset: int) -> str:
        """``line:column``, for messages that name a second place."""
        line, column = self.place(offset)
        return f"{line}:{column}"


@dataclass(slots=True, kw_only=True)
class Report:
    """Collects findings once each, in the order of the text, and turns hint warnings into errors if told to."""

    source: Source
    strict_hints: bool = False
    findings: list[Finding] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)

    def warn(self, message: str, offset: int, hint: str | None = None) -> None:
        self._add("warning", message, offset, hint)

    def note(self, message: str, offset: int, hint: str | None = None) -> None:
        self._add("note", message, offset, hint)

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
            if found not in self.refusals:
                self.refusals.append(found)
        else:
            self._add("warning", message, offset, hint)

    def _add(self, severity: Severity, message: str, offset: int, hint: str | None) -> None:
        found = Finding(severity=severity, diagnostic=self.source.diagnostic(message, offset, hint))
        if found not in self.findings:
            self.findings.append(found)

    def finish(self, on_warning: Callable[[Diagnostic], None] | None) -> None:
        """Hand out the findings in text order; SqlError with all hint warnings at once under ``strict_hints``."""

        def place(found: Diagnostic) -> tuple[int, int]:
            return found.line or 0, found.column or 0

        if self.refusals:
            raise SqlError(diagnostics=tuple(sorted(self.refusals, key=place)))
        self.findings.sort(key=lambda f: place(f.diagnostic))
        if on_warning is not None:
            for finding in self.findings:
                on_warning(finding.diagnostic)
