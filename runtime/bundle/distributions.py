"""What pip has installed here, as files of an archive: hintplan's own dependencies, and drivers of connectors.

What is compiled is for one platform, and Python cannot load it out of an archive: of what goes along, only
jsonschema-rs is, and the program of a bundle unpacks it. For another platform than this one pip fetches its wheel.

>>> requirement_name("psycopg[binary,pool]>=3.2,<4")
'psycopg'
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from hintplan.plans.errors import RunError

PLATFORMS: Mapping[str, tuple[str, ...]] = {
    f"linux-{machine}": tuple(f"{tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"))
    for machine in ("x86_64", "aarch64")
}
"""Platforms of clusters, as Python calls them, and what their wheels may be called."""

_HINTPLAN = "hintplan"
_AT_A_PROMPT = {"prompt_toolkit"}
"""What only the SQL prompt needs."""
_COMPILED = (".so", ".pyd", ".dylib")
_OF_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def requirement_name(requirement: str) -> str:
    """The distribution that a line such as ``redis>=5,<9`` asks for."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return found[0]


def needed_by_runs(platform: str) -> dict[str, bytes]:
    """The files of all distributions that ``hintplan run`` needs of those it is installed with, for ``platform``."""
    wanted = [name for line in _requires(_HINTPLAN) if (name := requirement_name(line)) not in _AT_A_PROMPT]
    files: dict[str, bytes] = {}
    for one in _with_dependencies(wanted):
        if _is_compiled(one) and platform != sysconfig.get_platform():
            files.update(_fetched(one.name, one.version, platform))
        else:
            files.update(_files(one))
    return files


def driver_files(extra: str) -> dict[str, bytes] | None:
    """The files of what ``hintplan[extra]`` brings; None if some of it is compiled, or not installed here."""
    asked = extra_requirements(extra)
    if any("[" in line for line in asked):  # extras of theirs are what they have compiled
        return None
    try:
        found = list(_with_dependencies(map(requirement_name, asked)))
    except PackageNotFoundError:
        return None
    if any(map(_is_compiled, found)):
        return None
    return {path: data for one in found for path, data in _files(one).items()}


def extra_requirements(extra: str) -> tuple[str, ...]:
    """What ``hintplan[extra]`` asks for, as pip takes it."""
    lines = (line.partition(";") for line in _installed(_HINTPLAN).requires or ())
    return tuple(what.strip() for what, _, marker in lines if re.search(rf"""extra == ["']{extra}["']""", marker))


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        if name != _HINTPLAN:
            raise
        raise RunError("hintplan is not installed in this Python, so what it needs is not known") from error


def _requires(name: str) -> Iterator[str]:
    """What distribution ``name`` asks for without any of its extras, and if it is installed."""
    for line in _installed(name).requires or ():
        what, _, marker = line.partition(";")
        if "extra" not in marker:
            try:
                distribution(requirement_name(what))
            except PackageNotFoundError:
                if not marker:
                    raise
                continue  # it is for another Python or another system
            yield what


def _with_dependencies(names: Iterator[str] | list[str]) -> Iterator[Distribution]:
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in seen:
            seen.add(key)
            yield _installed(name)
            waiting += map(requirement_name, _requires(name))


def _is_compiled(one: Distribution) -> bool:
    return any(path.suffix in _COMPILED for path in one.files or ())


def _files(one: Distribution) -> dict[str, bytes]:
    """The files of a distribution, with its licence and without what pip has noted and Python compiled."""
    if one.files is None:
        raise RunError(f"the distribution {one.name} does not say which files it has", hint="install it with pip")
    return {
        path.as_posix(): path.read_binary()
        for path in one.files
        if ".." not in path.parts and "__pycache__" not in path.parts and path.name not in _OF_PIP
    }


def _fetched(name: str, version: str, platform: str) -> dict[str, bytes]:
    """The files of the wheel of ``name`` for another platform, which pip fetches."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--no-deps", "--python-version", "3.11", "--dest", directory]
        command += [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
        done = subprocess.run([*command, f"{name}=={version}"], capture_output=True, text=True, check=False)
        wheels = list(Path(directory).glob("*.whl"))
        if done.returncode or not wheels:
            said = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
            raise RunError(
                f"the wheel of {name} {version} for {platform} cannot be fetched: {said}",
                hint=f"make the bundle on a machine of {platform}",
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = (entry for entry in wheel.namelist() if not entry.endswith("/RECORD"))
            return {entry: wheel.read(entry) for entry in names}
