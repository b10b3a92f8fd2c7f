"""The extras of hintplan: optional packages that it needs to run plans, but not to review them.

>>> require("spark")  # passes, because pyspark is installed
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from hintplan.plans.errors import NotInstalled
from hintplan.plans.frozen import frozen

IN_BUNDLE = Path(__file__).parents[2].joinpath("__main__.py").is_file()
"""True if this code was unpacked from the archive of a bundle."""


@frozen
class Extra:
    """The packages that pip installs for an extra of hintplan, and the ``purpose`` that needs them.

    The module of a package has the name of the package, with a dot in place of each hyphen, unless ``_MODULES`` has it.
    """

    purpose: str
    packages: tuple[str, ...]


EXTRAS = {
    "spark": Extra(purpose="running on Spark", packages=("pyspark", "numpy", "pyarrow")),
    "metrics": Extra(
        purpose="giving metrics to others",
        packages=("prometheus_client", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    ),
    "test": Extra(purpose="testing plans", packages=("pyspark", "numpy", "pyarrow", "pyyaml")),
    "state": Extra(purpose="reading a checkpoint", packages=("numpy", "pyarrow")),
}


_MODULES = {"pyyaml": "yaml"}


def require(extra: str) -> None:
    """Raise NotInstalled unless this Python has the packages of ``extra``."""
    wanted = EXTRAS[extra]
    if lacking := [name for name in wanted.packages if not _is_there(name)]:
        names = " and ".join(filter(None, [", ".join(lacking[:-1]), lacking[-1]]))
        needed = f"{wanted.purpose} needs {names}, which this Python ({sys.executable}) lacks"
        raise NotInstalled(f"{needed}: pip install {_asked_for(extra, lacking)}")


def refuse_lacking(extras: Iterable[str]) -> None:
    """Raise NotInstalled unless this Python has all packages of ``extras``.

    The packages are listed in the metadata of the installed hintplan. If pip did not install it, as in a bundle,
    nothing is checked.
    """
    try:
        lines = distribution("hintplan").requires or ()
    except PackageNotFoundError:
        return
    for extra in extras:
        requirements = [
            requirement for requirement, _, marker in (line.partition(";") for line in lines) if f'"{extra}"' in marker
        ]
        names = [match[0] for requirement in requirements if (match := re.match(r"[\w.-]+", requirement))]
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
    """Return the packages for pip to install; a bundle contains hintplan itself, so it lists the missing packages."""
    return " ".join(lacking) if IN_BUNDLE else f"'hintplan[{extra}]'"


def _is_there(package: str) -> bool:
    try:
        return find_spec(_MODULES.get(package, package.replace("-", "."))) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False
