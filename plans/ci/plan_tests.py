"""The tests of plans in a review: files of tests are found by the plan or the script that they name.

checked = with_tests(checked, suites_of(checked, ["."]), allow_modules)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hintplan.plans.ci.checks import CheckedFile
from hintplan.plans.errors import HintplanError, NotInstalled
from hintplan.plans.extras import require
from hintplan.plans.lazy import load
from hintplan.plans.rehearsal.plans_of_suites import tested_file
from hintplan.plans.rehearsal.reading import read_suite, suites_beneath
from hintplan.plans.review.annotations import Remark, remark_of_diagnostic
from hintplan.plans.text.counts import count

RULE = "test"
_RUNTIME = "hintplan.runtime.rehearsal"


def suites_of(checked: Sequence[CheckedFile], folders: Iterable[str]) -> dict[str, list[str]]:
    """Return the files of tests in ``folders``, by the checked plan that they test.

    A file that cannot be read belongs to the first plan, so that its mistake is reported.
    """
    suites: dict[str, list[str]] = {}
    plans = {os.path.normpath(result.file): result for result in checked}
    scripts = {_script_path(result): name for name, result in plans.items() if result.plan is not None}
    for file in dict.fromkeys(suite for folder in folders for suite in suites_beneath(folder)):
        try:
            tested = tested_file(read_suite(file))
        except HintplanError:
            tested = next(iter(plans), "")
        name = tested if tested in plans else scripts.get(tested)
        if name is not None:
            suites.setdefault(plans[name].file, []).append(file)
    return suites


def _script_path(result: CheckedFile) -> str:
    source = result.plan.source if result.plan is not None else None
    return os.path.normpath(os.path.join(os.path.dirname(result.file), source or "."))


def with_tests(
    checked: Sequence[CheckedFile], suites: Mapping[str, Sequence[str]], modules: Sequence[str]
) -> list[CheckedFile]:
    """Run the tests in ``suites``, and add a remark to each plan for each test that fails.

    Functions and lookup classes are loaded from ``modules`` only.
    """
    if not suites:
        return list(checked)
    try:
        require("test")
    except NotInstalled as error:
        remark = replace(remark_of_diagnostic(error.diagnostics[0], RULE), message=f"its tests did not run: {error}")
        return [_with(result, [remark], "failed") if result.file in suites else result for result in checked]
    spark: Any = load(f"{_RUNTIME}.spark:SharedSpark")()
    try:
        return [_tested(result, suites.get(result.file, ()), modules, spark) for result in checked]
    finally:
        spark.stop()


def _tested(result: CheckedFile, files: Sequence[str], modules: Sequence[str], spark: object) -> CheckedFile:
    if not files:
        return _with(result, [], "")
    failure_text = load(f"{_RUNTIME}.report:failure_text")
    remarks: list[Remark] = []
    passed = 0
    run_suites = load(f"{_RUNTIME}.suites:run_suites")
    for outcome in run_suites(files, name=None, slices=1, modules=modules, spark=spark):
        remarks += [remark_of_diagnostic(error, RULE) for error in outcome.errors]
        for scenario in outcome.scenarios:
            passed += not scenario.failures
            for failure in scenario.failures:
                remark = remark_of_diagnostic(failure.finding, RULE)
                text = failure_text(failure).partition(": ")[2]
                remarks.append(replace(remark, message=text, subject=scenario.scenario.name))
    return _with(result, remarks, "failed" if remarks else count(passed, "test"))


def _with(result: CheckedFile, remarks: Sequence[Remark], mark: str) -> CheckedFile:
    return replace(result, remarks=(*result.remarks, *remarks), marks={**result.marks, "test": mark})
