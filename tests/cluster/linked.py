"""Virtual environments made of hard links to what this Python has installed: in seconds, and without a download.

    python -m tests.cluster.linked .spark4.0    # all that is installed here; pip may then put others in its place

pip never writes into a file that is there, so one environment does not see what pip does to another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["bare", "closure", "link", "packages_of", "unlink"]


def closure(requirements: Sequence[str]) -> dict[str, Distribution] | None:
    """Give what ``requirements`` ask for, and what that asks for, by name; None if this Python lacks part of it."""
    found: dict[str, Distribution] = {}
    asked: set[str] = set()
    open_ = [Requirement(line) for line in requirements]
    while open_:
        requirement = open_.pop()
        if str(requirement) in asked or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        asked.add(str(requirement))
        try:
            there = distribution(requirement.name)
        except PackageNotFoundError:
            return None
        if not requirement.specifier.contains(there.version, prereleases=True):
            return None
        found[there.metadata["Name"]] = there
        open_ += _required_by(there, requirement.extras)
    return found


def packages_of(made: Path) -> Iterator[Distribution]:
    """Give what the environment ``made`` has."""
    yield from distributions(path=list(map(str, made.glob("lib/python3*/site-packages"))))


def bare(made: Path) -> None:
    """Make an environment of this Python's version with nothing in it, not even pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True, capture_output=True)


def link(made: Path, packages: Iterable[Distribution]) -> None:
    """Put ``packages`` into the environment ``made``."""
    (site,) = made.glob("lib/python3*/site-packages")
    for package in packages:
        for file in package.files or ():
            source = Path(str(package.locate_file(file))).resolve()
            if not source.is_file():
                continue
            target = Path(os.path.normpath(site / file))
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.parent == made / "bin":
                _script(source, target, made)
            else:
                _linked(source, target)


def unlink(packages: Iterable[Distribution]) -> None:
    """Take ``packages`` out of their environment."""
    for package in packages:
        for file in package.files or ():
            Path(str(package.locate_file(file))).unlink(missing_ok=True)


def _required_by(package: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """Give what ``package`` asks for here, if it was asked for with ``extras``; without the markers."""
    found = [Requirement(line) for line in package.requires or ()]
    needed = [
        each
        for each in found
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]
    for each in needed:
        each.marker = None
    return needed


def _linked(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


def _script(source: Path, target: Path, made: Path) -> None:
    """Copy a command, which begins with the path of its Python."""
    first, newline, rest = source.read_bytes().partition(b"\n")
    if first.startswith(b"#!") and Path(os.fsdecode(first)).name.startswith("python"):
        first = b"#!" + str(made / "bin" / "python").encode()
    target.unlink(missing_ok=True)
    target.write_bytes(first + newline + rest)
    shutil.copymode(source, target)


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    shutil.rmtree(place, ignore_errors=True)
    bare(place)
    link(place, packages_of(Path(sys.prefix)))
