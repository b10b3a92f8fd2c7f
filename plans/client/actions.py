"""The actions of statements as data: the planner returns them, and the SQL client performs them.

>>> StopJob(name="paid").name
'paid'
"""

from __future__ import annotations

from dataclasses import dataclass

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An action that only prints ``text``, because the planner has done the rest."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRows:
    """Show rows that the planner provides; None is NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowText:
    """Show a text, such as a declaration."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPlan:
    """Explain a plan, or show its JSON."""

    plan: Plan
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFile:
    """Explain the plan file at ``path``."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInsert:
    """Run a plan: in the ``background`` until it is stopped, or else with the available input."""

    plan: Plan
    background: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSelect:
    """Run a plan whose only sink is the user, and show the rows."""

    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """Write a plan to ``path``, and run it if ``execute`` is set. ``force`` replaces an existing file."""

    plan: Plan
    path: str
    if_not_exists: bool
    force: bool
    execute: bool
    background: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Run the plan file at ``path``."""

    path: str
    background: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FillCached:
    """Compute the cached results that a run of ``plan`` reads, and print ``text``."""

    plan: Plan
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCached:
    """Drop the cached results that a run of ``plan`` would read, and print ``text``."""

    plan: Plan
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJobs:
    """Show the jobs in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    """Stop the background job ``name``."""

    name: str


Action = (
    Told
    | ShowRows
    | ShowText
    | ShowPlan
    | ShowFile
    | RunInsert
    | RunSelect
    | WritePlan
    | RunPlan
    | FillCached
    | DropCached
    | ListJobs
    | StopJob
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """The planner's result for a statement; ``place`` is its position, for errors that occur during the action."""

    action: Action
    findings: tuple[Finding, ...]
    place: Diagnostic
