"""What ``pip install hintplan`` does not bring: the extras without which plans are reviewed, but not run.

>>> require("spark")  # nothing to say, where it is installed
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from plans.errors import NotInstalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Packages that pip brings when it is asked for hintplan with an extra, and what needs them."""

    purpose: str
    packages: tuple[str, ...]


EXTRAS = {
    "spark": Extra(purpose="running on Spark", packages=("pyspark", "numpy", "pyarrow")),
    "state": Extra(purpose="reading what is in a checkpoint", packages=("numpy", "pyarrow")),
}


def require(extra: str) -> None:
    """NotInstalled, in one line, unless this Python has the packages of ``extra``."""
    wanted = EXTRAS[extra]
    if lacking := [name for name in wanted.packages if find_spec(name) is None]:
        names = " and ".join(filter(None, [", ".join(lacking[:-1]), lacking[-1]]))
        needed = f"{wanted.purpose} needs {names}, which this Python ({sys.executable}) lacks"
        raise NotInstalled(f"{needed}: pip install 'hintplan[{extra}]'")
