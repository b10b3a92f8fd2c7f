"""Measures the structure of the code: what branches on kinds of operators, folders, circles, arrows that run up, lines.

python -m tests.house                  # the tree as it stands
python -m tests.house 1a2b3c 4d5e6f    # and how many files of code each of these commits touched
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import get_args

from hintplan.plans.operators import Operator
from tests.test_order_of_folders import MOST_MODULES, ORDERS, ROOT, circles, modules_of, running_up, sizes

OPERATORS = {cls.__name__ for cls in get_args(Operator)} | {"Stateful"}


def branches(path: Path) -> int:
    """How often a module asks of which class an operator is: by ``isinstance``, or by a case of a ``match``.

    A name counts if it is imported from ``hintplan.plans.operators``: the planner's relations have some of the same.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hintplan.plans.operators")
        for alias in node.names
        if alias.name in OPERATORS
    }
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            found += any(isinstance(each, ast.Name) and each.id in known for each in ast.walk(node.args[1]))
        elif isinstance(node, ast.MatchClass):
            found += isinstance(node.cls, ast.Name) and node.cls.id in known
    return found


def touched(commit: str) -> tuple[list[str], list[str]]:
    """The files of code that a commit added, and those that it changed; without tests and docs."""
    command = ["git", "show", "--name-status", "--format=", commit]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    files = [tuple(line.split("\t")[:2]) for line in lines]
    code = [(kind, name) for kind, name in files if name.startswith(("plans/", "planner/", "runtime/"))]
    return [name for kind, name in code if kind == "A"], [name for kind, name in code if kind != "A"]


def main(commits: list[str]) -> None:
    """Print the table."""
    counts = {
        path.relative_to(ROOT).as_posix(): branches(path) for package in ORDERS for path in modules_of(package).values()
    }
    asking = {name: count for name, count in counts.items() if count}
    print(f"modules that branch on classes of operators    {len(asking)} ({sum(asking.values())} places)")
    for name, count in sorted(asking.items(), key=lambda each: -each[1]):
        print(f"    {count:3} {name}")
    for package, order in ORDERS.items():
        paths = modules_of(package).values()
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        large = [name for name, number in sizes(package).items() if number > MOST_MODULES]
        print(
            f"{package:8} {len(paths):4} modules {lines:6} lines   folders over {MOST_MODULES}: {len(large)}   "
            f"circles: {len(circles(package))}   imports that run up: {len(running_up(package, order))}"
        )
    for commit in commits:
        added, changed = touched(commit)
        print(f"{commit}: {len(added)} files of code added, {len(changed)} changed")
        for name in (*added, *changed):
            print(f"    {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
