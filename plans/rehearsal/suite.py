"""A file of tests as data: the plan, and scenarios of steps with times, rows and expectations.

Values are not converted here, because only the plan knows their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.frozen import frozen
from hintplan.plans.rehearsal.yaml_nodes import Place, TextNode

Plain = object
"""A value as a file or a program gives it: None, a text, a number, a list or a mapping of plain values."""

OP = "op"
"""The name under which a row of a changelog has its row kind."""

STEP_KEYS = ("at", "after", "rows", "lookups", "functions", "expect", "state", "ends")
"""The keys of a step; any other name is a source."""

ExpectedPart = Literal["table", "added", "changelog"]
"""The part of a sink that is expected: its whole table so far, the rows added in the step, or all changes of it."""


@frozen
class GivenCell:
    """A value of a row, with its position in a file."""

    value: Plain
    place: Place | None = None

    def error(self, message: str, hint: str | None = None) -> PlanError:
        """Return an error at the value."""
        if self.place is not None:
            return self.place.error(message, hint)
        return PlanError(diagnostics=(Diagnostic(message=message, hint=hint),))


@frozen
class GivenRow:
    """A row by column; ``keys`` has the positions of the columns' names, if the row is in a file of tests.

    A row of a file of rows ``may_have_more`` columns than its table, as the file of a source may.
    """

    cells: Mapping[str, GivenCell]
    place: Place | None = None
    keys: Mapping[str, Place] = field(default_factory=dict)
    may_have_more: bool = False


@frozen
class GivenRows:
    """Rows of a table in their order; ``owner`` is the text to replace if other rows are expected."""

    table: str
    rows: tuple[GivenRow, ...]
    place: Place | None = None
    owner: Place | None = None


@frozen
class Expected:
    """The expectation of a sink after a step."""

    part: ExpectedPart
    rows: GivenRows


@frozen
class ExpectedState:
    """The number of visible rows that a state has after a step."""

    state: str
    rows: int
    place: Place | None = None


@frozen
class ScenarioStep:
    """A step: ``at`` is a time, or ``after`` the ms since the step before; without either, it is at the same time.

    ``rows`` arrive at once. ``lookups`` replace the rows of lookup tables from this step on, and ``functions`` the
    results of functions. A step that ``ends`` event time closes all windows.
    """

    place: Place | None = None
    at: GivenCell | None = None
    after: int | None = None
    rows: tuple[GivenRows, ...] = ()
    lookups: tuple[GivenRows, ...] = ()
    functions: tuple[GivenRows, ...] = ()
    expected: tuple[Expected, ...] = ()
    states: tuple[ExpectedState, ...] = ()
    ends: bool = False


@frozen
class Scenario:
    """A test: its name and its steps."""

    name: str
    steps: tuple[ScenarioStep, ...]
    place: Place | None = None


@frozen
class Suite:
    """A file of tests, and how to make their plan: ``plan`` or ``sql`` is a path beneath the folder of the file."""

    file: str
    text: str
    place: Place
    plan: TextNode | None = None
    sql: TextNode | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    init: tuple[TextNode, ...] = ()
    lookups: tuple[GivenRows, ...] = ()
    functions: tuple[GivenRows, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
