"""Distributions that pip has installed here, as files of an archive: hintplan's dependencies and connector drivers.

Compiled files are for one platform, and Python cannot load them from an archive. Of the packed distributions, only
jsonschema-rs is compiled, and the program of a bundle unpacks it. For another platform, pip fetches its wheel.

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
"""Platforms of clusters, with Python's names, and the platform tags of their wheels."""

_HINTPLAN = "hintplan"
_AT_A_PROMPT = {"prompt_toolkit"}
"""Distributions that only the SQL prompt needs."""
_COMPILED = (".so", ".pyd", ".dylib")
_OF_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def requirement_name(requirement: str) -> str:
    """Return the name of the distribution in a requirement such as ``redis>=5,<9``."""
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    return match[0]


def needed_by_runs(platform: str) -> dict[str, bytes]:
    """Return the files, for ``platform``, of all installed distributions that ``hintplan run`` needs."""
    wanted = [name for line in _requires(_HINTPLAN) if (name := requirement_name(line)) not in _AT_A_PROMPT]
    files: dict[str, bytes] = {}
    for needed in _with_dependencies(wanted):
        if _is_compiled(needed) and platform != sysconfig.get_platform():
            files.update(_fetched(needed.name, needed.version, platform))
        else:
            files.update(_files(needed))
    return files


def driver_files(extra: str) -> dict[str, bytes] | None:
    """Return the files that ``hintplan[extra]`` adds; None if some are compiled, or not installed here."""
    asked = extra_requirements(extra)
    if any("[" in line for line in asked):  # their extras are compiled
        return None
    try:
        distributions = list(_with_dependencies(map(requirement_name, asked)))
    except PackageNotFoundError:
        return None
    if any(map(_is_compiled, distributions)):
        return None
    return {path: data for driver in distributions for path, data in _files(driver).items()}


def extra_requirements(extra: str) -> tuple[str, ...]:
    """Return the requirements of ``hintplan[extra]``, in pip's syntax."""
    lines = (line.partition(";") for line in _installed(_HINTPLAN).requires or ())
    return tuple(
        requirement.strip() for requirement, _, marker in lines if re.search(rf"""extra == ["']{extra}["']""", marker)
    )


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        if name != _HINTPLAN:
            raise
        raise RunError("hintplan is not installed in this Python, so its dependencies are unknown") from error


def _requires(name: str) -> Iterator[str]:
    """Yield the installed requirements of distribution ``name``, without its extras."""
    for line in _installed(name).requires or ():
        requirement, _, marker = line.partition(";")
        if "extra" not in marker:
            try:
                distribution(requirement_name(requirement))
            except PackageNotFoundError:
                if not marker:
                    raise
                continue  # the requirement is for another Python or another system
            yield requirement


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
    """Return the files of a distribution, with its licence, but without pip's records and Python's compiled files."""
    if one.files is None:
        raise RunError(f"the distribution {one.name} does not list its files", hint="install it with pip")
    return {
        path.as_posix(): path.read_binary()
        for path in one.files
        if ".." not in path.parts and "__pycache__" not in path.parts and path.name not in _OF_PIP
    }


def _fetched(name: str, version: str, platform: str) -> dict[str, bytes]:
    """Return the files of the wheel of ``name`` for another platform, which pip fetches."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--no-deps", "--python-version", "3.11", "--dest", directory]
        command += [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
        done = subprocess.run([*command, f"{name}=={version}"], capture_output=True, text=True, check=False)
        wheels = list(Path(directory).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["pip prints nothing"])[-1]
            raise RunError(
                f"the wheel of {name} {version} for {platform} cannot be fetched: {reason}",
                hint=f"make the bundle on a machine of {platform}",
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = (entry for entry in wheel.namelist() if not entry.endswith("/RECORD"))
            return {entry: wheel.read(entry) for entry in names}
