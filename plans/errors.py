"""The error tree of hintplan, shared by planner, plans and runtime.

    HintplanError            anything a user can cause; rendered without a traceback
    ├── SqlError             the SQL is wrong or unsupported (planner)
    ├── PlanError            the plan document is wrong (plans)
    └── RunError             the plan cannot be run, or the run failed (runtime)

Every error says what, where and what to do next:

>>> print(SqlError("unknown table 'ordres'", file="job.sql", line=3, column=15, hint="did you mean 'orders'?"))
job.sql:3:15: unknown table 'ordres'
  hint: did you mean 'orders'?
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Diagnostic", "HintplanError", "PlanError", "RunError", "SqlError"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding: ``message`` says what is wrong, ``hint`` what to type next; ``line`` and ``column`` count from 1."""

    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
            if self.column is not None:
                place += f":{self.column}"
        text = f"{place}: " if place else ""
        text += f"{self.path}: " if self.path else ""
        text += self.message
        return text + (f"\n  hint: {self.hint}" if self.hint else "")


class HintplanError(Exception):
    """One or more diagnostics; ``str()`` renders them all, one after the other."""

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
            found = Diagnostic(message=message, hint=hint, file=file, line=line, column=column, path=path)
            diagnostics = (found, *diagnostics)
        self.diagnostics = diagnostics
        super().__init__("\n".join(str(d) for d in diagnostics))


class SqlError(HintplanError):
    """The SQL is wrong or asks for something that is not supported."""


class PlanError(HintplanError):
    """The plan document is wrong: its text, its schema, its meaning, or a changed fact."""


class RunError(HintplanError):
    """The plan cannot be run as asked, or the run failed."""
