"""The planner and the runtime meet only in plans, and plans starts without either's libraries."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hintplan.plans.operators import KINDS, Stateful, op_name
from hintplan.runtime.build.bound import build_operator
from hintplan.runtime.spark.shipping import archive
from tests.operator_kinds import compiled
from tests.runtime.pipeline import Pipeline

ROOT = Path(__file__).parent.parent
PACKAGES = ("hintplan", "planner", "plans", "runtime")
FORBIDDEN = {
    "hintplan": {"pyspark", "pyarrow", "pandas", "numpy", "sqlglot"},
    "planner": {"hintplan", "runtime", "pyspark", "pyarrow", "pandas", "numpy"},
    "plans": {"hintplan", "planner", "runtime", "pyspark", "pyarrow", "pandas", "numpy", "sqlglot"},
    "runtime": {"hintplan", "planner"},
}
# The runtime parses an expression that it is about to run: to check it against the allowed functions, and to evaluate a
# join condition inside the operator.
SQLGLOT_IN_RUNTIME = {
    ROOT / "runtime" / "expressions" / "allowed.py",
    ROOT / "runtime" / "expressions" / "condition.py",
    ROOT / "runtime" / "expressions" / "constants.py",
    ROOT / "runtime" / "expressions" / "exact.py",
    ROOT / "runtime" / "expressions" / "source_filter.py",
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py")) or [ROOT / f"{package}.py"]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the top-level package of every import, however deep it stands in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports here are absolute"
            yield node.lineno, (node.module or "").partition(".")[0]


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


def test_every_module_of_plans_imports_without_heavy_libraries() -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules("plans")]
    names = [name.removesuffix(".__init__") for name in names]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([name for name in ('pyspark', 'pyarrow', 'pandas', 'numpy', 'sqlglot') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_what_plans_exports_exists() -> None:
    import hintplan

    assert sorted(plans.__all__) == plans.__all__
    for name in plans.__all__:
        assert hasattr(plans, name)


def test_workers_load_neither_the_sql_parser_nor_the_command_line() -> None:
    # Executors may lack sqlglot, and every second of start-up is paid once per Python worker.
    program = (
        "import sys, hintplan.runtime.engine.process\n"
        "import hintplan.runtime.operators.aggregate, hintplan.runtime.operators.calc, hintplan.runtime.operators.join\n"
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
    folders = ("connectors", "engine", "functions", "kernels", "lookup", "operators", "results", "state", "worker")
    paths = [path for path in modules("runtime") if path.relative_to(ROOT / "runtime").parts[0] in folders]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    program = (
        "import importlib, sys\n"
        f"sys.path.insert(0, {str(archive(tmp_path))!r})\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "assert '.zip' in sys.modules['plans'].__path__[0] and '.zip' in sys.modules['runtime'].__path__[0]\n"
        "print([name for name in ('jsonschema_rs', 'prompt_toolkit', 'sqlglot') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_no_kernel_loads_the_connectors_of_plans_on_a_worker(tmp_path: Path) -> None:
    """A worker unpickles a kernel, bound to a plan, before its first row; all of its modules are imported then."""
    stateful = [kind.op for kind in KINDS if kind.keeps_state]
    pipeline = Pipeline(compiled(tmp_path, *stateful))
    kernels = {
        operator.id: build_operator(
            operator,
            tuple(pipeline.columns[name] for name in operator.inputs),
            tuple(pipeline.changelog[name] for name in operator.inputs),
            users={},
        )
        for operator in pipeline.plan.operators
        if isinstance(operator, Stateful)
    }
    assert {op_name(operator) for operator in pipeline.plan.operators if operator.id in kernels} == set(stateful)
    for name, kernel in kernels.items():
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(kernel))
    folders = ("engine", "kernels", "operators", "state", "worker")
    paths = [path for path in modules("runtime") if path.relative_to(ROOT / "runtime").parts[0] in folders]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    program = (
        "import importlib, pathlib, pickle, sys\n"
        "def check(what):\n"
        "    loaded = [name for name in sys.modules if name.startswith(('hintplan.plans.connectors', 'hintplan.plans.operators'))]\n"
        "    if loaded: sys.exit(f'{what} loads {loaded[0]} and {len(loaded) - 1} more')\n"
        f"for path in sorted(pathlib.Path({str(tmp_path)!r}).glob('*.pickle')):\n"
        "    pickle.loads(path.read_bytes()); check(path.stem)\n"
        f"for name in {names!r}: importlib.import_module(name); check(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
