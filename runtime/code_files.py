"""Collects code files by their paths in an archive: hintplan's package and the user's modules. Also writes archives.

>>> "hintplan/runtime/spark/shipping.py" in own_package()
True
"""

from __future__ import annotations

import hashlib
import importlib.util
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

PACKAGE = "hintplan"

_DOOR = ("__init__", "functions")
"""The modules of the package itself that workers import. The second one is for user functions."""

_NEEDED = ("plans", "runtime")
"""The parts of the package that a run needs. It does not need the planner."""


def _folder(package: str) -> Path:
    """Return the folder of a package as Python finds it.

    In a checkout, the parts of hintplan may be in several places.
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.submodule_search_locations, package
    return Path(spec.submodule_search_locations[0])


HOME = _folder(PACKAGE).parent
"""The folder that contains the package, as in a wheel."""

_DEFINITIONS = "hintplan_definitions"
"""The folder of a bundle with the files that only the driver reads."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o100644 << 16


def package_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files below ``root`` by relative path, in order, without compiled Python files."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_bytes()


def own_package() -> dict[str, bytes]:
    """Return the files of hintplan that a run needs, by their paths in an archive, in order."""
    files = {f"{PACKAGE}/{name}.py": (_folder(PACKAGE) / f"{name}.py").read_bytes() for name in _DOOR}
    for part in _NEEDED:
        files.update({f"{PACKAGE}/{part}/{path}": data for path, data in package_files(_folder(f"{PACKAGE}.{part}"))})
    return {path: data for path, data in files.items() if not path.startswith(f"{PACKAGE}/plans/front_door/")}


def own_files(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the module or package ``name``; none if it is an installed package or does not exist."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    roots = [Path(location) for location in spec.submodule_search_locations or () if Path(location).is_dir()]
    for root in roots:
        if not _is_installed(root):
            yield from ((f"{name}/{path}", data) for path, data in package_files(root))
    origin = Path(spec.origin or "")
    if not roots and origin.suffix == ".py" and origin.is_file() and not _is_installed(origin):
        yield origin.name, origin.read_bytes()


def _is_installed(path: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return any(path.is_relative_to(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


def packed_path(path: str) -> str:
    """Return the path in a bundle of the file that a plan calls ``path``.

    >>> packed_path("/plans/orders.desc")
    'hintplan_definitions/62482c0c/orders.desc'
    """
    return f"{_DEFINITIONS}/{hashlib.sha256(path.encode()).hexdigest()[:8]}/{Path(path).name}"


def read_definition(path: str) -> bytes:
    """Return the content of the file that a plan calls ``path``; OSError if it cannot be read.

    In a bundle, it is the content at the time when the bundle was built.
    """
    packed = HOME / packed_path(path)
    return (packed if packed.is_file() else Path(path)).read_bytes()


def write_zip(target: Path | BinaryIO, files: Mapping[str, bytes], *, squeezed: bool) -> None:
    """Write ``files`` to a zip in their order; the same files give the same bytes.

    Folders also have entries: without them, Python does not find packages that have no ``__init__.py``.
    """
    method = zipfile.ZIP_DEFLATED if squeezed else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", method) as packed:
        for folder in sorted({f"{parent}/" for path in files for parent in PurePosixPath(path).parents} - {"./"}):
            packed.writestr(zipfile.ZipInfo(folder, _EPOCH), b"")
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type = method
            entry.external_attr = _READABLE
            packed.writestr(entry, data)
