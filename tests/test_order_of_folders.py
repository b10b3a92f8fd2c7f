"""Each package has an order of its folders and root modules, in which imports run one way only: back to what is below.

An import counts wherever it stands: inside a function, for type checking only, or in a package's own ``__init__``.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_MODULES = 30

RUNTIME_ORDER = (
    "sources",
    "running",
    "web_server",
    "operator",
    "types",
    "secrets",
    "s3",
    "stores",
    "classes",
    "code_files",
    "jvm",
    "spark",
    "worker",
    "storage",
    "state",
    "kernels",
    "expressions",
    "engine",
    "requests",
    "lookup",
    "functions",
    "connectors",
    "results",
    "progress",
    "progress_table",
    "metrics",
    "operators",
    "checkpoint",
    "builders",
    "batch",
    "supervision",
    "page",
    "run",
    "bundle",
    "inspect",
    "rehearsal",
    "__init__",
)

PLANNER_ORDER = (
    "syntax",
    "expressions",
    "hints",
    "statements",
    "settings",
    "relations",
    "context",
    "properties",
    "translation",
    "passes",
    "lowering",
    "query",
    "sinks",
    "setting_positions",
    "late_rows",
    "job",
    "user_functions",
    "declarations",
    "catalog",
    "caching",
    "session",
    "init_files",
    "describe",
    "execute_statement",
    "compile",
    "__init__",
    "cli",
)

PLANS_ORDER = (
    "python_words",
    "frozen",
    "errors",
    "extras",
    "lazy",
    "text",
    "declarations",
    "expressions",
    "settings",
    "connectors",
    "operators",
    "model",
    "format",
    "analysis",
    "evidence",
    "compare",
    "edit",
    "files",
    "rehearsal",
    "checkpoint",
    "merge",
    "show",
    "review",
    "lint",
    "ci",
    "api",
    "client",
    "commands",
    "cli",
    "__init__",
)

ORDERS: Mapping[str, tuple[str, ...]] = {
    "plans": PLANS_ORDER,
    "planner": PLANNER_ORDER,
    "runtime": RUNTIME_ORDER,
}
"""The folders and root modules of a package from low to high; ``__init__`` is what the package itself offers."""


def modules_of(package: str, root: Path = ROOT) -> dict[str, Path]:
    """The files of ``package`` in the checkout ``root``, by the names of their modules."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        if path.parent.name != "front_door":  # the package hintplan itself, above all three
            name = ".".join(("hintplan", *path.relative_to(root).with_suffix("").parts))
            found[name.removesuffix(".__init__")] = path
    return found


def imports_of(path: Path, modules: Mapping[str, Path]) -> Iterator[tuple[int, str]]:
    """The line and the module of each import in ``path`` of one of ``modules``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield node.lineno, submodule if submodule in modules else node.module


def part_of(module: str) -> str:
    """The folder or root module of its package that ``module`` belongs to."""
    return [*module.split("."), "__init__"][2]


def running_up(package: str, order: tuple[str, ...], root: Path = ROOT) -> list[str]:
    """Every import in ``package`` of a part that stands above the importing one in ``order``."""
    modules, rank = modules_of(package, root), {part: place for place, part in enumerate(order)}
    return [
        f"{path.relative_to(root)}:{line} imports {target}"
        for name, path in modules.items()
        for line, target in imports_of(path, modules)
        if rank[part_of(target)] > rank[part_of(name)]
    ]


def circles(package: str, root: Path = ROOT) -> list[tuple[str, ...]]:
    """The groups of modules of ``package`` that import each other, directly or through others."""
    modules = modules_of(package, root)
    targets = {name: {target for _, target in imports_of(path, modules)} for name, path in modules.items()}
    reached = {name: _reached(name, targets) for name in targets}
    return sorted({tuple(sorted({n} | {o for o in reached[n] if n in reached[o]})) for n in targets if n in reached[n]})


def sizes(package: str, root: Path = ROOT) -> Counter[str]:
    """How many modules each folder of ``package`` has, but for its ``__init__``."""
    paths = modules_of(package, root).values()
    return Counter(path.parent.relative_to(root).as_posix() for path in paths if path.stem != "__init__")


def _reached(start: str, targets: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(targets[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += targets[name]
    return found


@pytest.mark.parametrize("package", ORDERS)
def test_the_order_names_each_part_of_the_package_once(package: str) -> None:
    assert Counter(ORDERS[package]) == Counter({part_of(name) for name in modules_of(package)})


@pytest.mark.parametrize("package", ORDERS)
def test_no_import_runs_up_the_order(package: str) -> None:
    assert running_up(package, ORDERS[package]) == []


@pytest.mark.parametrize("package", ORDERS)
def test_no_modules_import_each_other(package: str) -> None:
    assert circles(package) == []


@pytest.mark.parametrize("package", ORDERS)
def test_no_folder_has_more_modules_than_one_can_overlook(package: str) -> None:
    assert {folder: size for folder, size in sizes(package).items() if size > MOST_MODULES} == {}
