"""Symbolic links: in files that others may have written, such as a pull request, links must not lead elsewhere.

For a dangling link, the file system reports that the file does not exist, or that it exists already, so messages name
the link.

>>> refuse_leading_out("plan.json")
"""

from __future__ import annotations

import os
from pathlib import Path

from hintplan.plans.errors import PlanError


def refuse_symlinks(target: Path) -> None:
    """Raise PlanError if the file to write is a link, or if it is relative and below a link that leads out of here."""
    if target.is_symlink():
        hint = "name the file that it leads to"
        raise PlanError("is a symbolic link, and links are not followed", file=os.fspath(target), hint=hint)
    refuse_leading_out(target.parent / "x", shown=target)


def refuse_leading_out(path: str | os.PathLike[str], *, shown: str | os.PathLike[str] | None = None) -> None:
    """Raise PlanError if a link leads out of this folder, for a relative path, or else out of the file's folder.

    Links inside a folder are followed, such as the links in a mounted ConfigMap of Kubernetes.
    """
    name = Path(path)
    if name.parts[:2] == ("/", "dev"):
        return  # standard input, or the file of a shell's <(command)
    is_below_here = not name.is_absolute() and ".." not in name.parts
    home = os.path.realpath("." if is_below_here else name.parent)
    target = os.path.realpath(name)
    if not target.startswith(home.rstrip("/") + "/") and target != home:
        message = "is a symbolic link, or below one, that leads out of this folder"
        raise PlanError(message, file=os.fspath(shown or path), hint=f"name the file itself: {target}")


def is_inside(path: str, directory: str) -> bool:
    """Return True if ``path`` is ``directory`` or in it, after resolving symbolic links."""
    resolved, above = os.path.realpath(path), os.path.realpath(directory)
    return resolved == above or resolved.startswith(above.rstrip("/") + "/")


def link_to_nowhere(path: str | os.PathLike[str]) -> str | None:
    """Return a sentence about the first dangling link in ``path``; None if there is none."""
    for place in reversed([Path(path), *Path(path).parents]):
        if os.path.islink(place) and not os.path.exists(place):
            target = os.path.normpath(os.path.join(place.parent, os.readlink(place)))
            return f"{os.fspath(place)} is a symbolic link to {target}, where there is nothing"
    return None


def reason(error: OSError, path: str | os.PathLike[str]) -> str:
    """Return the reason why the file system refused an operation on ``path``."""
    return link_to_nowhere(path) or error.strerror or str(error)
