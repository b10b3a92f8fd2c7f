"""The configuration by which git diffs and merges plans by meaning: a driver, and file patterns that use it.

The patterns are in ``.gitattributes``, which is committed. The commands of the driver are in git's config, which each
clone has for itself. A second setup changes nothing. This module knows no plans.

>>> attributes_with("*.txt text\\n", ["plans/*.json"])
'*.txt text\\nplans/*.json diff=hintplan merge=hintplan\\n'
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.files.git import git
from hintplan.plans.frozen import frozen

_USE = "diff=hintplan merge=hintplan"
_FALLBACK = (
    'echo "hintplan did not run ($c: exit $s): git merges the lines of" %P >&2; '
    '{ echo "<<<<<<< hintplan did not run, so git has merged lines:"; '
    'echo "======= check them with: hintplan validate"; '
    'echo ">>>>>>> and take away these three lines"; '
    "git merge-file -p --marker-size=%L -L ours -L base -L theirs %A %O %B; } > %A.merged; "
    "mv %A.merged %A; exit 1"
)
"""The fallback of the driver if hintplan cannot run: the file must not look as if one side's version were the merge."""


@frozen
class Setup:
    """The changes to make: differing settings of git, with their old values, and the text of the attributes file."""

    scope: str
    settings: tuple[tuple[str, str, str | None], ...]
    attributes: Path
    text: str
    changed: bool


def planned(patterns: Sequence[str], *, everywhere: bool) -> Setup:
    """Plan the setup of the current repository, or of all repositories of the user if ``everywhere``."""
    scope = "--global" if everywhere else "--local"
    top = _git("rev-parse", "--show-toplevel")
    if not everywhere and top is None:
        raise PlanError("this is no git repository", hint="run it inside one, or use --global")
    settings = []
    for key, value in _wanted().items():
        old = _git("config", scope, "--get", key)
        if old != value:
            settings.append((key, value, old))
    attributes = _global_attributes() if everywhere else Path(top or ".") / ".gitattributes"
    before = attributes.read_bytes().decode() if attributes.exists() else ""
    after = attributes_with(before, patterns)
    return Setup(scope=scope, settings=tuple(settings), attributes=attributes, text=after, changed=after != before)


def apply_setup(setup: Setup) -> None:
    """Apply a setup; raise PlanError if git or the file system refuses."""
    for key, value, _ in setup.settings:
        if _git("config", setup.scope, key, value) is None:
            raise PlanError(f"git config {setup.scope} {key} failed")
    if setup.changed:
        try:
            setup.attributes.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlanError(f"cannot be written: {error.strerror}", file=str(setup.attributes)) from error
        write_plan_bytes(setup.text.encode(), setup.attributes)


def attributes_with(text: str, patterns: Sequence[str]) -> str:
    """Add a line for each pattern to the text; a line that uses a pattern differently stays above it."""
    lines = text.splitlines()
    wanted = [f"{pattern} {_USE}" for pattern in patterns]
    missing = [line for line in wanted if line not in lines]
    if not missing:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    start = text if not text or text.endswith("\n") else text + end
    return start + "".join(line + end for line in missing)


def _wanted() -> dict[str, str]:
    start = _started()
    return {
        "diff.hintplan.textconv": f'p() {{ {start}; "$c" flat --lenient "$1" || cat "$1"; }}; p',
        "diff.hintplan.cachetextconv": "false",
        "merge.hintplan.name": "merge of hintplan plans by meaning",
        "merge.hintplan.driver": (
            f'{start}; "$c" merge --git --path %P --marker-size %L %O %A %B; s=$?; [ $s -le 1 ] && exit $s; {_FALLBACK}'
        ),
        # A virtual base must be a plan: a base with conflict markers could not be merged.
        "merge.hintplan.recursive": "binary",
    }


def _started() -> str:
    """Return shell code that sets ``c`` to the running command, or if that is gone, to the command on the path."""
    installed = Path(sys.executable).parent / "hintplan"
    command = str(installed) if installed.is_file() else shutil.which("hintplan") or str(installed)
    return f'c={shlex.quote(command)}; [ -x "$c" ] || c=hintplan'


def _global_attributes() -> Path:
    configured = _git("config", "--global", "--type=path", "--get", "core.attributesFile")
    return Path(configured) if configured else Path.home() / ".config" / "git" / "attributes"


def _git(*arguments: str) -> str | None:
    """Return the output of git without its last line end; None if git fails."""
    code, output, _ = git(*arguments)
    return output.rstrip("\n") if code == 0 else None
