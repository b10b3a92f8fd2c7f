"""The script that a plan names: a file next to the plan, or in a folder that the reader chooses.

The plan, and so the name, may come from a pull request. Neither the name nor a link may lead to another folder.

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
    """Return True if ``source`` is the name of a script without a folder."""
    return os.path.basename(source) == source and is_script(source)


def named_script(source: str | None, folder: str) -> str | None:
    """Return the path of script ``source`` in ``folder``, or None if it is missing.

    Raise PlanError if it is no regular file.
    """
    if source is None or not is_plain_name(source):
        return None
    path = os.path.join(folder, source)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
        raise PlanError(f"the script of a plan must be a regular file, and this is {kind}", file=path)
    return path


def init_of(script: str, recorded: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the init files of ``script``: the ``given`` ones, or else the ``recorded`` ones next to the script.

    Raise PlanError if one is missing. ``script`` may be a file in git.
    """
    if given:
        return at_revision(given, script)
    paths = []
    for name in recorded:
        if script.startswith(git.PREFIX):
            script_path = git.parse(script)
            folder = os.path.dirname(script_path.path)
            init_path = git.GitPath(script_path.revision, f"{folder}/{name}" if folder else name)
            path = (
                f"{git.PREFIX}{init_path.revision}:{init_path.path}"
                if is_plain_name(name) and git.exists(init_path)
                else None
            )
        else:
            path = named_script(name, os.path.dirname(script))
        if path is None:
            message = f"its init file '{name}' is not in its directory"
            raise PlanError(message, file=script, hint="name all of them, in their order: --init FILE")
        paths.append(path)
    return tuple(paths)
