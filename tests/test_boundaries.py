"""The planner and the runtime meet only in plans, and plans starts without either's libraries."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hintplan.plans.operators import KINDS, Stateful
from hintplan.runtime.builders.bound import build_operator
from hintplan.runtime.spark.shipping import code_archive
from tests.operator_kinds import compiled
from tests.runtime.expressions.checking import condition_of
from tests.runtime.pipeline import Pipeline

ROOT = Path(__file__).parent.parent
PACKAGES = ("planner", "plans", "plans/front_door", "runtime")
OWN = tuple(f"hintplan.{name}" for name in ("planner", "plans", "runtime"))
"""What imports call the three packages."""
FORBIDDEN = {
    "planner": {"hintplan", "hintplan.runtime", "pyspark", "pyarrow", "pandas", "numpy"},
    "plans": {"hintplan", "hintplan.planner", "hintplan.runtime", "pyspark", "pyarrow", "pandas", "numpy", "sqlglot"},
    "plans/front_door": {"pyspark", "pyarrow", "pandas", "numpy", "sqlglot"},
    "runtime": {"hintplan", "hintplan.planner"},
}
# The runtime parses an expression that it is about to run: to check it against the allowed functions, and to evaluate a
# join condition inside the operator.
SQLGLOT_IN_RUNTIME = {
    ROOT / "runtime" / "expressions" / "allowed.py",
    ROOT / "runtime" / "expressions" / "checked.py",
    ROOT / "runtime" / "expressions" / "bounded.py",
    ROOT / "runtime" / "expressions" / "condition.py",
    ROOT / "runtime" / "expressions" / "constants.py",
    ROOT / "runtime" / "expressions" / "current_time.py",
    ROOT / "runtime" / "expressions" / "exact.py",
    ROOT / "runtime" / "expressions" / "source_filter.py",
}


def modules(package: str) -> list[Path]:
    front_door = ROOT / "plans" / "front_door"
    paths = sorted((ROOT / package).rglob("*.py"))
    return paths if package == "plans/front_door" else [path for path in paths if path.parent != front_door]


def importable(path: Path) -> str:
    """The name of the module in a file."""
    return ".".join(("hintplan", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Return the line and the package of every import, however deep it stands in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, package_of(alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports here are absolute"
            yield from ((node.lineno, package_of(f"{node.module}.{alias.name}")) for alias in node.names)


def package_of(module: str) -> str:
    """The package that ``module``, or what is imported from it, belongs to."""
    first, _, rest = module.partition(".")
    own = f"{first}.{rest.partition('.')[0]}"
    return own if own in OWN else first


def test_packages_of_imports_are_told_apart(tmp_path: Path) -> None:
    lines = ("import hintplan", "import hintplan.plans.errors", "from hintplan import runtime, load")
    (tmp_path / "a.py").write_text("\n".join((*lines, "from pyspark.sql import Row")))
    names = [name for _, name in imports(tmp_path / "a.py")]
    assert names == ["hintplan", "hintplan.plans", "hintplan.runtime", "hintplan", "pyspark"]


def test_no_import_leaves_out_the_name_of_the_package() -> None:
    left_out = re.compile(r"^\s*(?:from|import) (?:planner|plans|runtime)\b", re.MULTILINE)
    folders = (*PACKAGES, "tests", "benchmarks", "examples", "docs")
    paths = [path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".md")]
    assert [path.relative_to(ROOT) for path in paths if left_out.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_it_may_know(package: str) -> None:
    paths = modules(package)
    assert paths, f"no modules in {package}"
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in paths
        for line, name in imports(path)
        if name in FORBIDDEN[package]
    ]
    assert found == []


def test_only_what_parses_expressions_in_the_runtime_imports_sqlglot() -> None:
    found = {path for path in modules("runtime") for _, name in imports(path) if name == "sqlglot"}
    assert found <= SQLGLOT_IN_RUNTIME


def test_the_wheel_has_every_folder_of_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    paths = [path for name in ("planner", "plans", "runtime") for path in modules(name)]
    folders = {importable(path) for path in paths if path.name == "__init__.py"}
    assert settings["packages"] == sorted(["hintplan", *folders])
    assert settings["package-dir"] == {
        "hintplan": "plans/front_door",
        **{f"hintplan.{name}": name for name in ("planner", "plans", "runtime")},
    }


def test_every_module_of_plans_imports_without_heavy_libraries() -> None:
    names = [importable(path) for path in modules("plans")]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([name for name in ('pyspark', 'pyarrow', 'pandas', 'numpy', 'sqlglot') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_workers_load_neither_the_sql_parser_nor_the_command_line() -> None:
    # Executors may lack sqlglot, and every second of start-up is paid once per Python worker.
    program = (
        "import sys, hintplan.runtime.engine.process\n"
        "from hintplan.runtime.operators import aggregate, calc, join\n"
        "print([name for name in ('sqlglot', 'pandas', 'rich', 'click') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_who_looks_at_state_needs_no_spark() -> None:
    program = (
        "import sys\n"
        "import hintplan, hintplan.runtime.inspect.command\n"
        "hintplan.read_state, hintplan.state_rows, hintplan.take_snapshot, hintplan.compact_state\n"
        "print([name for name in ('pyspark', 'py4j') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_what_workers_run_needs_no_library_that_only_the_driver_has(tmp_path: Path) -> None:
    # Nor does what a Spark Connect server runs for sinks; both may have nothing but PySpark, pyarrow and numpy, and of
    # hintplan what is shipped.
    folders = ("connectors", "engine", "functions", "kernels", "lookup", "operators", "requests", "results")
    folders = (*folders, "state", "worker")
    paths = [path for path in modules("runtime") if path.relative_to(ROOT / "runtime").parts[0] in folders]
    names = [importable(path) for path in paths]
    program = (
        "import importlib, sys\n"
        f"sys.path.insert(0, {str(code_archive(tmp_path))!r})\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "assert all('.zip' in sys.modules[name].__path__[0] for name in ('hintplan.plans', 'hintplan.runtime'))\n"
        "print([name for name in ('jsonschema_rs', 'prompt_toolkit', 'sqlglot') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_no_kernel_loads_the_connectors_of_plans_on_a_worker(tmp_path: Path) -> None:
    """A worker unpickles a kernel, bound to a plan, before its first row; all of its modules are imported then."""
    stateful = [kind.op for kind in KINDS if issubclass(kind, Stateful)]
    pipeline = Pipeline(compiled(tmp_path, *stateful))
    kernels = {
        operator.id: build_operator(
            operator,
            tuple(pipeline.columns[name] for name in operator.inputs),
            tuple(pipeline.changelog[name] for name in operator.inputs),
            users={},
            condition=condition_of(operator, [pipeline.columns[name] for name in operator.inputs]),
        )
        for operator in pipeline.plan.operators
        if isinstance(operator, Stateful)
    }
    assert {operator.op for operator in pipeline.plan.operators if operator.id in kernels} == set(stateful)
    for name, kernel in kernels.items():
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(kernel))
    folders = ("engine", "kernels", "operators", "state", "worker")
    paths = [path for path in modules("runtime") if path.relative_to(ROOT / "runtime").parts[0] in folders]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    program = (
        "import importlib, pathlib, pickle, sys\n"
        "def check(what):\n"
        "    kept_out = ('hintplan.plans.connectors', 'hintplan.plans.operators')\n"
        "    loaded = [name for name in sys.modules if name.startswith(kept_out)]\n"
        "    if loaded: sys.exit(f'{what} loads {loaded[0]} and {len(loaded) - 1} more')\n"
        f"for path in sorted(pathlib.Path({str(tmp_path)!r}).glob('*.pickle')):\n"
        "    pickle.loads(path.read_bytes()); check(path.stem)\n"
        f"for name in {names!r}: importlib.import_module(name); check(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
