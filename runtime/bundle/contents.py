"""What is in the archive of a bundle: the plan, hintplan, what that needs, modules of the user's, and drivers.

Paths are those from which Python imports, so that workers may be given the archive as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from plans.connectors.table import extras_of
from plans.errors import RunError
from plans.model.plan import Plan
from runtime.bundle.distributions import driver_files, extra_requirements, needed_by_runs
from runtime.code_files import HOME, PACKAGES, own_files, package_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The ``files`` of an archive by their paths.

    ``drivers`` of connectors are in it, ``to_install`` are not, nor are the modules ``installed`` here.
    """

    files: Mapping[str, bytes]
    drivers: tuple[str, ...]
    to_install: tuple[str, ...]
    installed: tuple[str, ...]


def contents(plan: Plan, *, modules: Sequence[str], platform: str) -> Contents:
    """What a run of ``plan`` on ``platform`` needs whose classes may be in ``modules``.

    RunError if one of these is not found here.
    """
    files = {f"{package}/{path}": data for package in PACKAGES for path, data in package_files(HOME / package)}
    files.update(needed_by_runs(platform))
    installed = []
    for name in sorted({module.partition(".")[0] for module in modules} - set(PACKAGES)):
        if find_spec(name) is None:
            raise RunError(
                f"the module {name} is allowed, and there is none here that could go along",
                hint="put its directory on PYTHONPATH where hintplan bundle runs",
            )
        own = dict(own_files(name))
        files.update(own)
        installed += [] if own else [name]
    extras = {extra: driver_files(extra) for extra in extras_of(plan.tables.values())}
    for found in extras.values():
        files.update(found or {})
    return Contents(
        files=dict(sorted(files.items())),
        drivers=_asked(extra for extra, found in extras.items() if found),
        to_install=_asked(extra for extra, found in extras.items() if not found),
        installed=tuple(installed),
    )


def _asked(extras: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for extra in extras for line in extra_requirements(extra))
