"""Advice on a plan with facts changed by hand: the changes, and the command that undoes them.

The digests of a plan reveal that a fact changed, but not its old value. The old value is in the script of the plan, or
in git's version of the plan: a source that has the recorded digests is the original.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hintplan.plans.compare.facts import Fact, facts_between
from hintplan.plans.errors import HintplanError, PlanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import FactsChanged, loads
from hintplan.plans.files.named_script import init_of, named_script
from hintplan.plans.files.plan_source import compile_text, init_texts
from hintplan.plans.format.digest import operator_facts, plan_digests, table_facts
from hintplan.plans.format.document import function_document
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.text_file import read_text

_SHOWN = 20


def restoring(error: PlanError) -> str:
    """Describe old and new value of each changed fact, and the command to undo the changes.

    Return an empty text if no original is found.
    """
    if not isinstance(error, FactsChanged):
        return ""
    file = error.file
    if file is None or file.startswith("<") or not os.path.isfile(file):
        return ""
    for original, command in _originals(error.plan, file):
        lines = list(_changes(original, error.plan, error.written))
        if lines:
            more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
            return "\n".join(["what was changed:", *lines[:_SHOWN], *more, f"to take it back: {command}"])
    return ""


def _originals(plan: Plan, file: str) -> Iterator[tuple[Plan, str]]:
    name = shlex.quote(file)
    try:
        script = named_script(plan.source, os.path.dirname(file))
        if script is not None:
            init = init_of(script, plan.init, ())
            compiled = compile_text(read_text(script, script), script, {}, init=init_texts(init))
            words = "".join(f" --init {shlex.quote(file)}" for file in init)
            compiling = f"hintplan compile {shlex.quote(script)}{words}"
            yield compiled.plan, f"{compiling} -o {name} --keep-edits {name} --allow-fact-edits"
    except HintplanError:
        pass  # errors in the script are reported when it is compiled
    try:
        committed = git.GitPath("HEAD", f"./{Path(os.path.relpath(file)).as_posix()}")
        yield loads(git.read(committed, shown=file), check_meaning=False), f"git checkout HEAD -- {name}"
    except (HintplanError, ValueError):
        pass


def _changes(original: Plan, plan: Plan, written: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts of ``plan`` that differ from ``original``, if ``original`` has the ``written`` digests."""
    digests = plan_digests(original)
    old, new = _facts(original), _facts(plan)
    for kind, recorded in written.items():
        for name, digest in recorded.items():
            is_original = digests.get(kind, {}).get(name) == digest
            if not is_original or kind not in old or old[kind][name] == new[kind].get(name):
                continue
            path = name if kind == "operators" else f"{kind}.{name}"
            if name not in new[kind]:
                yield f"  {path}: is gone"
            else:
                yield from (f"  {path}.{_said(fact)}" for fact in facts_between(old[kind][name], new[kind][name]))


def _facts(plan: Plan) -> dict[str, dict[str, Any]]:
    return {
        "tables": {name: table_facts(table) for name, table in plan.tables.items()},
        "functions": {name: function_document(function) for name, function in plan.functions.items()},
        "operators": {operator.id: operator_facts(operator) for operator in plan.operators},
    }


def _said(fact: Fact) -> str:
    return f"{fact.path}: {fact.note}" if fact.note else f"{fact.path}: {fact.before} → {fact.after}"
