"""The command ``hintplan``: starts the command line, if Python finds hintplan's packages and not others of their names.

A folder ``plans`` with an ``__init__.py`` that stands earlier in the module search path would be imported in its place.
``hintplan`` is the package for programs in Python. The command does without it: it may be started as ``hintplan.py``,
since spark-submit takes only what ends in ``.py``, and is then found in its place.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of the process, and exit."""
    home = Path(__file__).resolve().parent
    for name in ("plans", "planner", "runtime"):
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if origin != home / name / "__init__.py":
            found = f"in {origin.parent}" if origin is not None else "nowhere"
            print(
                f"Python finds hintplan's package '{name}' {found}, not in {home / name}\n"
                "  hint: another package of this name stands earlier in the module search path: take its folder out of "
                "PYTHONPATH, or rename it",
                file=sys.stderr,
            )
            sys.exit(1)
    from plans.cli import main as run

    run()


if __name__ == "__main__":
    main()
