"""The command ``hintplan``: starts the command line, if Python finds hintplan's packages and not others of their names.

A folder ``plans`` with an ``__init__.py`` that stands earlier in the module search path would be imported in its place,
and another distribution that has a package of this name would be written over it.
``hintplan`` is the package for programs in Python. The command does without it: it may be started as ``hintplan.py``,
since spark-submit takes only what ends in ``.py``, and is then found in its place.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main", "stranger"]

_HOME = Path(__file__).resolve().parent
_PACKAGES = ("plans", "planner", "runtime")
_APART = "install hintplan in an environment of its own, with pipx install or uv tool install"


def main() -> None:
    """Run the command line with the arguments of the process, and exit."""
    if found := stranger():
        print(found, file=sys.stderr)
        sys.exit(1)
    from hintplan.plans.cli import main as run

    run()


@cache
def stranger() -> str | None:
    """What is to be said of a package that Python finds in the place of one of hintplan's; None if there is none."""
    sizes = _sizes_installed()
    for name in _PACKAGES:
        ours = _HOME / name / "__init__.py"
        found = _file_of(name)
        if found != ours:
            where = "nowhere" if found is None else f"in {found.parent if found.name == '__init__.py' else found}"
            return (
                f"Python finds hintplan's package '{name}' {where}, not in {ours.parent}\n"
                f"  hint: another package of this name stands earlier in the module search path: take its folder out "
                f"of PYTHONPATH, rename it, or {_APART}"
            )
        if sizes.get(name, size := ours.stat().st_size) != size:
            return (
                f"hintplan's package '{name}' in {ours.parent} was written over by {_who_else_has(name)}\n"
                f"  hint: {_APART}"
            )
    return None


def _file_of(name: str) -> Path | None:
    """Where Python finds the module ``name``; None if nowhere, or in folders without an ``__init__.py``."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module that was made, not found
        return None
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None


def _sizes_installed() -> dict[str, int]:
    """The size that each package's ``__init__.py`` had when hintplan was installed; none in a checkout."""
    found = {}
    for record in _HOME.glob("hintplan-*.dist-info/RECORD"):
        listed = record.read_text(encoding="utf-8")
        for name in _PACKAGES:
            _, _, rest = listed.partition(f"\n{name}/__init__.py,")
            size = rest.partition("\n")[0].strip().rpartition(",")[2]
            if size.isdecimal():
                found[name] = int(size)
    return found


def _who_else_has(name: str) -> str:
    """The other distributions that say they have a package ``name``, as pip calls them."""
    records = (path for path in _HOME.glob("*.dist-info/RECORD") if not path.parent.name.startswith("hintplan-"))
    having = (path for path in records if f"\n{name}/__init__.py," in f"\n{path.read_text(encoding='utf-8')}")
    names = sorted(path.parent.name.removesuffix(".dist-info").replace("-", " ") for path in having)
    return " and ".join(names) or "another distribution"


if __name__ == "__main__":
    main()
