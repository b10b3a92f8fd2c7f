"""What a statement asks the SQL client to do, as data: the planner says it, the client does it.

>>> Told(text="table orders created").text
'table orders created'
"""

from __future__ import annotations

from dataclasses import dataclass

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Nothing is left to do; ``text`` says what was done."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRows:
    """Show rows that the planner knows; None is NULL."""

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
    """Run a plan; in the ``background`` it goes on until it is stopped, else it takes what is there and ends."""

    plan: Plan
    background: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSelect:
    """Run a plan whose one sink stands for the person who asked, and show the rows."""

    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """Write a plan to ``path`` and, if asked to, run it. ``force`` writes over a file that is there."""

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
    """Compute the cached results that running ``plan`` reads, and tell ``text``."""

    plan: Plan
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCached:
    """Drop the cached results that running ``plan`` would read, and tell ``text``."""

    plan: Plan
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJobs:
    """Show what runs in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    """Stop what runs in the background under ``name``."""

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
    """What the planner made of a statement; ``place`` is where it stands, for errors that only doing it brings up."""

    action: Action
    findings: tuple[Finding, ...]
    place: Diagnostic
