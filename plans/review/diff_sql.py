"""The difference between the scripts of two plans, as lines, in addition to the differences of the plans.

>>> print(sql_difference(("a.sql", "SELECT 1;\\n"), ("b.sql", "SELECT 2;\\n")))
--- a.sql
+++ b.sql
@@ -1 +1 @@
-SELECT 1;
+SELECT 2;
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from hintplan.plans.errors import PlanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import is_script
from hintplan.plans.files.named_script import is_plain_name, named_script
from hintplan.plans.files.plan_source import PlanSource
from hintplan.plans.text.project import sql_dir_for
from hintplan.plans.text.redaction import without_literals
from hintplan.plans.text.text_file import script_text

_MAX_LINES = 20_000
_COMPILE = "give the two scripts instead: hintplan diff old.sql new.sql --sql"


def plan_script(source: PlanSource) -> tuple[str, str]:
    """Return name and text of the script from which a plan was compiled; raise PlanError if it cannot be found.

    The plan names the script, which is at the same revision, next to the plan or in the script folder of the project.
    """
    if is_script(source.name):
        return source.name, script_text(source.data, source.name)
    named = source.plan.source
    if named is None or not is_plain_name(named):
        raise PlanError("the plan names no script", file=source.name, hint=_COMPILE)
    if source.file is None:
        raise PlanError("standard input has no script", file=source.name, hint=_COMPILE)
    if source.name.startswith(git.PREFIX):
        plan_path = git.parse(source.name)
        name = f"{git.PREFIX}{plan_path.revision}:{os.path.join(os.path.dirname(plan_path.path), named)}"
        return name, script_text(git.read(git.parse(name), shown=name), name)
    folders = [Path(source.file).parent, sql_dir_for(Path(source.file))]
    script = next((path for folder in folders if folder and (path := named_script(named, str(folder)))), None)
    if script is None:
        raise PlanError(f"its script '{named}' is not in its directory", file=source.name, hint=_COMPILE)
    return script, script_text(Path(script).read_bytes(), script)


def sql_difference(before: tuple[str, str], after: tuple[str, str]) -> str:
    """Return a unified diff of two scripts, by name and text, with stars for literal passwords; empty if equal."""
    old, new = (without_literals(text).splitlines() for _, text in (before, after))
    for (name, _), side in ((before, old), (after, new)):
        if len(side) > _MAX_LINES:
            raise PlanError(f"has more than {_MAX_LINES:,} lines", file=name, hint="compare it with diff")
    return "\n".join(difflib.unified_diff(old, new, fromfile=before[0], tofile=after[0], lineterm=""))
