"""What git must be told so that it diffs and merges plans by meaning: a driver in its config, and patterns that use it.

The patterns stand in ``.gitattributes`` and are committed; the commands stand in git's config, which each clone has for
itself. Setting up twice changes nothing. Knows no plans.

>>> attributes_with("*.txt text\\n", ["plans/*.json"])
'*.txt text\\nplans/*.json diff=hintplan merge=hintplan\\n'
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.files.git import git

_USE = "diff=hintplan merge=hintplan"
_FALLBACK = (
    'echo "hintplan did not run ($c: exit $s): git merges the lines of" %P >&2; '
    '{ echo "<<<<<<< hintplan did not run, so git has merged lines:"; '
    'echo "======= check them with: hintplan validate"; '
    'echo ">>>>>>> and take away these three lines"; '
    "git merge-file -p --marker-size=%L -L ours -L base -L theirs %A %O %B; } > %A.merged; "
    "mv %A.merged %A; exit 1"
)
"""What the driver does where hintplan does not run: no side's version may stand there as if it were the merged one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What there is to do: settings of git that differ, with the old value, and the text of the file of attributes."""

    scope: str
    settings: tuple[tuple[str, str, str | None], ...]
    attributes: Path
    text: str
    changed: bool


def planned(patterns: Sequence[str], *, everywhere: bool) -> Setup:
    """The setup of the repository around the working directory, or, if ``everywhere``, of all of the user's."""
    scope = "--global" if everywhere else "--local"
    top = _git("rev-parse", "--show-toplevel")
    if not everywhere and top is None:
        raise PlanError("this is no git repository", hint="run it inside one, or use --global")
    found = []
    for key, value in _wanted().items():
        old = _git("config", scope, "--get", key)
        if old != value:
            found.append((key, value, old))
    attributes = _global_attributes() if everywhere else Path(top or ".") / ".gitattributes"
    before = attributes.read_bytes().decode() if attributes.exists() else ""
    after = attributes_with(before, patterns)
    return Setup(scope=scope, settings=tuple(found), attributes=attributes, text=after, changed=after != before)


def apply_setup(setup: Setup) -> None:
    """Do what is planned; PlanError if git or the file system refuses."""
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
    """The attributes' text with a line for each pattern; a line that uses the pattern otherwise is left above it."""
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
        # A virtual base must be a plan; with markers in it, nothing could be merged against it.
        "merge.hintplan.recursive": "binary",
    }


def _started() -> str:
    """Shell that sets ``c`` to the command: the one that runs now if it is still there, else what is on the path."""
    beside = Path(sys.executable).parent / "hintplan"
    found = str(beside) if beside.is_file() else shutil.which("hintplan") or str(beside)
    return f'c={shlex.quote(found)}; [ -x "$c" ] || c=hintplan'


def _global_attributes() -> Path:
    configured = _git("config", "--global", "--type=path", "--get", "core.attributesFile")
    return Path(configured) if configured else Path.home() / ".config" / "git" / "attributes"


def _git(*arguments: str) -> str | None:
    """What git says, without the last line end; None if it says no."""
    code, output, _ = git(*arguments)
    return output.rstrip("\n") if code == 0 else None
