"""How diagnostics about a text look to a person: the place, the line it is about with a caret, and the hint.

>>> found = Diagnostic(message="unknown table 'u'", file="job.sql", line=1, column=15)
>>> print(rendered(found, "SELECT a FROM u", "error"))
job.sql:1:15: error: unknown table 'u'
  SELECT a FROM u
                ^
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plans.errors import Diagnostic

__all__ = ["Finding", "Severity", "rendered"]

Severity = Literal["warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A diagnostic that does not stop the compilation. A note is information; only warnings can become errors."""

    severity: Severity
    diagnostic: Diagnostic


def rendered(diagnostic: Diagnostic, text: str, severity: str, *, placed: bool = True) -> str:
    """``file:line:column: severity: message``, the line it is about with a caret under the place, and the hint.

    Where a line has no number for whoever reads it, as in what was typed just now, it is not ``placed``.
    """
    place = ":".join(str(p) for p in (diagnostic.file, diagnostic.line, diagnostic.column) if p is not None)
    parts = [f"{place}: {severity}: {diagnostic.message}" if place and placed else f"{severity}: {diagnostic.message}"]
    lines = text.split("\n")
    if diagnostic.line is not None and diagnostic.column is not None and diagnostic.line <= len(lines):
        line = lines[diagnostic.line - 1]
        # tabs stay tabs under tabs, so that the caret stands right whatever their width
        blank = "".join("\t" if c == "\t" else " " for c in line[: diagnostic.column - 1])
        parts += [f"  {line}", f"  {blank}^"]
    if diagnostic.hint:
        parts.append(f"  hint: {diagnostic.hint}")
    return "\n".join(parts)
