"""Declaring functions: CREATE FUNCTION, classes from Python, what a class must say, and where it may come from."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan import compile_sql
from hintplan.planner.compile import compile_script
from hintplan.planner.execute_statement import execute_statement
from hintplan.planner.session import CompileSession
from hintplan.planner.user_functions import read_declaration
from hintplan.plans.cli import main
from hintplan.plans.client import actions
from hintplan.plans.declarations.classes import ClassRefusal
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Correlate
from tests.planner import declared

TABLES = """CREATE TABLE t (id BIGINT, c STRING) WITH ('connector' = 'datagen');
CREATE TABLE s (a BIGINT, b STRING) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO s SELECT id, w FROM t, LATERAL TABLE(f(c)) AS W(w);"
MODULE = """
class Words:
    function_kind, arguments, result = "table", ("STRING",), "STRING"
    def eval(self, text): ...
"""


def create(class_name: str, rest: str = " LANGUAGE PYTHON") -> str:
    return f"{TABLES}CREATE FUNCTION f AS '{class_name}'{rest};\n{QUERY}"


def refused(script: str, *modules: str, **options: str) -> hintplan.Diagnostic:
    with pytest.raises(hintplan.SqlError) as caught:
        compile_sql(script, allow_modules=modules, **options)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    return found


def exit_code(*arguments: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a script and, beside it, the module that its function is in; the user stands elsewhere."""
    (tmp_path / "job").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "job" / "words_of_job.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "job" / "job.sql").write_text(create("words_of_job.Words"), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield tmp_path
    sys.modules.pop("words_of_job", None)


def test_the_plan_has_the_function_as_its_class_declares_it() -> None:
    script = create("tests.planner.declared.Locate").replace("SELECT id, w", "SELECT id, CAST(w AS STRING)")
    plan = compile_sql(script.replace("W(w)", "W(w, x)"), allow_modules=("tests.planner.declared",))
    assert plan.functions == {
        "f": Function(
            class_name="tests.planner.declared.Locate",
            kind="async-table",
            arguments=("STRING",),
            output=(Column(name="lat", type="DOUBLE"), Column(name="lon", type="DOUBLE")),
        )
    }
    assert hintplan.loads(hintplan.dumps(plan)) == plan


def test_only_functions_that_are_called_stand_in_the_plan() -> None:
    script = create("tests.planner.declared.Words").replace(", w FROM t, LATERAL TABLE(f(c)) AS W(w)", ", c FROM t")
    assert compile_sql(script, allow_modules=("tests",)).functions == {}


def test_a_module_beside_the_script_is_found_from_anywhere(project: Path) -> None:
    script = project / "job" / "job.sql"
    plan = compile_sql(script.read_text("utf-8"), file=str(script), allow_modules=("words_of_job",))
    assert plan.functions["f"].class_name == "words_of_job.Words"


def test_a_module_in_the_current_directory_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "job")
    assert compile_sql(create("words_of_job.Words"), allow_modules=("words_of_job",)).functions["f"].kind == "table"


def test_a_module_that_is_not_allowed_is_not_imported(project: Path) -> None:
    (project / "job" / "words_of_job.py").write_text("raise SystemExit", encoding="utf-8")
    found = refused(create("words_of_job.Words"), "words", file=str(project / "job" / "job.sql"))
    assert found.message == "the class words_of_job.Words may not be loaded: module words_of_job is not allowed"
    assert (found.line, found.column, found.hint) == (3, 22, "allow it: allow_modules=('words_of_job',)")


def test_a_module_that_is_nowhere_is_told_where_to_go(project: Path) -> None:
    found = refused(create("words_of_nobody.Words"), "words_of_nobody", file=str(project / "job" / "job.sql"))
    assert "No module named 'words_of_nobody'" in found.message
    assert found.hint == f"install the module, or put it into {project / 'job'} or {project / 'elsewhere'}"


def test_the_command_takes_allowed_modules(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = str(project / "job" / "job.sql")
    assert exit_code("compile", script, "--allow-module", "words_of_job") == 0
    assert json.loads(capsys.readouterr().out)["functions"]["f"]["class"] == "words_of_job.Words"
    assert exit_code("compile", script) == 1
    assert "hint: allow it: --allow-module words_of_job" in capsys.readouterr().err


@pytest.mark.parametrize("given", [declared.Words, "tests.planner.declared.Words"])
def test_a_function_is_registered_from_python_by_class_or_name(given: type | str) -> None:
    plan = compile_sql(TABLES + QUERY, functions={"F": given})
    assert plan.functions["f"].class_name == "tests.planner.declared.Words"
    (call,) = [operator for operator in plan.operators if isinstance(operator, Correlate)]
    assert call.function == "f"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (declared.Outer.Inner, "class Outer.Inner of tests.planner.declared cannot be loaded by a run"),
        (int, "builtins.int is no function"),
        ("nowhere.Words", "the class nowhere.Words cannot be loaded"),
        ("Words", "expected the dotted name of a Python class, found 'Words'"),
    ],
)
def test_a_class_that_a_run_could_not_load_is_not_registered(given: type | str, message: str) -> None:
    with pytest.raises(hintplan.SqlError, match="function 'f': ") as caught:
        compile_sql(TABLES + QUERY, functions={"f": given})
    assert message in str(caught.value)


@pytest.mark.parametrize("words", ["TEMPORARY FUNCTION", "TEMPORARY SYSTEM FUNCTION", "FUNCTION IF NOT EXISTS"])
def test_all_forms_of_create_function_declare_one(words: str) -> None:
    script = create("tests.planner.declared.Words").replace("CREATE FUNCTION", f"CREATE {words}")
    assert compile_sql(script, allow_modules=("tests",)).functions["f"].kind == "table"


def test_if_not_exists_keeps_the_first_declaration_and_drop_makes_room() -> None:
    second = "CREATE FUNCTION IF NOT EXISTS F AS 'tests.planner.declared.Clean' LANGUAGE PYTHON;"
    script = create("tests.planner.declared.Words").replace(QUERY, second)
    kept = compile_sql(f"{script}\n{QUERY}", allow_modules=("tests",))
    assert kept.functions["f"].class_name.endswith("Words")
    dropped = f"{script}\nDROP FUNCTION f; {second} INSERT INTO s SELECT id, f(c) FROM t;"
    assert compile_sql(dropped, allow_modules=("tests",)).functions["f"].class_name.endswith("Clean")


@pytest.mark.parametrize(
    ("statement", "place", "message", "hint"),
    [
        ("CREATE FUNCTION g AS 'com.shop.F'", (1, 34), "a function without LANGUAGE is one in JAVA", "LANGUAGE PYTHON"),
        ("CREATE FUNCTION g AS 'com.shop.F' LANGUAGE JAVA", (1, 35), "functions in JAVA are not supported", "Python"),
        ("CREATE FUNCTION g AS 'com.shop.F' LANGUAGE SCALA", (1, 35), "functions in SCALA are not supported", "Python"),
        ("CREATE FUNCTION g AS 'a.B' LANGUAGE PYTHON USING JAR 'x'", (1, 44), "USING is not supported", "importable"),
        ("CREATE FUNCTION g AS a.B LANGUAGE PYTHON", (1, 22), "expected the name of a class, found 'a'", "quotes"),
        ("CREATE FUNCTION g 'a.B' LANGUAGE PYTHON", (1, 19), "expected AS", "'module.Class' LANGUAGE PYTHON"),
        ("CREATE FUNCTION db.g AS 'a.B' LANGUAGE PYTHON", (1, 17), "'db.g' lies in another catalog", "write 'g'"),
        ("CREATE FUNCTION trim AS 'a.B' LANGUAGE PYTHON", (1, 17), "TRIM is a built-in function", "another name"),
        ("CREATE FUNCTION g AS 'B' LANGUAGE PYTHON", (1, 22), "the dotted name of a Python class", "module.Class"),
        ("DROP FUNCTION g", (1, 15), "there is no function 'g'", "there are no declared functions"),
    ],
)  # fmt: skip
def test_wrong_declarations_are_refused_where_they_are_wrong(
    statement: str, place: tuple[int, int], message: str, hint: str
) -> None:
    found = refused(f"{statement};", "a", "tests")
    assert message in found.message
    assert ((found.line, found.column), hint in (found.hint or "")) == (place, True)


def test_a_declared_function_hides_a_built_in_one_and_a_note_says_so() -> None:
    script = create("tests.planner.declared.Clean").replace("FUNCTION f", "FUNCTION upper").replace(QUERY, "")
    done = compile_script(f"{script} INSERT INTO s SELECT id, UPPER(c) FROM t;", allow_modules=("tests",))
    assert done.plan.operator("correlate_upper")
    (found,) = done.findings
    assert found.diagnostic.message == "'upper' hides the built-in function UPPER from here on"


def test_a_function_is_declared_once_and_dropped_as_what_it_is() -> None:
    again = create("tests.planner.declared.Words").replace(QUERY, "CREATE FUNCTION F AS 'a.B' LANGUAGE PYTHON;")
    assert "function 'F' is declared twice" in refused(again, "tests").message
    wrong = create("tests.planner.declared.Words").replace(QUERY, "DROP TEMPORARY FUNCTION f;")
    assert refused(wrong, "tests").hint == "write DROP FUNCTION f"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoFunction", "NoFunction is no function"),
        ("NoArguments", "NoArguments does not declare its arguments as a tuple of types"),
        ("ArgumentsInOneText", "ArgumentsInOneText does not declare its arguments as a tuple of types"),
        ("NoResult", "NoResult does not declare its result"),
        ("BadType", "argument 2 of tests.planner.declared.BadType: type VARIANT is not supported"),
        ("NeverNull", "is declared STRING NOT NULL, but NULL is passed to functions, as None"),
        (
            "TwoAlike",
            "the result of tests.planner.declared.TwoAlike: two fields of a ROW are called 'A', up to their case",
        ),
        ("Reserved", "column names that start with '__' are reserved: '__a'"),
    ],
)
def test_what_a_class_does_not_say_properly_is_told_at_its_name(name: str, message: str) -> None:
    found = refused(create(f"tests.planner.declared.{name}"), "tests")
    assert message in found.message
    assert (found.line, found.column) == (3, 22)
    assert found.hint


def test_a_scalar_function_may_return_a_row() -> None:
    found = read_declaration(declared.RowOfScalar, "m.RowOfScalar")
    assert found.output == (Column(name="f0", type="ROW<a INT, b STRING>"),)


def test_a_single_column_that_is_a_row_in_a_row_stays_one() -> None:
    class Nested(declared.Plain):
        function_kind, arguments, result = "table", (), "ROW<r ROW<a INT>, xs ARRAY<INT> NOT NULL>"

    found = read_declaration(Nested, "m.Nested")
    assert [(c.name, c.type) for c in found.output] == [("r", "ROW<a INT>"), ("xs", "ARRAY<INT> NOT NULL")]


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("", "does not define eval", ""),
        ("eval = 5", "does not define eval", ""),
        ("def eval(self, a): ...", "eval of misfits.F is no async def, but it is awaited", "write async def eval(...)"),
        ("async def eval(self): ...", "cannot be called with 1 argument: too many positional arguments", "declare as"),
        ("async def eval(self, a, b): ...", "with 1 argument: missing a required argument: 'b'", "declare as"),
        ("async def eval(self, a, *, b): ...", "with 1 argument: missing a required", "declare as"),
        ("async def eval(self, a): yield a", "eval of misfits.F yields, but it has to return one value", "return"),
        ("def __init__(self, url): ...", "is created without arguments, which its constructor does not allow", "open"),
        ("def open(self, context): ...", "open of misfits.F is no async def", "write async def open(...)"),
        ("async def open(self): ...", "open of misfits.F cannot be called with 1 argument", "declare as"),
        ("async def close(self, now): ...", "close of misfits.F cannot be called with no arguments", "declare as"),
    ],
)
@pytest.mark.parametrize("awaited", [True, False])
def test_a_class_that_cannot_be_called_as_it_declares_is_refused_where_it_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str, hint: str, awaited: bool
) -> None:
    if not awaited:  # the same mistakes the other way round
        body = body.replace("async def", "DEF").replace("def ", "async def ").replace("DEF", "def")
        body = body.replace("async def __init__", "def __init__")
        message = message.replace("is no async def, but it is awaited", "is an async def, but nobody awaits it")
        message = message.replace("is no async def", "is an async def")
        hint = hint.replace("write async def", "write def")
    kind = "async-scalar" if awaited else "scalar"
    usual = "" if "eval" in body or not body else f"    {'async ' * awaited}def eval(self, a): ...\n"
    text = f"class F:\n    function_kind, arguments, result = {kind!r}, ('STRING',), 'STRING'\n    {body}\n{usual}"
    (tmp_path / "misfits.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "misfits", raising=False)
    declaration = "CREATE FUNCTION f AS 'misfits.F' LANGUAGE PYTHON;"
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{TABLES}{declaration}", file="job.sql", allow_modules=["misfits"])
    (problem,) = caught.value.diagnostics
    assert (problem.file, problem.line, problem.column) == ("job.sql", 3, 22)
    assert message in problem.message
    assert hint in (problem.hint or "")
    monkeypatch.delitem(sys.modules, "misfits", raising=False)


def test_methods_may_be_static_decorated_or_take_more_than_they_are_given() -> None:
    def keeps(call: Any) -> Any:
        @functools.wraps(call)
        def kept(*given: Any) -> Any:
            return call(*given)

        return kept

    async def answer(a: Any, b: Any = None) -> Any: ...

    class Static(declared.Awaited):
        function_kind, arguments, result = "async-scalar", ("STRING",), "STRING"
        eval = staticmethod(answer)

    class Decorated(declared.Awaited):
        function_kind, arguments, result = "async-scalar", ("STRING",), "STRING"

        @keeps
        async def eval(self, a: Any) -> Any: ...

    class OfTheClass(declared.Plain):
        function_kind, arguments, result = "table", ("STRING",), "STRING"

        def __init__(self, size: int = 3) -> None: ...

        @classmethod
        def eval(cls, *given: Any) -> Any:
            yield given

    for fine in (Static, Decorated, OfTheClass):
        assert read_declaration(fine, "m.Fine").arguments == ("STRING",)


def test_what_is_no_class_declaration_at_all_is_refused() -> None:
    with pytest.raises(ClassRefusal, match="is no function"):
        read_declaration(dict, "builtins.dict")


def test_settings_of_calls_are_overridden_by_name_or_synonym() -> None:
    script = create("tests.planner.declared.Locate").replace("SELECT id, w", "SELECT id, CAST(w AS STRING)")
    script = f"SET 'table.exec.async-table.max-retries' = '7';\n{script.replace('W(w)', 'W(w, x)')}"
    done = compile_script(script, {"table.exec.async-table.max-attempts": "2"}, allow_modules=("tests",))
    call = done.plan.operator("correlate_f")
    assert isinstance(call, Correlate)
    assert call.retry is not None
    assert (call.retry.max_attempts, call.settings["retry"].origin["config"]) == (2, {"max-attempts": 2})
    said = compile_script(script, allow_modules=("tests",))
    place = said.positions["correlate_f", "retry.max-attempts", "config"]
    assert (place.line, place.column) == (1, 5)


def test_two_names_of_one_setting_on_the_command_line_are_refused() -> None:
    both = {"table.exec.async-table.max-attempts": "2", "table.exec.async-table.max-retries": "2"}
    with pytest.raises(hintplan.SqlError, match="are two names of one setting"):
        compile_sql(TABLES, both)


def test_the_same_script_gives_the_same_bytes_with_functions() -> None:
    script = create("tests.planner.declared.Words")
    once, twice = (hintplan.dumps(compile_sql(script, allow_modules=("tests",))) for _ in range(2))
    assert once == twice


def test_the_sql_client_creates_shows_and_drops_functions() -> None:
    session = CompileSession.open(allow_modules=("tests",))
    script = """CREATE FUNCTION words AS 'tests.planner.declared.Words' LANGUAGE PYTHON; SHOW USER FUNCTIONS;
    SHOW FUNCTIONS LIKE 'w%s'; DROP FUNCTION Words; SHOW USER FUNCTIONS;"""
    found = [execute_statement(session, unit).action for unit in session.feed(script)]
    told = [action.text for action in found if isinstance(action, actions.Told)]
    shown = [action.rows for action in found if isinstance(action, actions.ShowRows)]
    assert told == ["function words created", "function Words dropped"]
    assert shown == [(("words",),), (("words",),), ()]
