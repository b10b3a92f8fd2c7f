"""A function of the user's that takes rows: what is said if it fails, and a stop while it works."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.spark.function_failed import FunctionFailed, function_failed
from tests.connectors.test_dataframes import BATCH

SCRIPT = """
CREATE TABLE events (id BIGINT) WITH ('connector' = 'dataframe');
CREATE TABLE o2 (id BIGINT) WITH ('connector' = 'dataframe');
INSERT INTO o2 SELECT id FROM events;
"""
BODIES = {
    "missing": "    import seaborn_of_nobody",
    "wrapped": "    try:\n        import pandas_of_nobody\n    except ImportError as e:\n        raise OSError from e",
    "own": "    return helper({})\ndef helper(found):\n    return found['nope']",
    "library": "    import json\n    json.loads('{')",
    "spark": "    rows.select('nope').collect()",
}
SAYS = {
    "missing": ("No module named 'seaborn_of_nobody' ({0}, line 2)", "pip install seaborn_of_nobody in this Python"),
    "wrapped": ("No module named 'pandas_of_nobody' ({0}, line 5)", "pip install pandas_of_nobody in this Python"),
    "own": ("KeyError: 'nope' ({0}, line 4)", None),
    "library": ("JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) "
                "({0}, line 3)", None),
    "spark": ("AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with "
              "name `nope` cannot be resolved. Did you mean one of the following? [`id`]. ({0}, line 2)", None),
}  # fmt: skip
CAUSES = {"missing": ModuleNotFoundError, "wrapped": OSError, "own": KeyError, "library": json.JSONDecodeError,
          "spark": AnalysisException}  # fmt: skip


def in_file(path: Path, body: str) -> Callable[[Any, int], None]:
    """The function ``f`` with ``body``, as the file at ``path`` has it."""
    path.write_text(f"def f(rows, batch):\n{body}\n")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["stream", "batch"])
@pytest.mark.parametrize("name", BODIES)
def test_a_function_that_fails_is_told_with_its_table_and_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    function = in_file(tmp_path / "notebook.py", BODIES[name])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"id": 1}')
    reader = spark.readStream if mode == "stream" else spark.read
    frame = reader.schema("id BIGINT").json(str(tmp_path / "in"))
    plan = hintplan.compile_sql((BATCH if mode == "batch" else "") + SCRIPT)
    given = {"once": True} if mode == "stream" else {}
    run = hintplan.execute(plan, tables={"events": frame}, sinks={"o2": function}, **given)  # type: ignore[arg-type]
    with pytest.raises(hintplan.RunError) as raised:
        run.await_termination()
    (found,) = raised.value.diagnostics
    message, hint = SAYS[name]
    assert found.message == f"the function of table o2 failed: {message.format('notebook.py')}"
    assert found.hint == hint
    assert isinstance(raised.value.__cause__, CAUSES[name])
    assert run.exception is raised.value
    assert repr(run).splitlines()[:2] == ["failed", str(raised.value).splitlines()[0]]
    assert "the function of table o2 failed" in run._repr_html_()
    run.stop()
    assert run.exception is raised.value
    assert "failed" in repr(run)


def test_what_a_server_of_spark_connect_says_is_read_from_its_text() -> None:
    try:
        raise ModuleNotFoundError("No module named 'seaborn'", name="seaborn_of_nobody")
    except ModuleNotFoundError as error:
        sent = function_failed("o2", error, on_server=True)
    place = f"{Path(__file__).name}, line {sent.diagnostics[0].message.rpartition(' ')[2][:-1]}"
    trace = (
        f"Traceback (most recent call last):\n  File 'x.py', line 4\n{FunctionFailed.__module__}.FunctionFailed: {sent}"
    )
    for after in (
        "",
        "\n",
        "\n\n\tat org.apache.spark.X.run(X.scala:1)\n",
        "\nSQLSTATE: XXKST",
        "\nJVM stacktrace:\n  x",
    ):
        told = failure_of_spark("the query of sink_o2 failed", RuntimeError(f"[STREAM_FAILED] ... {trace}{after}"))
        assert told.diagnostics[0].message.startswith("the function of table o2 failed: No module named 'seaborn' (")
        assert told.diagnostics[0].message.endswith(f"{place})")
        assert told.diagnostics[0].hint == "pip install seaborn_of_nobody where the Spark Connect server runs"


def test_a_cell_of_a_notebook_is_called_as_the_notebook_calls_it() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    had = InteractiveShell.initialized()
    shell = InteractiveShell.instance()
    try:
        shell.run_cell("def f(rows, batch):\n    raise ValueError('no')", store_history=True)
        number = shell.execution_count - 1
        with pytest.raises(ValueError, match="no") as raised:
            shell.user_ns["f"](None, 0)
        said = function_failed("o2", raised.value, on_server=False)
    finally:
        if not had:
            InteractiveShell.clear_instance()
            sys.displayhook = sys.__displayhook__
    assert str(said) == f"the function of table o2 failed: ValueError: no (Cell In[{number}], line 2)"


class Uncaught:
    """Java's handler of errors that end a thread, which keeps what they are."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def uncaughtException(self, thread: Any, error: Any) -> None:
        self.errors.append(str(error.toString()))

    class Java:
        implements = ("java.lang.Thread$UncaughtExceptionHandler",)


@pytest.fixture
def uncaught(spark: SparkSession) -> Iterator[Uncaught]:
    thread: Any = spark.sparkContext._jvm.java.lang.Thread  # type: ignore[union-attr]
    before, handler = thread.getDefaultUncaughtExceptionHandler(), Uncaught()
    thread.setDefaultUncaughtExceptionHandler(handler)
    yield handler
    thread.setDefaultUncaughtExceptionHandler(before)


@pytest.mark.spark
@pytest.mark.parametrize("hides", [False, True])
def test_a_stop_within_a_function_ends_the_run_without_an_error(
    spark: SparkSession, tmp_path: Path, uncaught: Uncaught, hides: bool
) -> None:
    (tmp_path / "0.json").write_text('{"id": 1}')
    frame = spark.readStream.schema("id BIGINT").json(str(tmp_path))
    works = threading.Event()

    def slow(rows: Any, batch: int) -> None:
        works.set()
        try:
            rows.sparkSession.range(1 << 40).selectExpr("sum(id)").collect()
        except Exception as error:
            if hides:
                raise ValueError("no sum") from error
            raise

    with hintplan.execute(hintplan.compile_sql(SCRIPT), tables={"events": frame}, sinks={"o2": slow}) as run:
        assert works.wait(60)
    assert uncaught.errors == []
    assert not run.active
    assert run.exception is None
    assert repr(run).startswith("ended")
