"""Symbolic links: in what others may have written, such as a pull request, they must not lead anywhere else.

One that leads nowhere is named, for the file system says of it that there is no such file, or that there is one.

>>> refuse_leading_out("plan.json")
"""

from __future__ import annotations

import os
from pathlib import Path

from hintplan.plans.errors import PlanError


def refuse_links(target: Path) -> None:
    """PlanError for a file to write that is a link, and for a relative one below a link that leads out of here."""
    if target.is_symlink():
        hint = "name the file that it leads to"
        raise PlanError("is a symbolic link, which is not followed", file=os.fspath(target), hint=hint)
    refuse_leading_out(target.parent / "x", shown=target)


def refuse_leading_out(path: str | os.PathLike[str], *, shown: str | os.PathLike[str] | None = None) -> None:
    """PlanError for a file that a link takes elsewhere: out of this folder if it is relative, else out of its own.

    Links inside a folder are followed, such as those of a mounted ConfigMap of Kubernetes.
    """
    name = Path(path)
    if name.parts[:2] == ("/", "dev"):
        return  # standard input, or what a shell puts in the place of <(command)
    is_below_here = not name.is_absolute() and ".." not in name.parts
    home = os.path.realpath("." if is_below_here else name.parent)
    found = os.path.realpath(name)
    if not found.startswith(home.rstrip("/") + "/") and found != home:
        what = "is a symbolic link, or below one, that leads out of this folder"
        raise PlanError(what, file=os.fspath(shown or path), hint=f"name the file itself: {found}")


def is_below(path: str, directory: str) -> bool:
    """Whether ``path`` is ``directory`` or in it, wherever symbolic links lead."""
    there, above = os.path.realpath(path), os.path.realpath(directory)
    return there == above or there.startswith(above.rstrip("/") + "/")


def link_to_nowhere(path: str | os.PathLike[str]) -> str | None:
    """Return a sentence about the first link in ``path`` that leads nowhere; None if there is none."""
    for place in reversed([Path(path), *Path(path).parents]):
        if os.path.islink(place) and not os.path.exists(place):
            target = os.path.normpath(os.path.join(place.parent, os.readlink(place)))
            return f"{os.fspath(place)} is a symbolic link to {target}, where there is nothing"
    return None


def reason(error: OSError, path: str | os.PathLike[str]) -> str:
    """Return why the file system refused something at ``path``."""
    return link_to_nowhere(path) or error.strerror or str(error)
