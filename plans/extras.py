"""What ``pip install hintplan`` does not bring: the extras without which plans are reviewed, but not run.

>>> require("spark")  # nothing to say, where it is installed
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
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


def _asked_for(extra: str, lacking: list[str]) -> str:
    """What pip is to install; in a bundle hintplan is there, and was not installed."""
    return " ".join(lacking) if IN_BUNDLE else f"'hintplan[{extra}]'"


def _is_there(package: str) -> bool:
    try:
        return find_spec(package.replace("-", ".")) is not None
    except ModuleNotFoundError:  # what it is in is missing
        return False
