"""hintplan as its users have it: the wheel in an environment of its own, and workers that have nothing of it.

    found = installed()
    subprocess.run([found.hintplan, "run", ...], env=environment(), cwd=elsewhere)

Environments are made by the first who asks and kept in ``.integration`` of the checkout, under names that say what is
in them: links to packages of this Python where it has what is asked for (see linked.py), and otherwise what pip
downloads. A wheel is built when the code has changed since. Processes of one checkout take turns.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.cluster.linked import bare, closure, link, packages_of, unlink
from tests.spark.quick import quick_environment

__all__ = [
    "NEEDED_BY_SERVERS",
    "NEEDED_BY_WORKERS",
    "Installed",
    "environment",
    "installed",
    "installed_for_reviews",
    "python_of",
    "python_with",
]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".integration"
CODE = ("planner", "plans", "runtime")

NEEDED_BY_WORKERS = ("numpy", "pyarrow")
"""What Python workers need beside the pyspark that comes with Spark; docs/deployment/index.md says so."""

NEEDED_BY_SERVERS = (
    *NEEDED_BY_WORKERS,
    "googleapis-common-protos",
    "grpcio",
    "grpcio-status",
    "pandas",
    "zstandard",
)
"""What a Spark Connect server's Python needs, which runs the workers of the driver's side too."""

_HIDDEN = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_REMOTE", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """``hintplan`` and its ``python``; ``worker`` is the Python of bare workers, ``server`` that of Connect servers."""

    hintplan: Path
    python: Path
    worker: Path
    server: Path

    @property
    def spark_home(self) -> Path:
        """Spark, as it comes with the pyspark that was installed with the wheel."""
        (found,) = self.python.parents[1].glob("lib/python3*/site-packages/pyspark")
        return found


def environment(**more: str) -> dict[str, str]:
    """The environment of a user who has done nothing but installed hintplan, and ``more``."""
    kept = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    return {**kept, **quick_environment(), "SPARK_LOCAL_IP": "127.0.0.1", "NO_COLOR": "1", **more}


@cache
def installed(*extras: str) -> Installed:
    """The wheel of the code as it is now, installed with all it needs, also for Spark Connect, on the Spark of here.

    The driver has ``extras`` besides.
    """
    spark = f"pyspark=={version('pyspark')}"
    with _alone():
        driver = _with_wheel("driver", [*_requirements("connect", "metrics", *extras), spark])
    return Installed(
        hintplan=driver / "bin" / "hintplan",
        python=driver / "bin" / "python",
        worker=python_with(NEEDED_BY_WORKERS),
        server=python_with(NEEDED_BY_SERVERS),
    )


@cache
def installed_for_reviews() -> Path:
    """The folder of an environment with the wheel and what ``pip install hintplan`` brings with it, no more."""
    with _alone():
        return _with_wheel("review", _requirements())


def _with_wheel(name: str, requirements: Sequence[str]) -> Path:
    """An environment for all wheels with the same requirements: only the wheel itself is installed anew."""
    made = _environment(name, requirements)
    digest = _digest()
    if _read(made / "wheel") != digest:
        (made / "wheel").unlink(missing_ok=True)
        unlink([package for package in packages_of(made) if package.metadata["Name"] == "hintplan"])
        link(made, packages_of(_with_wheel_alone(digest)))
        _pip(made, "check")
        (made / "wheel").write_text(digest, encoding="utf-8")
    return made


def _with_wheel_alone(digest: str) -> Path:
    """An environment into which pip has installed the wheel, and nothing else: the others have links to it."""
    made = KEPT / "wheel"
    if _read(made / "ready") != digest:
        shutil.rmtree(made, ignore_errors=True)
        bare(made)
        with tempfile.TemporaryDirectory() as directory:
            _pip(made, "install", "--no-deps", str(_wheel(Path(directory))))
        (made / "ready").write_text(digest, encoding="utf-8")
    return made


def python_with(names: Sequence[str], *extras: str) -> Path:
    """A Python with the distributions called ``names``, in versions that hintplan takes, and what these need.

    It also has what hintplan's ``extras`` bring, which are of one library each.
    """
    versions = {line.rstrip("0123456789.,<>=*"): line for line in _requirements("connect")}
    own = [line for extra in extras for line in _requirements(extra) if line not in _requirements()]
    with _alone():
        return _environment("workers", sorted([*(versions.get(name, name) for name in names), *own])) / "bin" / "python"


def python_of(name: str, *requirements: str) -> Path:
    """The Python of an environment called ``name`` that has ``requirements``, and nothing of hintplan."""
    with _alone():
        return _environment(name, requirements) / "bin" / "python"


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _requirements(*extras: str) -> list[str]:
    """What hintplan asks for, as installed with ``extras``."""
    project = _project()["project"]
    found = list(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"hintplan\[(\w+)\]", line)
            found += [more for more in _requirements(own[1]) if more not in found] if own else [line]
    return found


class _alone:
    """Holds the lock of the kept environments."""

    def __enter__(self) -> None:
        KEPT.mkdir(exist_ok=True)
        self._file = (KEPT / "lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _environment(name: str, requirements: Sequence[str]) -> Path:
    """A virtual environment with ``requirements``; one that was not finished is made anew."""
    packages = closure(requirements)
    found = requirements if packages is None else sorted(f"{key}=={one.version}" for key, one in packages.items())
    key = hashlib.sha256("\n".join([sys.version, sys.prefix, *requirements, *found]).encode()).hexdigest()[:12]
    made = KEPT / f"{name}-{key}"
    if not (made / "ready").exists():
        shutil.rmtree(made, ignore_errors=True)
        bare(made)
        if packages is None:
            _pip(made, "install", *requirements)
        else:
            link(made, packages.values())
        (made / "ready").touch()
    return made


def _wheel(directory: Path) -> Path:
    """A wheel of the code, built from a copy: a checkout may have files from builds before."""
    source = directory / "source"
    for name in CODE:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    builder = _environment("builder", [*_project()["build-system"]["requires"], "pip"])
    arguments = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(source))
    _run(builder / "bin" / "python", "-m", "pip", "wheel", *arguments)
    (wheel,) = directory.glob("*.whl")
    return wheel


def _digest() -> str:
    below = (path for name in CODE for path in sorted((ROOT / name).rglob("*")))
    files = [ROOT / "pyproject.toml", *below]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(ROOT)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _pip(where: Path, command: str, *arguments: str) -> None:
    """Let the pip of this Python do something to another environment."""
    python = where / "bin" / "python"
    own = ("--python", str(python), "--quiet", "--disable-pip-version-check")
    _run(sys.executable, "-m", "pip", *own, command, *arguments)


def _run(*command: str | Path) -> None:
    # pip must not look at what is installed beside the checkout.
    done = subprocess.run(command, env=environment(), cwd=KEPT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
