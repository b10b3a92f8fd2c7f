"""How diagnostics about a text look to a person: the place, the line it is about with a caret, and the hint.

>>> found = Diagnostic(message="unknown table 'u'", file="job.sql", line=1, column=15)
>>> print(rendered(found, "SELECT a FROM u", "error"))
job.sql:1:15: error: unknown table 'u'
  SELECT a FROM u
                ^
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hintplan.plans.errors import Diagnostic, clipped
from hintplan.plans.text.counts import count
from hintplan.plans.text.redaction import without_literals

Severity = Literal["warning", "note"]

_LONGEST_LINE = 400
_MOST_ERRORS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A diagnostic that does not stop the compilation. A note is information; only warnings can become errors.

    One that is ``idle`` is a note of a setting of Flink that has no effect.
    """

    severity: Severity
    diagnostic: Diagnostic
    idle: bool = False


def rendered(diagnostic: Diagnostic, text: str, severity: str, *, placed: bool = True) -> str:
    """``file:line:column: severity: message``, the line it is about with a caret under the place, and the hint.

    Where a line has no number for whoever reads it, as in what was typed just now, it is not ``placed``.
    """
    place = ":".join(str(p) for p in (diagnostic.file, diagnostic.line, diagnostic.column) if p is not None)
    message = clipped(diagnostic.message)
    parts = [f"{place}: {severity}: {message}" if place and placed else f"{severity}: {message}"]
    lines = _lines(text)
    if diagnostic.line is not None and diagnostic.column is not None and diagnostic.line <= len(lines):
        line, before = _part(lines[diagnostic.line - 1], diagnostic.column - 1)
        # tabs stay tabs under tabs, so that the caret stands right whatever their width
        blank = "".join("\t" if c == "\t" else " " for c in line[:before])
        parts += [f"  {line}", f"  {blank}^"]
    if diagnostic.hint:
        parts.append(f"  hint: {clipped(diagnostic.hint)}")
    return "\n".join(parts)


def errors_rendered(
    diagnostics: Sequence[Diagnostic], text_of: Callable[[str | None], str], *, placed: bool = True
) -> str:
    """Errors as :func:`rendered` shows each, as far as people will read, and how many there are if there are several.

    ``text_of`` gives the text of a file by its name.
    """
    shown = diagnostics[:_MOST_ERRORS]
    parts = [rendered(each, text_of(each.file), "error", placed=placed or each.file is not None) for each in shown]
    if len(diagnostics) > len(shown):
        parts.append(f"... and {len(diagnostics) - len(shown):,} more")
    if len(diagnostics) > 1:
        parts.append(count(len(diagnostics), "error"))
    return "\n".join(parts)


def findings_rendered(findings: Sequence[Finding], text_of: Callable[[str | None], str], *, verbose: bool) -> list[str]:
    """Findings as :func:`rendered` shows each, warnings first; idle settings in one line, unless ``verbose``."""
    shown = sorted(findings, key=lambda found: found.severity != "warning")
    idle = [] if verbose else [found for found in shown if found.idle]
    lines = [
        rendered(found.diagnostic, text_of(found.diagnostic.file), found.severity)
        for found in shown
        if verbose or not found.idle
    ]
    if idle:
        has, them = ("has", "it") if len(idle) == 1 else ("have", "them")
        lines.append(f"note: {count(len(idle), 'setting')} {has} no effect here (--verbose lists {them})")
    return lines


@lru_cache(maxsize=2)  # a script may have thousands of findings
def _lines(text: str) -> list[str]:
    return without_literals(text).split("\n")


def _part(line: str, at: int) -> tuple[str, int]:
    """``line``, or of a long one what is around ``at``, and where ``at`` is in it."""
    if len(line) <= _LONGEST_LINE:
        return line, at
    start = max(at - _LONGEST_LINE // 2, 0)
    end = start + _LONGEST_LINE
    first, last = "... " if start else "", " ..." if end < len(line) else ""
    return f"{first}{line[start:end]}{last}", len(first) + at - start
