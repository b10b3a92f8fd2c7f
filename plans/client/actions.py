"""The actions of statements as data: the planner returns them, and the SQL client performs them.

>>> StopJob(name="paid").name
'paid'
"""

from __future__ import annotations

from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.findings import CompilerFinding


@frozen
class Told:
    """An action that only prints ``text``, because the planner has done the rest."""

    text: str


@frozen
class ShowRows:
    """Show rows that the planner provides; None is NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@frozen
class ShowText:
    """Show a text, such as a declaration."""

    text: str


@frozen
class ShowPlan:
    """Explain a plan, or show its JSON."""

    plan: Plan
    as_json: bool


@frozen
class ShowFile:
    """Explain the plan file at ``path``."""

    path: str


@frozen
class RunInsert:
    """Run a plan: in the ``background`` until it is stopped, or else with the available input."""

    plan: Plan
    background: bool


@frozen
class RunSelect:
    """Run a plan whose only sink is the user, and show the rows."""

    plan: Plan


@frozen
class WritePlan:
    """Write a plan to ``path``, and run it if ``execute`` is set. ``force`` replaces an existing file."""

    plan: Plan
    path: str
    if_not_exists: bool
    force: bool
    execute: bool
    background: bool


@frozen
class RunPlan:
    """Run the plan file at ``path``."""

    path: str
    background: bool


@frozen
class FillCached:
    """Compute the cached results that a run of ``plan`` reads, and print ``text``."""

    plan: Plan
    text: str


@frozen
class DropCached:
    """Drop the cached results that a run of ``plan`` would read, and print ``text``."""

    plan: Plan
    text: str


@frozen
class ListJobs:
    """Show the jobs in the background."""


@frozen
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


@frozen
class Performed:
    """The planner's result for a statement; ``place`` is its position, for errors that occur during the action."""

    action: Action
    findings: tuple[CompilerFinding, ...]
    place: Diagnostic
