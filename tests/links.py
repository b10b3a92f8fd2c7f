"""The package hintplan alone in a folder, as links to the code of a checkout."""

from __future__ import annotations

import runpy
from pathlib import Path

__all__ = ["link_package"]

ROOT = Path(__file__).parent.parent


def link_package(folder: Path, checkout: Path = ROOT) -> Path:
    """Make ``folder/hintplan`` as ``make`` does in an environment; return ``folder``, to be put on a path."""
    runpy.run_path(str(ROOT / ".ci" / "links"))["link"](folder, checkout)
    return folder
