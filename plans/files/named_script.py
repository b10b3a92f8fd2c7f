"""The script that a plan names: a file beside it, or in the folder that whoever reads it says.

The name comes from the plan, which may come from a pull request: it must not lead to another folder, and neither must a
symbolic link.

>>> named_script("../secrets.sql", "plans") is None
True
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from hintplan.plans.errors import PlanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import is_script
from hintplan.plans.files.plan_source import at_revision


def is_plain_name(source: str) -> bool:
    """Whether ``source`` is the name of a script, without a folder."""
    return os.path.basename(source) == source and is_script(source)


def named_script(source: str | None, folder: str) -> str | None:
    """The path of the script ``source`` in ``folder``; None if it is not there. PlanError if it is no plain file."""
    if source is None or not is_plain_name(source):
        return None
    path = os.path.join(folder, source)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
        raise PlanError(f"the script of a plan must be a regular file, and this is {what}", file=path)
    return path


def init_of(script: str, recorded: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """The init files of a plan's ``script``: those that are ``given``, else the ``recorded`` ones, beside the script.

    PlanError if one is not there. ``script`` may be a file in git.
    """
    if given:
        return at_revision(given, script)
    found = []
    for name in recorded:
        if script.startswith(git.PREFIX):
            where = git.parse(script)
            folder = os.path.dirname(where.path)
            there = git.GitPath(where.revision, f"{folder}/{name}" if folder else name)
            path = f"{git.PREFIX}{there.revision}:{there.path}" if is_plain_name(name) and git.exists(there) else None
        else:
            path = named_script(name, os.path.dirname(script))
        if path is None:
            message = f"its init file '{name}' is not beside it"
            raise PlanError(message, file=script, hint="name all of them, in their order: --init FILE")
        found.append(path)
    return tuple(found)
