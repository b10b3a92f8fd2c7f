"""Runs files of tests one after the other, on one Spark that starts only if a plan needs it.

outcomes = run_suites(["paid.test.yaml"], name=None, slices=1, modules=(), spark=SharedSpark())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hintplan.plans.errors import Diagnostic, HintplanError
from hintplan.plans.rehearsal.plans_of_suites import plan_of_suite
from hintplan.plans.rehearsal.reading import read_suite
from hintplan.plans.rehearsal.suite import Suite
from hintplan.plans.rehearsal.updating import indent_of, rows_text, updated
from hintplan.plans.rehearsal.yaml_nodes import Place
from hintplan.runtime.rehearsal.needs_spark import needs_spark
from hintplan.runtime.rehearsal.spark import SharedSpark

if TYPE_CHECKING:
    from hintplan.runtime.rehearsal.scenarios import ScenarioOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOutcome:
    """The outcome of a file of tests; with ``errors``, none of its tests ran."""

    file: str
    scenarios: tuple[ScenarioOutcome, ...] = ()
    errors: tuple[Diagnostic, ...] = ()
    suite: Suite | None = None

    @property
    def failed(self) -> bool:
        """True if a test failed or could not run."""
        return bool(self.errors) or any(outcome.failures for outcome in self.scenarios)

    @property
    def has_errors(self) -> bool:
        """True if a failure is no difference that an update of the file removes."""
        failures = (failure for outcome in self.scenarios for failure in outcome.failures)
        return bool(self.errors) or any(failure.owner is None for failure in failures)


def run_suites(
    files: Sequence[str], *, name: str | None, slices: int, modules: Sequence[str], spark: SharedSpark
) -> Iterator[SuiteOutcome]:
    """Yield the outcome of each of ``files``; with ``name``, only tests whose names contain it run.

    Functions and lookup classes are loaded from ``modules`` only. A file of tests cannot allow any.
    """
    for file in files:
        suite: Suite | None = None
        try:
            suite = read_suite(file)
            chosen = [scenario for scenario in suite.scenarios if name is None or name.lower() in scenario.name.lower()]
            if not chosen:
                continue
            plan = plan_of_suite(suite, modules)
            if needs_spark(plan):
                spark.launch()
            # The JVM starts while this imports a second's worth of modules.
            from hintplan.runtime.rehearsal.rehearsal import Rehearsal
            from hintplan.runtime.rehearsal.scenarios import run_scenario

            session = spark.session(Rehearsal.zone_of(plan))
            rehearsal = Rehearsal(plan, session=session, modules=tuple(modules))
        except HintplanError as error:
            yield SuiteOutcome(file=file, errors=error.diagnostics, suite=suite)
            continue
        outcomes = [run_scenario(rehearsal, scenario, suite, slices=slices) for scenario in chosen]
        yield SuiteOutcome(file=file, scenarios=tuple(outcomes), suite=suite)


def updated_suite(outcome: SuiteOutcome) -> str | None:
    """Return the text of a file with what came in place of what was expected; None if nothing can be replaced."""
    suite = outcome.suite
    if suite is None:
        return None
    replacements: dict[Place, str] = {}
    for scenario in outcome.scenarios:
        for failure in scenario.failures:
            owner, came = failure.owner, failure.came
            if owner is None or came is None:
                continue
            if isinstance(came, int):
                replacements[owner] = str(came)
            else:
                names = [column.name for column in failure.columns]
                replacements[owner] = rows_text(names, came, indent=indent_of(suite.text, owner))
    return updated(suite.text, replacements) if replacements else None
