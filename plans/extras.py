"""What ``pip install hintplan`` does not bring: the extras without which plans are reviewed, but not run.

>>> require("spark")  # nothing to say, where it is installed
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from hintplan.plans.errors import NotInstalled

IN_BUNDLE = Path(__file__).parents[2].joinpath("__main__.py").is_file()
"""Whether this code has come in the archive of a bundle, whose program has unpacked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Packages that pip brings when it is asked for hintplan with an extra, and what needs them.

    A package has a module of its name, in which a dot stands for each hyphen.
    """

    purpose: str
    packages: tuple[str, ...]


EXTRAS = {
    "spark": Extra(purpose="running on Spark", packages=("pyspark", "numpy", "pyarrow")),
    "metrics": Extra(
        purpose="giving metrics to others",
        packages=("prometheus_client", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    ),
    "state": Extra(purpose="reading what is in a checkpoint", packages=("numpy", "pyarrow")),
}


def require(extra: str) -> None:
    """NotInstalled, in one line, unless this Python has the packages of ``extra``."""
    wanted = EXTRAS[extra]
    if lacking := [name for name in wanted.packages if not _is_there(name)]:
        names = " and ".join(filter(None, [", ".join(lacking[:-1]), lacking[-1]]))
        needed = f"{wanted.purpose} needs {names}, which this Python ({sys.executable}) lacks"
        raise NotInstalled(f"{needed}: pip install {_asked_for(extra, lacking)}")


def refuse_lacking(extras: Iterable[str]) -> None:
    """NotInstalled, in one line, unless this Python has all that ``extras`` bring, as far as it knows what that is.

    Where hintplan itself was not installed by pip, as in a bundle, nobody knows.
    """
    try:
        lines = distribution("hintplan").requires or ()
    except PackageNotFoundError:
        return
    for extra in extras:
        asked = [what for what, _, marker in (line.partition(";") for line in lines) if f'"{extra}"' in marker]
        names = [found[0] for what in asked if (found := re.match(r"[\w.-]+", what))]
        if lacking := [name for name in names if not _is_installed(name)]:
            raise NotInstalled(
                f"tables of the plan need {' and '.join(lacking)}, which this Python ({sys.executable}) lacks: "
                f"pip install 'hintplan[{extra}]'"
            )


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _asked_for(extra: str, lacking: list[str]) -> str:
    """What pip is to install; in a bundle hintplan is there, and was not installed."""
    return " ".join(lacking) if IN_BUNDLE else f"'hintplan[{extra}]'"


def _is_there(package: str) -> bool:
    try:
        return find_spec(package.replace("-", ".")) is not None
    except ModuleNotFoundError:  # what it is in is missing
        return False
