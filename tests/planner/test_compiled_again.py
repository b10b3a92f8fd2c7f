"""A plan that nobody edited has no edits: compiled onto itself, with and without ``--keep-edits``, its bytes stay."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import hintplan
from hintplan.plans.commands.root import root
from hintplan.plans.merge.overwrite import edits_in
from hintplan.plans.merge.rebase import rebase_plan
from tests.planner.goldens import ALLOWED, CASES, read_cases, with_tables

pytestmark = [pytest.mark.slow, pytest.mark.part(of=2)]

ROOT = Path(__file__).parent.parent.parent
ENRICH = ROOT / "examples" / "enrich"
JOBS = {
    **{f"{path.parent.parent.name}/{path.stem}": (path,) for path in ROOT.glob("examples/*/jobs/*.sql")},
    **{
        f"enrich with {name}": (ENRICH / f"planes_{name}.sql", ENRICH / "enrich.sql") for name in ("postgres", "sqlite")
    },
    "trips": (ROOT / "examples/functions/trips.sql",),
    "flights": (ROOT / "examples/flights/flights.sql",),
    "sales": (ROOT / "examples/cache/sales.sql",),
    **{path.stem: (path,) for path in ROOT.glob("tests/flink/jobs/*.sql")},
}
"""The files of each job, which are one script."""


def plans_of(path: Path) -> Iterator[hintplan.Plan]:
    """The plan of each case that compiles."""
    for tables, case in with_tables(read_cases(path)):
        try:
            yield hintplan.compile_sql(f"{tables}\n{case.sql}", file="job", allow_modules=ALLOWED)
        except hintplan.SqlError:
            continue


@pytest.mark.parametrize("path", sorted(CASES.glob("*.test")), ids=lambda path: path.stem)
def test_the_plan_of_a_case_is_carried_onto_itself(path: Path) -> None:
    for plan in plans_of(path):
        assert edits_in(plan) == ()
        again = rebase_plan(plan, plan)
        assert again.plan is not None
        assert hintplan.dumps(again.plan) == hintplan.dumps(plan)
        assert (again.kept, again.changed_underneath, again.dropped) == ((), (), ())


def test_no_example_is_left_out() -> None:
    scripts = {path for path in ROOT.glob("examples/**/*.sql") if "INSERT INTO" in path.read_text()}
    assert scripts <= {path for paths in JOBS.values() for path in paths}


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_is_compiled_onto_its_plan(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(JOBS[job][0].parent))
    monkeypatch.delitem(sys.modules, "nearby", raising=False)
    Path("job.sql").write_text("\n".join(path.read_text() for path in JOBS[job]))
    words = ["compile", "job.sql", "--allow-module", "nearby", "-o", "plan.json"]
    first = CliRunner().invoke(root, words)
    assert first.exit_code == 0, first.exception
    compiled = Path("plan.json").read_bytes()
    for more in ([], ["--keep-edits", "plan.json"], ["--overwrite"]):
        again = CliRunner().invoke(root, [*words, *more])
        assert again.exit_code == 0, again.exception
        assert Path("plan.json").read_bytes() == compiled
