"""Files in git, at a revision or in the index. This module only reads objects, and runs git without a shell.

    git:main:plans/orders.json     git:HEAD~1:./orders.json     git::plans/orders.json (the index)

As in git, a path is relative to the top of the repository, or to the working directory with ``./`` or ``../``.

>>> parse("git:HEAD~1:plans/a.json")
GitPath(revision='HEAD~1', path='plans/a.json')
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hintplan.plans.errors import PlanError
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.jsontext import MAX_BYTES
from hintplan.plans.text.names import nearest

PREFIX = "git:"
_FORM = "write git:<revision>:<path>, such as git:main:plans/orders.json; git::<path> is the index"
_TIMEOUT = 120


@dataclass(frozen=True, slots=True)
class GitPath:
    """A file at a revision; an empty revision is the index."""

    revision: str
    path: str


def parse(text: str) -> GitPath:
    """Parse ``git:<revision>:<path>``; raise PlanError for any other text."""
    revision, colon, path = text.removeprefix(PREFIX).partition(":")
    # Git would take a revision that begins with a dash for an option.
    wrong = not colon or not path or revision.startswith("-") or "\0" in text or path.startswith("/")
    if wrong or revision.strip() != revision:
        raise PlanError(f"'{clean(text)}' names no file in git", hint=_FORM)
    return GitPath(revision, path)


def check_repository(*, shown: str) -> None:
    """Raise PlanError about ``shown`` outside of a repository."""
    code, _, problem = git("rev-parse", "--git-dir")
    if code:
        hint = "run this inside a clone of the repository"
        if "dubious ownership" in problem:
            hint = "git refuses the repository, for its files belong to somebody else: see git's safe.directory"
        raise PlanError("this is no git repository", file=shown, hint=hint)


def check_revision(revision: str, *, shown: str, hint: str | None = None) -> None:
    """Raise PlanError about ``shown`` if the revision does not exist."""
    if not _verified(f"{revision}^{{tree}}"):
        general = "git branch --all lists branches; a shallow clone has few commits: git fetch origin <branch>"
        raise PlanError(f"there is no revision '{revision}'", file=shown, hint=hint or general)


def read(where: GitPath, *, shown: str) -> bytes:
    """Return the bytes of the file; raise PlanError about ``shown`` without repository, revision or file."""
    check_repository(shown=shown)
    if where.revision:
        check_revision(where.revision, shown=shown)
    object_id = _verified(f"{where.revision}:{where.path}")
    if not object_id or git("cat-file", "-t", object_id)[1].strip() != "blob":
        place = f"revision '{where.revision}'" if where.revision else "the index"
        raise PlanError(f"{place} has no file '{where.path}'", file=shown, hint=_near(where))
    size = int(git("cat-file", "-s", object_id)[1] or 0)
    if size > MAX_BYTES:
        raise PlanError(f"the file has {size:,} bytes, more than {MAX_BYTES // 2**20} MiB", file=shown)
    code, data, problem = _run("cat-file", "blob", object_id)
    if code:
        raise PlanError(f"cannot be read: {clean(problem.strip())}", file=shown)
    return data


def size(where: GitPath) -> int:
    """Return the size of the file in bytes, or 0 if it does not exist."""
    object_id = _verified(f"{where.revision}:{where.path}")
    return int(git("cat-file", "-s", object_id)[1] or 0) if object_id else 0


def exists(where: GitPath) -> bool:
    """Return True if the file exists."""
    return bool(_verified(f"{where.revision}:{where.path}"))


def git(*arguments: str) -> tuple[int, str, str]:
    """Run git, and return its exit code, output and errors; raise PlanError if git is not installed."""
    code, data, problem = _run(*arguments)
    return code, data.decode(errors="replace"), problem


def _verified(name: str) -> str:
    code, object_id, _ = git("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    return object_id.strip() if code == 0 else ""


def _near(where: GitPath) -> str:
    listed = ("ls-tree", "-r", "--name-only", "-z", "--full-tree", "--end-of-options", where.revision)
    code, names, _ = git(*listed) if where.revision else git("ls-files", "-z", "--full-name", ":/")
    similar = nearest(where.path, names.split("\0")) if code == 0 else None
    if similar:
        return f"did you mean '{clean(similar)}'?"
    return "the path counts from the top of the repository, or from here if it begins with ./"


def _run(*arguments: str) -> tuple[int, bytes, str]:
    import subprocess  # most plans come from files

    # Git must not prompt, fetch, or run programs that the repository configures.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager", *arguments]
    try:
        completed = subprocess.run(
            command,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise PlanError("git is not installed", hint="install git, or give plan files") from None
    except subprocess.TimeoutExpired:
        raise PlanError(f"git {arguments[0]} took more than {_TIMEOUT} s") from None
    return completed.returncode, completed.stdout, completed.stderr.decode(errors="replace")
