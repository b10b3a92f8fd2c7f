"""Notes how long each test file takes, and compares it with the file's budget in tests/budgets.toml.

At the end of a run, its slowest files are printed and those past their budgets. `make budget`, or `python -m
tests.budget`, prints the latter of the last run with each choice of marks, and fails if there are any. Fixtures of a
session are counted apart, for it is chance which file starts them. A file has no budget if its `nightly` tests ran.
"""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Budgets", "Measured", "Shared", "Times", "load_budgets", "main", "register"]

HERE = Path(__file__).parent
RECORDS = HERE.parent / ".pytest_cache" / "hintplan-seconds"
SLOWEST = 10
_SHARED = "seconds of session fixtures"


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Seconds for a file that has no budget of its own, and for those that have one."""

    default: float
    files: Mapping[str, float]

    def of(self, file: str) -> float:
        return self.files.get(file, self.default)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Seconds of a run's files, and what was past its budget; written down for `make budget`."""

    run: str
    ended: str
    past: dict[str, tuple[float, float]]


@dataclass(kw_only=True)
class Times:
    """Seconds of each file, of session fixtures, and the files of which `nightly` tests ran."""

    files: Counter[str] = field(default_factory=Counter)
    shared: float = 0
    nightly: set[str] = field(default_factory=set)

    def add(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        shared = sum(seconds for name, seconds in report.user_properties if name == _SHARED) if is_setup(report) else 0
        self.files[file] += report.duration - shared  # type: ignore[assignment]
        self.shared += shared
        if "nightly" in report.keywords:
            self.nightly.add(file)

    def past(self, budgets: Budgets) -> dict[str, tuple[float, float]]:
        """Give seconds and budget of each file past its budget, the worst first."""
        past = {
            file: (round(seconds, 1), budgets.of(file))
            for file, seconds in self.files.items()
            if seconds > budgets.of(file) and file not in self.nightly
        }
        return dict(sorted(past.items(), key=lambda item: item[1][1] - item[1][0]))


def is_setup(report: pytest.TestReport) -> bool:
    return report.when == "setup"


def load_budgets(path: Path = HERE / "budgets.toml") -> Budgets:
    """Read the budgets; each of a file says its reason."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    for file, entry in document["files"].items():
        if entry.keys() != {"seconds", "reason"} or not entry["reason"]:
            raise ValueError(f"{path}: {file} needs seconds and a reason, and nothing else")
    files = {file: float(entry["seconds"]) for file, entry in document["files"].items()}
    return Budgets(default=float(document["default"]), files=files)


class Shared:
    """Times fixtures of the session, in the process that sets them up, and adds that to the test's report."""

    def __init__(self) -> None:
        self._depth = 0
        self._seconds = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope != "session":
            return (yield)
        self._depth += 1
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            self._depth -= 1
            if not self._depth:  # one fixture may set up another
                self._seconds += time.perf_counter() - started

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        if is_setup(report) and self._seconds:
            report.user_properties.append((_SHARED, self._seconds))
            self._seconds = 0.0
        return report


class Reporter:
    """Collects the reports of all workers, prints the sum and writes it down."""

    def __init__(self, config: pytest.Config, budgets: Budgets, records: Path) -> None:
        self._run = config.getoption("markexpr") or "all tests"
        self._budgets = budgets
        self._records = records
        self._times = Times()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._times.add(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        times = self._times
        if len(times.files) > SLOWEST:
            terminalreporter.section(f"slowest files, of {len(times.files)}")
            for file, seconds in times.files.most_common(SLOWEST):
                terminalreporter.write_line(f"{seconds:7.1f} s  {file}")
            terminalreporter.write_line(f"{sum(times.files.values()):7.1f} s  all files")
            terminalreporter.write_line(f"{times.shared:7.1f} s  fixtures of the session")
        past = times.past(self._budgets)
        for line in told(past):
            terminalreporter.write_line(line)
        record(self._records, Measured(run=self._run, ended=time.strftime("%Y-%m-%d %H:%M"), past=past))


def told(past: Mapping[str, tuple[float, float]]) -> list[str]:
    return [f"{seconds:7.1f} s  {file}: past its budget of {budget:g} s" for file, (seconds, budget) in past.items()]


def record(folder: Path, measured: Measured) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() else "-" for c in measured.run)
    (folder / f"{name}.json").write_text(json.dumps(asdict(measured)), encoding="utf-8")


def register(config: pytest.Config) -> None:
    """Measure in each process; only the one that has all reports tells."""
    config.pluginmanager.register(Shared(), "shared fixtures")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config, load_budgets(), RECORDS), "budgets")


def main(records: Path = RECORDS) -> int:
    """Print what was past its budget; end with 1 if anything was, or if nothing is known."""
    known = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(records.glob("*.json"))]
    if not known:
        print("no run has been measured; make test, then make budget", file=sys.stderr)
    for measured in known:
        print(f"{measured['ended']}, {measured['run']}: past their budgets: {len(measured['past']) or 'none'}")
        for line in told(measured["past"]):
            print(line)
    return 1 if not known or any(measured["past"] for measured in known) else 0


if __name__ == "__main__":
    sys.exit(main())
