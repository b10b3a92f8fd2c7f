"""The checks of a change to plans before it is merged: layout, meaning, script, and effects.

Each file is checked by itself and compared with the file of its name in the base; the results are remarks.
:mod:`hintplan.plans.commands.ci` provides the files and the base.

>>> [remark.rule for remark in check_plan("p.json", b"[]", base=None).remarks]
['validate']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import islice

from hintplan.plans.analysis.run_limits import check_sizes
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.costs import with_costs
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.files.codec import loads
from hintplan.plans.files.fmt import canonical_text, first_difference
from hintplan.plans.files.plan_source import CompiledScript, PlanSource
from hintplan.plans.frozen import frozen
from hintplan.plans.lint.registry import RULES as LINT_RULES
from hintplan.plans.lint.report import remarks_of
from hintplan.plans.lint.run import LintReport
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import settings_by_name
from hintplan.plans.review.annotations import DIFF_RULES, Remark, remark_of_diagnostic, remarks_of_changes
from hintplan.plans.review.locations import Location, locate
from hintplan.plans.settings.effects import Level
from hintplan.plans.settings.setting import value_text
from hintplan.plans.text.counts import count, shortened
from hintplan.plans.text.redaction import without_json_literals

RULES = {
    **DIFF_RULES,
    "fmt": "the file is not in the canonical layout: hintplan fmt",
    "validate": "the plan is wrong",
    "script": "the script compiles to another plan",
    "policy": "a change of a TTL breaks the policy of the project",
    "test": "a test of the plan fails",
    "base": "the plan of the base cannot be read",
    **{rule.id: rule.about for rule in LINT_RULES.values()},
}
"""The subject of each rule of the checks."""


NEVER = "never"
"""The value of ``--fail-on`` that accepts all effects."""

_INVALID = "HP000"
_ASKING = ("hint", "statement")
_AGAIN = "compile the script again, keeping the edits: hintplan compile SCRIPT --keep-edits PLAN -o PLAN"

_UNNAMED = "the plan of the base names its script, {!r}; this one names none, so they are not compared"
_NAME_IT = 'put "source" back; to continue without a script, write the plan to a new file'

_LAYOUT = "not in the canonical layout"
_ENOUGH = 100
_LINE = 200


@frozen
class CheckedFile:
    """The result for one file. ``plan`` is None if it is no valid plan, ``before`` if the base has none.

    ``places`` has the position of each change.
    """

    file: str
    remarks: tuple[Remark, ...]
    plan: Plan | None = None
    before: Plan | None = None
    changes: tuple[Change, ...] = ()
    places: tuple[Location, ...] = ()
    removed: bool = False
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if one of the remarks is an error."""
        return any(remark.level == "error" for remark in self.remarks)

    @property
    def failed_by_effect(self) -> bool:
        """True if the effect of a change is an error."""
        return any(remark.level == "error" and remark.rule in DIFF_RULES for remark in self.remarks)


def check_plan(
    file: str,
    data: bytes,
    *,
    base: bytes | None,
    script: CompiledScript | Diagnostic | None = None,
    fail_on: Level | None = None,
    allow_fact_edits: bool = False,
    evidence: Evidence | None = None,
) -> CheckedFile:
    """Check the plan in ``data``; ``base`` is the content of the file in the base.

    ``script`` is the compilation of the plan's script, the diagnostic if it could not be compiled, or None if the plan
    names no script. With ``evidence``, the changes of TTLs have their costs.
    """
    remarks: list[Remark] = []
    marks = {"fmt": "ok", "validate": "ok", "script": "ok" if script is not None else ""}
    try:
        plan = loads(data, file=file, allow_fact_edits=allow_fact_edits)
    except PlanError as error:
        remarks += [remark_of_diagnostic(problem, "validate") for problem in error.diagnostics]
        return CheckedFile(file=file, remarks=tuple(remarks), marks={**marks, "validate": "failed", "fmt": ""})
    large = [replace(finding, file=file) for finding in islice(check_sizes(plan), _ENOUGH)]
    if large:
        remarks += [remark_of_diagnostic(problem, "validate") for problem in large]
        marks["validate"] = "failed"
    if canonical_text(data, file=file) != data:
        line, wanted = first_difference(data, canonical_text(data, file=file))
        text = without_json_literals(wanted).strip()
        message = f"not in the canonical layout, which reads {shortened(text, _LINE)} here" if text else _LAYOUT
        problem = Diagnostic(message=message, hint=f"hintplan fmt {file}", file=file, line=line)
        remarks.append(remark_of_diagnostic(problem, "fmt"))
        marks["fmt"] = "failed"
    if isinstance(script, Diagnostic):
        remarks.append(remark_of_diagnostic(replace(script, file=file), "script"))
        marks["script"] = "failed"
    elif script is not None:
        for path, text in out_of_step(script.plan, plan):
            problem = Diagnostic(message=text, hint=_AGAIN, file=file, path=path)
            remarks.append(remark_of_diagnostic(problem, "script"))
            marks["script"] = "failed"
    before: Plan | None = None
    changes: tuple[Change, ...] = ()
    places: tuple[Location, ...] = ()
    if base is not None:
        try:
            before = loads(base, file=f"{file} of the base", allow_fact_edits=True, check_meaning=False)
        except PlanError as error:
            remarks.append(remark_of_diagnostic(error.diagnostics[0], "base", "warning"))
        else:
            changes = tuple(compare_plans(before, plan))
            if evidence is not None:
                changes = with_costs(changes, evidence)
            if before.source is not None and plan.source is None:
                problem = Diagnostic(message=_UNNAMED.format(before.source), hint=_NAME_IT, file=file, line=1)
                remarks.append(remark_of_diagnostic(problem, "script"))
                marks["script"] = "failed"
            source = PlanSource(name=file, file=file, data=data, plan=plan)
            places = tuple(locate(source, changes))
            remarks_on_changes = remarks_of_changes(changes, places, fail_on=fail_on)
            remarks += [
                remark for remark in remarks_on_changes if remark.rule != "diff-none" or remark.level == "error"
            ]
    return CheckedFile(
        file=file, remarks=tuple(remarks), plan=plan, before=before, changes=changes, places=places, marks=marks
    )


def with_lint(checked: Sequence[CheckedFile], report: LintReport) -> list[CheckedFile]:
    """Add the remarks of the linter to each file; remarks on other files, such as ignores, go to the first.

    Findings that a plan is invalid are left out, because ``validate`` reports them.
    """
    remarks = [remark for remark in remarks_of(report.found) if remark.rule != _INVALID]
    files = {result.file for result in checked}
    results = []
    for number, result in enumerate(checked):
        own = [r for r in remarks if r.file == result.file or (number == 0 and r.file not in files)]
        levels = {remark.level for remark in own}
        mark = "failed" if "error" in levels else count(len(own), "remark") if own else "ok"
        marks = {**result.marks, "lint": mark if result.plan is not None else ""}
        results.append(replace(result, remarks=(*result.remarks, *own), marks=marks))
    return results


def removed_plan(file: str, base: bytes) -> CheckedFile:
    """Return the result for a plan that only the base has."""
    remark = Remark(rule="diff-incompatible", level="warning", message="the plan is removed", subject=file, file=file)
    try:
        before = loads(base, file=file, allow_fact_edits=True, check_meaning=False)
    except PlanError:
        before = None
    return CheckedFile(file=file, remarks=(remark,), before=before, removed=True)


def no_plan_any_more(file: str) -> CheckedFile:
    """Return the result for a file that is a plan only in the base."""
    problem = Diagnostic(
        message="was a plan in the base and is none now", hint="put the plan back, or remove the file", file=file
    )
    return CheckedFile(file=file, remarks=(remark_of_diagnostic(problem, "validate"),), marks={"validate": "failed"})


def out_of_step(compiled: Plan, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield path and text for each difference from the script that no edit of a setting explains: facts and hints.

    Configuration is left out, because it may have been set with ``-c``.
    """
    for change in compare_plans(plan, compiled):
        if change.subject in ("operator", "table", "function"):
            difference = {"+": "has it, the plan has not", "-": "does not have it"}.get(change.kind, "says otherwise")
            yield change.path, f"{change.path}: the script {difference}"
    old = {operator.id: settings_by_name(operator) for operator in plan.operators}
    for operator in compiled.operators:
        for key, setting in settings_by_name(operator).items():
            recorded = old.get(operator.id, {}).get(key)
            if recorded is None:
                continue
            for layer in _ASKING:
                was, now = recorded.layers.get(layer), setting.layers.get(layer)
                if was != now:
                    texts = ["nothing" if value is None else value_text(value) for value in (was, now)]
                    yield setting.path, f"{setting.path}: the {layer} has {texts[1]}, the plan recorded {texts[0]}"
