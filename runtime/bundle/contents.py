"""The content of a bundle's archive.

It has the plan, hintplan and its dependencies, modules of the user, drivers of connectors, and definition files. Python
can import from their paths, so workers can use the archive as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hintplan.plans.connectors.reach import FilePlace
from hintplan.plans.connectors.table import extras_of, places
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.bundle.distributions import driver_files, extra_requirements, needed_by_runs
from hintplan.runtime.code_files import PACKAGE, own_files, own_package, packed_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The ``files`` of an archive by their paths.

    The archive includes the ``drivers`` of connectors, and the ``definitions``, by their paths in the plan. It does not
    include the requirements ``to_install``, the modules ``installed`` here, or the ``local`` files and directories of
    tables.
    """

    files: Mapping[str, bytes]
    drivers: tuple[str, ...]
    definitions: tuple[str, ...]
    local: tuple[str, ...]
    to_install: tuple[str, ...]
    installed: tuple[str, ...]


def contents(plan: Plan, *, modules: Sequence[str], platform: str) -> Contents:
    """Return the content that a run of ``plan`` on ``platform`` needs, whose classes may be in ``modules``.

    Raise RunError if a module is not found here, or a definition file cannot be read.
    """
    files = own_package()
    files.update(needed_by_runs(platform))
    installed = []
    for name in sorted({module.partition(".")[0] for module in modules} - {PACKAGE}):
        if find_spec(name) is None:
            raise RunError(
                f"the module {name} is allowed, and there is none here that could go along",
                hint="put its directory on PYTHONPATH where hintplan bundle runs",
            )
        own = dict(own_files(name))
        files.update(own)
        installed += [] if own else [name]
    extras = {extra: driver_files(extra) for extra in extras_of(plan.tables.values())}
    for packed in extras.values():
        files.update(packed or {})
    defined, local = _named_files(plan)
    files.update({packed_path(path): data for path, data in defined.items()})
    return Contents(
        definitions=tuple(defined),
        local=local,
        files=dict(sorted(files.items())),
        drivers=_asked(extra for extra, packed in extras.items() if packed),
        to_install=_asked(extra for extra, packed in extras.items() if not packed),
        installed=tuple(installed),
    )


def _named_files(plan: Plan) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the content of definition files by their paths, and the other local paths of tables."""
    defined: dict[str, bytes] = {}
    local = set()
    for name, table in sorted(plan.tables.items()):
        for place in places(table):
            if not isinstance(place, FilePlace) or not place.is_local:
                continue
            if not place.is_definition:
                local.add(place.local_path)
                continue
            try:
                defined[place.path] = Path(place.path).read_bytes()
            except OSError as error:
                raise RunError(
                    f"the bundle takes {place.path} along, which cannot be read: {error.strerror}",
                    hint="bundle where the file is; a relative path starts in the current directory",
                    path=f"tables.{name}.options.{place.option}",
                ) from None
    return defined, tuple(sorted(local))


def _asked(extras: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for extra in extras for line in extra_requirements(extra))
