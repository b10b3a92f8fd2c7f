"""The plan of a file of tests: read from a plan file, or compiled from a script, beneath the folder of the tests."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import read_plan_bytes
from hintplan.plans.files.plan_source import compile_text, init_texts, read_source
from hintplan.plans.model.plan import Plan
from hintplan.plans.rehearsal.row_files import beneath
from hintplan.plans.rehearsal.suite import Suite
from hintplan.plans.text.text_file import script_text


def plan_of_suite(suite: Suite, modules: Sequence[str]) -> Plan:
    """Return the plan that a suite tests; PlanError or SqlError if it cannot be read or compiled.

    Functions of a script may be in ``modules``, which whoever runs the tests allows.
    """
    folder = os.path.dirname(suite.file)
    if suite.plan is not None:
        return read_source(beneath(suite.plan, folder), check_meaning=True).plan
    assert suite.sql is not None  # a suite has one of the two
    path = beneath(suite.sql, folder)
    init = init_texts([beneath(node, folder) for node in suite.init])
    text = script_text(read_plan_bytes(path), path)
    return compile_text(text, path, suite.config, modules, init).plan


def tested_file(suite: Suite) -> str:
    """Return the path of the plan or the script that a suite tests."""
    node = suite.plan or suite.sql
    if node is None:
        raise PlanError("has no plan", file=suite.file)
    return os.path.normpath(os.path.join(os.path.dirname(suite.file), node.text or ""))
