"""Measures the structure and the language of the code, of this checkout or of another one.

python -m tests.house                  # the tree as it stands
python -m tests.house --root DIR       # the tree of another checkout
python -m tests.house 1a2b3c 4d5e6f    # and how many files of code each of these commits touched
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hintplan.plans.operators import KINDS
from tests.english import CODE, FIRST_WORDS, docstrings
from tests.test_order_of_folders import MOST_MODULES, ROOT, circles, modules_of, running_up, sizes

OPERATORS = {cls.__name__ for cls in KINDS} | {"Requesting", "Stateful"}
SMALL = 25
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class File(NamedTuple):
    """A file of code: its path, its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module


def files_of(root: Path) -> list[File]:
    """Return all Python files of the code below ``root``."""
    paths = [path for package in CODE for path in sorted((root / package).rglob("*.py"))]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [File(path, text, ast.parse(text)) for path, text in zip(paths, texts, strict=True)]


def branches(tree: ast.Module) -> int:
    """How often a module asks of which class an operator is: by ``isinstance``, or by a case of a ``match``.

    A name counts if it is imported from ``hintplan.plans.operators``.
    """
    known = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hintplan.plans.operators")
        for alias in node.names
        if alias.name in OPERATORS
    }
    places = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            places += any(isinstance(each, ast.Name) and each.id in known for each in ast.walk(node.args[1]))
        elif isinstance(node, ast.MatchClass):
            places += isinstance(node.cls, ast.Name) and node.cls.id in known
    return places


def orders_of(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the order of folders of each package, as the test of the checkout ``root`` lists it."""
    tree = ast.parse((root / "tests" / "test_order_of_folders.py").read_text(encoding="utf-8"))
    orders = {
        target.id.removesuffix("_ORDER").lower(): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.endswith("_ORDER")
    }
    return {package: orders[package] for package in CODE}


def touched(commit: str, root: Path) -> tuple[list[str], list[str]]:
    """The files of code that a commit added, and those that it changed; without tests and docs."""
    command = ["git", "show", "--name-status", "--format=", commit]
    lines = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    files = [tuple(line.split("\t")[:2]) for line in lines]
    code = [(kind, name) for kind, name in files if name.startswith(("plans/", "planner/", "runtime/"))]
    return [name for kind, name in code if kind == "A"], [name for kind, name in code if kind != "A"]


def namesakes(files: list[File]) -> tuple[int, int]:
    """Return how many names of public functions and classes stand for several, in other modules, and how many exist."""
    modules: dict[str, set[Path]] = {}
    for file in files:
        for node in file.tree.body:
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
                modules.setdefault(node.name, set()).add(file.path)
    return sum(len(paths) > 1 for paths in modules.values()), len(modules)


def uses_of_found(tree: ast.Module) -> tuple[int, int]:
    """Return how often functions use a local called ``found``, and how many functions do; not their inner functions."""
    uses = [sum(_is_found(node) for node in _own(each)) for each in ast.walk(tree) if isinstance(each, _FUNCTIONS)]
    return sum(uses), sum(map(bool, uses))


def _is_found(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "found") or (isinstance(node, ast.arg) and node.arg == "found")


def _own(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, _FUNCTIONS):
            yield from _own(node)


def import_lines(tree: ast.Module) -> int:
    """Return the number of lines that belong to imports."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def comment_lines(text: str) -> int:
    """Return the number of lines that have a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)


def code_lines(file: File) -> int:
    """Return the number of lines that are neither blank nor only comment or docstring."""
    texts = [node.value for node in ast.walk(file.tree) if isinstance(node, ast.Expr)]
    strings = [node for node in texts if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    described = {line for node in strings for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - described)


def installed_names(root: Path) -> set[str]:
    """Return the top-level names that the wheel installs."""
    tool = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = {package.partition(".")[0] for package in tool.get("packages", ())}
    return packages | set(tool.get("py-modules", ()))


def lint_counts(root: Path) -> Counter[str]:
    """Return how many unused arguments ruff finds as ``ARG``, and how many ``Any`` in signatures by package."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--target-version", "py311"]
    rules = ["--select", "ARG,ANN401", "--exit-zero", "--output-format", "json", *CODE]
    output = subprocess.run([*command, *rules], cwd=root, capture_output=True, text=True, check=True).stdout
    counts: Counter[str] = Counter()
    for problem in json.loads(output):
        package = Path(problem["filename"]).relative_to(root.resolve()).parts[0]
        counts[f"ANN401 {package}" if problem["code"] == "ANN401" else "ARG"] += 1
    return counts


def table(root: Path, files: list[File]) -> Mapping[str, str]:
    """Return what is measured, by its name."""
    lines = sum(len(file.text.splitlines()) for file in files)
    texts = [text for file in files for _, text, _ in docstrings(file.text)]
    questions = sum(FIRST_WORDS.match(text) is not None for text in texts)
    twice, public = namesakes(files)
    uses = [uses_of_found(file.tree) for file in files]
    small = sum(len(f.text.splitlines()) <= SMALL and f.path.stem not in ("__init__", "__main__") for f in files)
    lint = lint_counts(root)
    anys = {package: lint[f"ANN401 {package}"] for package in CODE}
    names = installed_names(root)
    return {
        "docstrings that are no statement": f"{questions} of {len(texts)} ({questions / len(texts):.1%})",
        "public namesakes in other modules": f"{twice} of {public} ({twice / public:.1%})",
        "locals called found": f"{sum(n for n, _ in uses):,} uses in {sum(n for _, n in uses)} functions",
        "import lines": f"{sum(import_lines(file.tree) for file in files) / lines:.1%}",
        f"files; of at most {SMALL} lines": f"{len(files)}; {small}",
        "comment lines": f"{sum(comment_lines(file.text) for file in files) / lines:.1%}",
        "unused arguments (ruff ARG)": f"{lint['ARG']}",
        "Any in signatures (ruff ANN401)": f"{sum(anys.values())} ({', '.join(f'{k} {n}' for k, n in anys.items())})",
        "top-level names that the wheel installs": f"{len(names)} ({', '.join(sorted(names))})",
    }


def print_branches(root: Path, files: list[File]) -> None:
    """Print which modules branch on classes of operators."""
    counts = {file.path.relative_to(root).as_posix(): branches(file.tree) for file in files}
    asking = {name: count for name, count in counts.items() if count}
    print(f"modules that branch on classes of operators    {len(asking)} ({sum(asking.values())} places)")
    for name, count in sorted(asking.items(), key=lambda each: -each[1]):
        print(f"    {count:3} {name}")


def print_packages(root: Path, files: list[File]) -> None:
    """Print lines, large folders, circles and wrong arrows of each package."""
    for package, order in orders_of(root).items():
        paths = set(modules_of(package, root).values())
        lines = sum(len(file.text.splitlines()) for file in files if file.path in paths)
        code = sum(code_lines(file) for file in files if file.path in paths)
        large = [name for name, number in sizes(package, root).items() if number > MOST_MODULES]
        print(
            f"{package:8} {len(paths):4} modules {lines:6} lines {code:6} of code   folders over {MOST_MODULES}: "
            f"{len(large)}   circles: {len(circles(package, root))}   "
            f"imports that run up: {len(running_up(package, order, root))}"
        )


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="Measures the code of a checkout.")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout than this one")
    parser.add_argument("commits", nargs="*", help="commits, of which the files of code are listed")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    files = files_of(root)
    print_branches(root, files)
    print_packages(root, files)
    for name, value in table(root, files).items():
        print(f"{name:42} {value}")
    for commit in options.commits:
        added, changed = touched(commit, root)
        print(f"{commit}: {len(added)} files of code added, {len(changed)} changed")
        for name in (*added, *changed):
            print(f"    {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
