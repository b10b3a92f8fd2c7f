"""Rendering of diagnostics about a text: the position, the source line with a caret, and the hint.

>>> problem = Diagnostic(message="unknown table 'u'", file="job.sql", line=1, column=15)
>>> print(diagnostic_text(problem, "SELECT a FROM u", "error"))
job.sql:1:15: error: unknown table 'u'
  SELECT a FROM u
                ^
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from hintplan.plans.errors import Diagnostic, clipped
from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import count
from hintplan.plans.text.redaction import without_literals

Severity = Literal["warning", "note"]

_LONGEST_LINE = 400
_STARS = re.compile(r"(['\"])\*{4,}")
_MOST_ERRORS = 50


@frozen
class CompilerFinding:
    """A diagnostic that does not stop the compilation. A note is information; only warnings can become errors.

    An ``idle`` finding is a note that a setting of Flink has no effect.
    """

    severity: Severity
    diagnostic: Diagnostic
    idle: bool = False


def diagnostic_text(diagnostic: Diagnostic, text: str, severity: str, *, placed: bool = True) -> str:
    """Return ``file:line:column: severity: message``, the source line with a caret below the column, and the hint.

    Without ``placed``, the position is left out, for text whose lines the reader cannot number, such as typed
    statements.
    """
    place = ":".join(str(p) for p in (diagnostic.file, diagnostic.line, diagnostic.column) if p is not None)
    message = clipped(diagnostic.message)
    parts = [f"{place}: {severity}: {message}" if place and placed else f"{severity}: {message}"]
    lines = _lines(text)
    if diagnostic.line is not None and diagnostic.column is not None and diagnostic.line <= len(lines):
        whole, start = lines[diagnostic.line - 1], diagnostic.column - 1
        line, before = _part(_of_one_length(whole), len(_of_one_length(whole[:start])))
        # A tab below each tab keeps the caret in its column, whatever the width of tabs.
        blank = "".join("\t" if c == "\t" else " " for c in line[:before])
        parts += [f"  {line}", f"  {blank}^"]
    if diagnostic.hint:
        parts.append(f"  hint: {clipped(diagnostic.hint)}")
    return "\n".join(parts)


def _of_one_length(line: str) -> str:
    """Shorten values that were replaced by stars, because their number is the length of a password."""
    return _STARS.sub(r"\1***", line)


def errors_text(diagnostics: Sequence[Diagnostic], text_of: Callable[[str | None], str], *, placed: bool = True) -> str:
    """Render the first errors as in :func:`diagnostic_text`, and the number of errors if there are several.

    ``text_of`` returns the text of a file by its name.
    """
    shown = diagnostics[:_MOST_ERRORS]
    parts = [
        diagnostic_text(diagnostic, text_of(diagnostic.file), "error", placed=placed or diagnostic.file is not None)
        for diagnostic in shown
    ]
    if len(diagnostics) > len(shown):
        parts.append(f"... and {len(diagnostics) - len(shown):,} more")
    if len(diagnostics) > 1:
        parts.append(count(len(diagnostics), "error"))
    return "\n".join(parts)


def findings_text(
    findings: Sequence[CompilerFinding], text_of: Callable[[str | None], str], *, verbose: bool
) -> list[str]:
    """Render findings as in :func:`diagnostic_text`, warnings first; idle settings share a line unless ``verbose``."""
    shown = sorted(findings, key=lambda finding: finding.severity != "warning")
    idle = [] if verbose else [finding for finding in shown if finding.idle]
    lines = [
        diagnostic_text(finding.diagnostic, text_of(finding.diagnostic.file), finding.severity)
        for finding in shown
        if verbose or not finding.idle
    ]
    if idle:
        has, them = ("has", "it") if len(idle) == 1 else ("have", "them")
        lines.append(f"note: {count(len(idle), 'setting')} {has} no effect here (--verbose lists {them})")
    return lines


@lru_cache(maxsize=2)  # a script may have thousands of findings
def _lines(text: str) -> list[str]:
    return without_literals(text).split("\n")


def _part(line: str, at: int) -> tuple[str, int]:
    """Return ``line``, or the part around ``at`` if the line is long, and the offset of ``at`` in it."""
    if len(line) <= _LONGEST_LINE:
        return line, at
    start = max(at - _LONGEST_LINE // 2, 0)
    end = start + _LONGEST_LINE
    first, last = "... " if start else "", " ..." if end < len(line) else ""
    return f"{first}{line[start:end]}{last}", len(first) + at - start
