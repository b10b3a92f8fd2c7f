"""Modules that lie beside a plan, as whoever sends a change can add them: whoever imports one runs it."""

from __future__ import annotations

import sys
from pathlib import Path

_OTHERS = ("hintplan", "plans", "planner", "runtime", "pyspark", "py4j", "pyarrow", "numpy", "pandas", "sitecustomize")
NAMES = tuple(sorted({*sys.stdlib_module_names, *_OTHERS}))
"""Each module of Python, and what a run imports besides."""


def lay_out(directory: Path) -> Path:
    """Put a module of each name into ``directory``; those that are imported write theirs into the file returned."""
    told = directory / "imported"
    for name in NAMES:
        text = (
            f"with open({str(told)!r}, 'a') as file:\n    file.write({name!r} + chr(10))\nraise SystemExit({name!r})\n"
        )
        (directory / f"{name}.py").write_text(text, encoding="utf-8")
    return told
