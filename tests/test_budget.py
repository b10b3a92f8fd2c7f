"""Seconds of test files are summed over workers, without fixtures of the session, and compared with budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import budget
from tests.budget import Budgets, Times, load_budgets, main

pytest_plugins = ["pytester"]

SLEEPING = """
import time
import pytest

@pytest.fixture(scope="session")
def inner():
    time.sleep(0.3)

@pytest.fixture(scope="session")
def shared(inner):
    time.sleep(0.3)

def test_quick():
    pass

def test_with_fixture(shared):
    time.sleep(0.2)

@pytest.mark.parametrize("number", range(4))
def test_slow(number):
    time.sleep(0.1)
"""


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


def run(pytester: pytest.Pytester, records: Path, *arguments: str, seconds: float = 0.5) -> pytest.RunResult:
    """Run the files of ``pytester`` with a budget for each, in this process unless it has workers."""
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(budget.HERE.parent)!r})
        from pathlib import Path
        from tests.budget import Budgets, Reporter, Shared

        def pytest_configure(config):
            config.addinivalue_line("markers", "nightly: the rest")
            config.pluginmanager.register(Shared())
            if not hasattr(config, "workerinput"):
                budgets = Budgets(default={seconds}, files={{"test_patient.py": 5}})
                config.pluginmanager.register(Reporter(config, budgets, Path({str(records)!r})))
        """
    )
    return pytester.runpytest("-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["", "two workers"])
def test_a_file_past_its_budget_is_told_and_the_run_does_not_fail_of_it(
    pytester: pytest.Pytester, records: Path, workers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytester.makepyfile(test_greedy=SLEEPING, test_patient=SLEEPING, test_small="def test_one(): pass")
    done = run(pytester, records, *workers)
    assert done.ret == 0
    done.stdout.re_match_lines([r" +0\.[67] s  test_greedy.py: past its budget of 0.5 s"])
    done.stdout.no_re_match_line(r".*test_(patient|small).*past its budget.*")
    capsys.readouterr()
    assert main(records) == 1
    assert "all tests: past their budgets: 1" in capsys.readouterr().out


def test_what_runs_nightly_has_no_budget(pytester: pytest.Pytester, records: Path) -> None:
    marked = SLEEPING.replace("@pytest.mark.parametrize", "@pytest.mark.nightly\n@pytest.mark.parametrize")
    pytester.makepyfile(test_greedy=marked)
    run(pytester, records).stdout.no_re_match_line(r".*past its budget.*")
    assert main(records) == 0


def test_the_slowest_files_of_many_are_printed(pytester: pytest.Pytester, records: Path) -> None:
    pytester.makepyfile(**{f"test_{number:02}": "def test_one(): pass" for number in range(12)}, test_greedy=SLEEPING)
    printed = run(pytester, records).stdout
    printed.re_match_lines([r"=+ slowest files, of 13 =+", r" +0\.[67] s  test_greedy.py", r".* all files"])
    printed.re_match_lines([r" +0\.6 s  fixtures of the session"])
    assert sum("s  test_" in line and "past" not in line for line in printed.lines) == budget.SLOWEST


def test_a_budget_needs_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text('default = 3\n[files]\n"tests/test_a.py" = {seconds = 5}\n')
    with pytest.raises(ValueError, match=r"tests/test_a.py needs seconds and a reason"):
        load_budgets(file)


def test_the_budgets_are_of_files_that_there_are() -> None:
    budgets = load_budgets()
    assert [file for file in budgets.files if not (budget.HERE.parent / file).is_file()] == []
    assert [file for file, seconds in budgets.files.items() if seconds <= budgets.default] == []


def test_without_a_run_there_is_nothing_to_praise(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(records) == 1
    assert "no run has been measured" in capsys.readouterr().err


def test_the_worst_is_first() -> None:
    times = Times()
    times.files.update({"a": 12.0, "b": 30.0, "c": 9.0, "d": 40.0})  # type: ignore[dict-item]
    past = times.past(Budgets(default=10, files={"d": 35}))
    assert past == {"b": (30.0, 10), "d": (40.0, 35), "a": (12.0, 10)}
    assert list(past) == ["b", "d", "a"]
