"""The folders and root modules of the planner stand in an order, and what is lower never imports what is higher."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLANNER_ORDER = (
    "syntax",
    "expressions",
    "hints",
    "statements",
    "settings",
    "ids",
    "relations",
    "context",
    "properties",
    "translation",
    "passes",
    "lowering",
    "query",
    "sinks",
    "setting_positions",
    "job",
    "user_functions",
    "catalog",
    "caching",
    "session",
    "describe",
    "execute_statement",
    "compile",
    "__init__",
    "cli",
)
"""From low to high. A module may import what stands before it, and what stands in its own folder."""


def _modules() -> dict[str, Path]:
    files = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in sorted((ROOT / "planner").rglob("*.py"))}
    return {name.removesuffix(".__init__"): path for name, path in files.items()}


def _imports() -> dict[str, set[str]]:
    """The modules of the planner that each of them imports, in functions and for type checking as well."""
    modules = _modules()
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name} has a relative import"
                within = (f"{node.module}.{alias.name}" for alias in node.names)
                named |= {each if each in modules else str(node.module) for each in within}
        found[name] = (named & modules.keys()) - {name}
    return found


def _entry(module: str) -> str:
    return (*module.split("."), "__init__")[1]


def test_every_folder_and_root_module_has_its_place_in_the_order() -> None:
    assert sorted({_entry(name) for name in _modules()}) == sorted(PLANNER_ORDER)


def test_no_import_runs_back_up() -> None:
    rank = {entry: place for place, entry in enumerate(PLANNER_ORDER)}
    upward = [(a, b) for a, below in _imports().items() for b in below if rank[_entry(b)] > rank[_entry(a)]]
    assert upward == []


def test_no_modules_or_folders_import_each_other_in_a_circle() -> None:
    """Neither files nor, within any folder, what stands in it side by side."""
    graphs: dict[str, dict[str, set[str]]] = {"files": _imports()}
    for importer, imported in _imports().items():
        for other in imported:
            a, b = importer.split("."), other.split(".")
            depth = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
            if depth is not None:
                graph = graphs.setdefault(".".join(a[:depth]), {})
                graph.setdefault(a[depth], set()).add(b[depth])
    circles = []
    for graph in graphs.values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circles.append(error.args[1])
    assert circles == []


def test_no_folder_has_more_than_twenty_modules() -> None:
    folders = [path for path in (ROOT / "planner").rglob("*") if path.is_dir()]
    assert [f.name for f in (ROOT / "planner", *folders) if len(list(f.glob("*.py"))) > 20] == []
