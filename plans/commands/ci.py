"""``hintplan ci``: all checks of a change to plans in one command, for build servers and before a push."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from hintplan.plans.ci.checks import NEVER, RULES, CheckedFile, check_plan, no_plan_any_more, removed_plan, with_lint
from hintplan.plans.ci.state_policy import policies_for, with_policy
from hintplan.plans.commands.diff import FAIL_ON, least_level
from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    allow_module_option,
    init_option,
    read_evidence_file,
)
from hintplan.plans.errors import Diagnostic, HintplanError, PlanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import read_plan_bytes, write_plan_bytes
from hintplan.plans.files.named_script import init_of, named_script
from hintplan.plans.files.plan_source import CompiledScript, compile_text, init_texts, is_plan_like
from hintplan.plans.lint.run import lint_files
from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.jsontext import MAX_BYTES
from hintplan.plans.text.project import sql_dir_for
from hintplan.plans.text.terminal import print_data, print_message
from hintplan.plans.text.text_file import script_text


@click.command("ci")
@click.argument("paths", metavar="[PLAN]...", nargs=-1)
@click.option("--base", default="git:origin/main", show_default=True, metavar="git:REVISION", help="Compare with this.")
@click.option(
    "--sql-dir",
    type=click.Path(file_okay=False, exists=True),
    help="The directory of scripts, if they are not next to plans.",
)
@click.option(
    "--evidence",
    "evidence_files",
    multiple=True,
    metavar="FILE",
    help="Show what TTLs cost by the observations of a run in this file; repeatable, one for each plan.",
)
@click.option("--comment", type=click.Path(dir_okay=False), help="Write the comment of a pull request here.")
@click.option("--github", "annotate", is_flag=True, help="Print annotations for GitHub Actions.")
@click.option("--sarif", "sarif_file", type=click.Path(dir_okay=False), help="Write SARIF here.")
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Write JUnit XML here.")
@click.option(
    "--fail-on",
    type=click.Choice((*FAIL_ON, NEVER)),
    default="drop",
    show_default=True,
    help="Fail if a change has this effect, or a worse one.",
)
@click.option("--no-tests", is_flag=True, help="Do not run the tests of the plans.")
@allow_module_option
@init_option
@allow_fact_edits_option
def ci_command(
    paths: tuple[str, ...],
    base: str,
    sql_dir: str | None,
    evidence_files: tuple[str, ...],
    comment: str | None,
    annotate: bool,
    sarif_file: str | None,
    junit_file: str | None,
    fail_on: str,
    no_tests: bool,
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    allow_fact_edits: bool,
) -> int:
    """Check plans for a review: layout, meaning, agreement with their scripts, tests, and changes.

    Without PLAN, all plans that git tracks here. They are compared with the common ancestor of this commit and BASE.
    Exits with 1 if a plan fails a check, or a change has an effect that --fail-on names. The level
    'incompatible' accepts a change that drops state, and 'never' accepts every effect.
    """
    from hintplan.plans.ci.report import ci_markdown, ci_text

    revision = _base(base)
    files = list(paths) or _tracked()
    evidence = {found.plan: found for found in map(read_evidence_file, evidence_files)}
    checked: list[CheckedFile] = []
    names: set[str] = set()
    for file in files:
        data = read_plan_bytes(file)
        path_in_base = git.GitPath(revision, _in_repository(file))
        before = git.read(path_in_base, shown=f"{base}:{file}") if git.exists(path_in_base) else None
        names.add(name := _plan_name(data))
        observed = evidence.get(name)
        result = check_plan(
            file,
            data,
            base=before,
            script=_script(file, data, sql_dir, allow_modules, init),
            fail_on=None if fail_on == NEVER else least_level(fail_on),
            allow_fact_edits=allow_fact_edits,
            evidence=observed,
        )
        checked.append(with_policy(result, policies_for(Path(file)), observed))
    for found in evidence.values():
        if found.plan not in names:
            print_message(f"warning: no plan here is called {found.plan!r}, so its evidence is not used")
    checked = with_lint(checked, lint_files(files, allow_fact_edits=allow_fact_edits))
    if not no_tests:
        from hintplan.plans.ci.plan_tests import suites_of, with_tests

        folders = {os.path.dirname(file) or "." for file in files} if paths else {"."}
        checked = with_tests(checked, suites_of(checked, sorted(folders)), allow_modules)
    if not paths:
        checked += _removed(revision, files)
    shown_base = base.removeprefix(git.PREFIX)
    if comment is not None:
        write_plan_bytes(ci_markdown(checked, base=shown_base).encode(), comment)
    remarks = [remark for plan in checked for remark in plan.remarks]
    _write(remarks, sarif_file, junit_file)
    if annotate:
        from hintplan.plans.review.github import github

        text = github(remarks)
        if text:
            print_data(text)
        print_message(ci_text(checked, base=shown_base))
    else:
        print_data(ci_text(checked, base=shown_base))
    return 1 if any(plan.failed for plan in checked) else 0


def _plan_name(data: bytes) -> str:
    """Return the name of the plan in ``data``; an empty text if it is no plan."""
    try:
        return str(json.loads(data)["name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _base(base: str) -> str:
    """Return the commit where this branch left the base, so that later merges into the base are no changes."""
    name = base.removeprefix(git.PREFIX).rstrip(":")
    if not name or name.startswith("-") or ":" in name:
        raise PlanError(f"'{base}' is no revision", hint="write git:<revision>, such as git:origin/main")
    git.check_repository(shown=base)
    git.check_revision(name, shown=base, hint=_local_base(name))
    code, ancestor, _ = git.git("merge-base", "--end-of-options", name, "HEAD")
    if code:
        print_message(f"warning: {name} and this commit have no known ancestor; comparing with {name} itself")
        return name
    return ancestor.strip()


def _local_base(name: str) -> str | None:
    """Return the option that names the branch here, if the repository has it only without its remote."""
    _, here, _ = git.git("for-each-ref", "--format=%(refname:short)", "refs/heads")
    branches = here.split()
    for branch in (name.rpartition("/")[2], "main", "master"):
        if branch in branches:
            return f"this clone has a branch {branch}: --base {git.PREFIX}{branch}"
    return None


def _tracked() -> list[str]:
    """Return the plan files that git tracks below this folder."""
    _, names, _ = git.git("ls-files", "-z", "--", "*.json")
    plans = [name for name in names.split("\0") if name and os.path.isfile(name) and _is_plan(name)]
    for name in plans:
        if os.path.islink(name):
            raise PlanError("is a symbolic link, so its target is not reviewed", file=name, hint="put the plan there")
    if not plans:
        raise PlanError("git tracks no plan here", hint="name the plans: hintplan ci plans/orders.json")
    return plans


def _is_plan(name: str) -> bool:
    """Return True for a runnable plan, and for a file that is meant to be one."""
    if os.path.getsize(name) > MAX_BYTES:
        return False  # no command reads it
    return is_plan_like(Path(name).read_bytes())


def _removed(revision: str, files: Sequence[str]) -> list[CheckedFile]:
    """Return the plans of the base that were removed, and the plans that were replaced by something else."""
    top = git.git("rev-parse", "--show-prefix")[1].strip()
    changed = ("diff", "--relative", "--no-ext-diff", "--no-renames", "--name-only", "-z", revision, "--", "*.json")
    removed = []
    for name in git.git(*changed)[1].split("\0"):
        if name and name not in files:
            path_in_base = git.GitPath(revision, f"{top}{name}")
            data = git.read(path_in_base, shown=name) if 0 < git.size(path_in_base) <= MAX_BYTES else b""
            if is_plan_like(data):
                removed.append(no_plan_any_more(name) if os.path.lexists(name) else removed_plan(name, data))
    return removed


def _in_repository(file: str) -> str:
    """Return the path of a file in git's notation, relative to the working directory."""
    path = os.path.relpath(file).replace(os.sep, "/")
    return path if path.startswith("../") else f"./{path}"


def _script(
    file: str, data: bytes, sql_dir: str | None, allow_modules: Sequence[str], init: Sequence[str]
) -> CompiledScript | Diagnostic | None:
    """Compile the script of a plan; return a diagnostic if that fails, or None if the plan names no script."""
    try:
        document = json.loads(data)
        source, recorded = document.get("source"), document.get("init", [])
    except (ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(source, str):
        return None
    folder = sql_dir if sql_dir is not None else sql_dir_for(Path(file)) or os.path.dirname(file)
    try:
        path = named_script(source, str(folder))
        if path is None:
            location = f"in {folder}" if str(folder) else "beside it"
            return Diagnostic(
                message=f"the script of the plan, {source!r}, was not found {location}, so they are not compared",
                hint="name its folder: --sql-dir DIR, or sql-dir under [ci] in hintplan.toml",
            )
        names = [name for name in recorded if isinstance(name, str)] if isinstance(recorded, list) else []
        texts = init_texts(init_of(path, names, init))
        return compile_text(script_text(read_plan_bytes(path), path), path, {}, allow_modules, texts)
    except HintplanError as error:
        first = error.diagnostics[0]
        place = f"{first.file}:{first.line}: " if first.line is not None else f"{first.file}: " if first.file else ""
        return Diagnostic(message=f"the script cannot be compiled: {place}{first.message}", hint=first.hint)


def _write(remarks: Sequence[Remark], sarif_file: str | None, junit_file: str | None) -> None:
    if sarif_file is not None:
        from hintplan.plans.review.sarif import sarif

        write_plan_bytes((json.dumps(sarif(remarks, RULES), indent=2) + "\n").encode(), sarif_file)
    if junit_file is not None:
        from hintplan.plans.review.junit import junit

        write_plan_bytes(junit(remarks, suite="ci").encode(), junit_file)
