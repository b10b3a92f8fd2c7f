"""``hintplan run`` as a process: output, exit codes, signals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from click.testing import CliRunner

import hintplan as api
from hintplan.runtime.run.command import run_command
from hintplan.runtime.spark.versions import version_notes
from tests.hostile_modules import NAMES, lay_out
from tests.plans.in_process import hintplan
from tests.sample import sampled
from tests.spark.programs import CUSTOMER_ROWS, add_rows, expected, revenue_plan, sample

DEADLINE_SECONDS = 180
SIGNALS = [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.integration)]
ROOT = Path(__file__).parents[3]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hintplan", "run", *arguments, "--master", "local[2]"]


def digest_of(plan: Path) -> str:
    """The digest, counted here: of the bytes as hintplan lays plans out."""
    return hashlib.sha256(plan.read_bytes()).hexdigest()[:16]


def run(directory: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=directory,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def refused(directory: Path, *arguments: str, java: str = "none") -> subprocess.CompletedProcess[str]:
    """What a run says that ends before Spark starts; one that continues says that it misses Java.

    A process of its own: this one may have a session of Spark, which a run would use.
    """
    return run(directory, *arguments, JAVA_HOME=str(directory / java))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", **more}


@contextmanager
def started(directory: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    with open(directory / "stdout", "w") as out, open(directory / "stderr", "w") as err:
        process = subprocess.Popen(
            command(*arguments), cwd=directory, env=environment(**more), stdout=out, stderr=err, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"ended with {process.returncode}")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A directory with a plan whose result goes to a print sink, and its input."""
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 30))
    api.dump(revenue_plan(tmp_path, sink={"connector": "print"}), tmp_path / "plan.json")
    return tmp_path


def printed(text: str) -> dict[str, tuple[int, float]]:
    """What lines like ``+I[DE, 3, 1.5]`` add up to, by country."""
    result: dict[str, tuple[int, float]] = {}
    for line in text.splitlines():
        kind, country, count, revenue = line[:2], *line[3:-1].split(", ")
        if kind in ("+I", "+U"):
            result[country] = (int(count), float(revenue))
        else:
            assert result[country] == (int(count), float(revenue)), line
    return result


@pytest.mark.spark
def test_once_prints_rows_on_stdout_and_a_line_per_batch_on_stderr(job: Path) -> None:
    """Beside the plan are modules with the names of all that Python has: neither driver nor workers import one.

    And a file has a name that a JVM of this locale could not decode.
    """
    imported = lay_out(job)
    file = next((job / "orders").glob("*.json"))
    file.rename(file.with_name("größe 東京.json"))
    done = subprocess.run(
        [Path(sys.executable).with_name("hintplan"), *command("plan.json", "--once", "--checkpoint", "state")[3:]],
        cwd=job, env=environment(LC_ALL="C"), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False,
    )  # fmt: skip
    assert not imported.exists(), imported.read_text()
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        (job / f"{name}.py").unlink()  # those who start Python by -m below would import some
    assert printed(done.stdout) == {str(k or "null"): v for k, v in expected(sample(0, 30)).items()}
    # On a slow machine a run says that it is alive; an older Spark has no restricted mode.
    alive = re.compile(r" at work for |^starting Spark \d\.\d \(Java \d+, local\[2\]\)( · .*)?$|^planning( · .*)?$")
    notes = set(version_notes(pyspark.__version__))
    lines = [line for line in done.stderr.splitlines() if not alive.search(line) and line not in notes]
    assert lines[0] == f"revenue: digest {digest_of(job / 'plan.json')}"
    assert lines[1].startswith("sink_result batch 0: ")
    assert " rows in · " in lines[1]
    assert "aggregate_t 3 rows" in lines[-2]
    assert lines[-1].startswith("finished after ")
    assert (job / "state" / "sink_result").is_dir()

    changed = (job / "plan.json").read_text(encoding="utf-8").replace("id % 10 <> 3", "id % 10 <> 4")
    (job / "changed.json").write_text(changed, encoding="utf-8")
    unread = refused(job, "changed.json", "--once", "--checkpoint", "state")
    assert unread.returncode == 1
    assert "calc_o" in unread.stderr
    guarded = refused(job, "changed.json", "--once", "--checkpoint", "state", "--allow-fact-edits")
    assert guarded.returncode == 1
    assert "aggregate_t and join_o_c start empty (calc_o.filter id % 10 <> 3 → id % 10 <> 4)" in guarded.stderr
    assert "Traceback" not in guarded.stderr


@pytest.mark.parametrize("known", [True, False])
def test_only_the_expected_plan_runs(job: Path, known: bool) -> None:
    digest = digest_of(job / "plan.json")
    relaid = json.dumps(json.loads((job / "plan.json").read_text()))
    edited = relaid.replace('"ttl": "0 ms"', '"ttl": "1 d"', 1)
    assert edited != relaid
    (job / "relaid.json").write_text(relaid)
    (job / "edited.json").write_text(edited)
    done = refused(job, "relaid.json" if known else "edited.json", "--once", "--expect", digest)
    assert done.returncode == 1
    assert ("java" in done.stderr) == known
    assert ("it is not the plan that was reviewed" in done.stderr) == (not known)


def test_what_a_run_may_reach_is_asked_before_spark_starts(job: Path) -> None:
    plan = api.load(job / "plan.json")
    options = {**plan.tables["orders"].options, "path": "webhdfs://files.example.com:9870/orders"}
    orders = replace(plan.tables["orders"], options=options)
    api.dump(replace(plan, tables={**plan.tables, "orders": orders}), job / "plan.json")
    policy = refused(job, "plan.json", "--once")
    assert policy.returncode == 1
    assert "java" not in policy.stderr
    assert policy.stderr.splitlines()[-2:] == [
        "tables.orders.options.path: the run may not reach the file system webhdfs://files.example.com:9870",
        "  hint: whoever starts the run can allow it: --allow-scheme webhdfs://files.example.com:9870",
    ]
    (job / "other.toml").write_text('[run]\nallow-scheme = ["webhdfs"]\n')
    for allowed in (["--allow-scheme", "webhdfs://files.example.com:9870"], ["--policy", "other.toml"]):
        assert "java" in refused(job, "plan.json", "--once", *allowed).stderr
    (job / "other.toml").rename(job / "hintplan.toml")
    assert "java" in refused(job, "plan.json", "--once").stderr
    narrowed = refused(job, "plan.json", "--once", "--allow-path", str(job / "elsewhere"))
    assert "--allow-path" in narrowed.stderr
    wrong = refused(job, "plan.json", "--once", "--allow-host", "https://x/y")
    assert (wrong.returncode, "'https://x/y' is no host" in wrong.stderr) == (64, True)


@pytest.mark.spark
def test_files_of_a_query_with_several_sinks_are_below_where_the_command_runs(tmp_path: Path) -> None:
    options = "'connector' = 'filesystem', 'format' = 'json'"
    script = f"""
        CREATE TABLE o (k BIGINT) WITH ({options}, 'path' = 'o');
        CREATE TABLE r (k BIGINT) WITH ({options}, 'path' = 'some/r');
        CREATE TABLE q (k BIGINT) WITH ('connector' = 'print');
        INSERT INTO r SELECT k FROM o;
        INSERT INTO q SELECT k FROM o;"""
    api.dump(api.compile_sql(script, name="several"), tmp_path / "plan.json")
    add_rows(tmp_path, "o", [{"k": 1}])
    done = run(tmp_path, "plan.json", "--once")
    assert (done.returncode, done.stdout) == (0, "+I[1]\n"), done.stderr
    (file,) = (tmp_path / "some" / "r").glob("part-*.json")
    assert file.read_text() == '{"k":1}\n'


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_json_owns_stdout_and_rows_move_to_stderr(job: Path) -> None:
    done = hintplan("run", "plan.json", "--once", "--json", folder=job)
    assert done.returncode == 0, done.stderr
    *records, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["event"] for record in records} <= {"batch", "running"}  # the latter of a batch that takes long
    batches = [record for record in records if record["event"] == "batch"]
    assert end["event"] == "end"
    assert end["status"] == "finished"
    assert end["rows_in"] == sum(record["rows_in"] for record in batches) == 30 + len(CUSTOMER_ROWS)
    assert batches[-1]["operators"]["aggregate_t"]["state_rows"] == 3
    assert any(line.startswith("+I[DE, ") for line in done.stderr.splitlines())
    assert "no --checkpoint: state is kept in a temporary directory" in done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_stops_after_the_batch(job: Path, number: signal.Signals, code: int) -> None:
    with started(job, "plan.json", "--checkpoint", "state", "--trigger", "200 ms") as process:
        wait_for(lambda: "batch 0" in (job / "stderr").read_text(), process)
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == code
    said = (job / "stderr").read_text()
    assert "stopping after this batch" in said
    assert said.splitlines()[-1].startswith("stopped after ")
    assert "Exception" not in said


NEVER_ENDS = """
from hintplan.runtime.functions import ScalarFunction


class Wait(ScalarFunction):
    arguments, result = ("BIGINT",), "BIGINT"

    def eval(self, k):
        return len(open({pipe!r}).read())
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("is_at_work", "number"),
    sampled([(False, signal.SIGINT), (True, signal.SIGINT), (True, signal.SIGTERM)], keep=1),
)
def test_a_batch_that_never_ends_is_stopped_by_a_second_signal_or_after_the_grace_time(
    job: Path, is_at_work: bool, number: signal.Signals
) -> None:
    pipe = job / "pipe"
    os.mkfifo(pipe)
    (job / "waits.py").write_text(NEVER_ENDS.format(pipe=str(pipe)), encoding="utf-8")
    (job / "job.sql").write_text(
        """CREATE TABLE o (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'orders');
        CREATE TABLE r (id BIGINT) WITH ('connector' = 'print');
        CREATE FUNCTION wait AS 'waits.Wait' LANGUAGE PYTHON;
        INSERT INTO r SELECT wait(id) FROM o;""",
        encoding="utf-8",
    )
    compiled = [sys.executable, "-m", "hintplan", "compile", "job.sql", "--allow-module", "waits", "-o", "waits.json"]
    path = os.pathsep.join((str(ROOT), str(job)))
    subprocess.run(compiled, cwd=job, env=environment(PYTHONPATH=path), check=True, capture_output=True)

    held: list[int] = []

    def is_called() -> bool:
        """Whether the function has opened the pipe, which is held open from then on."""
        try:
            held.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads
                raise
        return bool(held)

    with started(job, "waits.json", "--allow-module", "waits", "--grace", "300 ms", PYTHONPATH=path) as process:
        wait_for(lambda: "no --checkpoint" in (job / "stderr").read_text(), process)
        if is_at_work:
            wait_for(is_called, process)
        process.send_signal(number)
        if number == signal.SIGINT:
            wait_for(lambda: "once more to stop now" in (job / "stderr").read_text(), process)
            process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == 128 + number
    for file in held:
        os.close(file)
    *_, before, last = (job / "stderr").read_text().splitlines()
    assert last.startswith("stopped after 0 batches")
    assert (before == "the batch has not ended in time and is stopped; it runs again at the next start") == (
        number == signal.SIGTERM
    )


@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_spark_is_stopped_changes_nothing(job: Path, number: signal.Signals, code: int) -> None:
    with started(job, "plan.json") as process:
        wait_for(lambda: "no --checkpoint" in (job / "stderr").read_text(), process)
        process.send_signal(number)
        wait_for(lambda: "stopped after " in (job / "stderr").read_text(), process)
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == code
    assert (job / "stderr").read_text().splitlines()[-1].startswith("stopped after ")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_failing_query_prints_its_root_cause_and_no_stack(job: Path) -> None:
    plan = (job / "plan.json").read_text(encoding="utf-8").replace("id % 10 <> 3", "1 / (id - 3) > 0")
    (job / "plan.json").write_text(plan, encoding="utf-8")
    done = hintplan("run", "plan.json", "--once", "--allow-fact-edits", folder=job)
    assert done.returncode == 1
    assert "the query of sink_result failed: " in done.stderr
    assert "[DIVIDE_BY_ZERO] Division by zero" in done.stderr
    assert "\tat " not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_old_java_is_named_with_what_to_install(job: Path) -> None:
    java = job / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    done = refused(job, "plan.json", "--once", java="jdk")
    assert done.returncode == 1
    assert "Spark needs Java 17 or newer" in done.stderr
    assert "is Java 11" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr


def test_a_java_that_fails_says_why(job: Path) -> None:
    java = job / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'Could not reserve enough space for object heap' >&2\nexit 1\n")
    for mode, said in ((0o755, "Could not reserve enough space for object heap"), (0o644, "Permission denied")):
        java.chmod(mode)
        done = refused(job, "plan.json", "--once", java="jdk")
        assert done.returncode == 1
        assert f"Spark needs Java, and {java} -version fails: " in done.stderr
        assert said in done.stderr


ANSWERS = """[ "$1" = -version ] && echo 'version "17.0.1"' >&2 && exit"""
PASSES_ON = """
run=$(ps -o ppid= $(ps -o ppid= $PPID))
sh -c "while kill -0 $$; do :; done; kill -TERM $run" > /dev/null 2>&1 &
kill -TERM $$"""


@pytest.mark.parametrize(
    ("java", "code"),
    [
        ("kill -INT $$", 130),
        ("kill -TERM $$", 143),
        (f"{ANSWERS}; printf '\\0\\n'; printf '%s\\0' sh -c 'kill -TERM $$'", 143),
        (ANSWERS + PASSES_ON, 143),
    ],
    ids=["java -version, SIGINT", "java -version, SIGTERM", "the JVM", "the launcher, before the run itself"],
)
def test_a_signal_that_java_gets_first_stops_a_run_that_starts(job: Path, java: str, code: int) -> None:
    program = job / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/bash\n{java}\n")
    program.chmod(0o755)
    done = refused(job, "plan.json", "--once", java="jdk")
    assert done.returncode == code, done.stderr
    assert "cannot be started" not in done.stderr
    assert "needs Java" not in done.stderr


def test_a_missing_java_is_named_with_what_to_install(job: Path) -> None:
    done = refused(job, "plan.json", "--once", java="nowhere")
    assert done.returncode == 1
    assert "there is no working bin/java" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--once", "--trigger", "5 s"], "--once processes the existing rows and stops"),
        (["--lease", "1 s", "--checkpoint", "c"], "a lease of 1 s is not possible; give one between 5 s"),
        (["--trigger", "5"], "write a duration such as '5 s'"),
        (["--master", "local", "--remote", "sc://x"], "give one of them"),
        (["--conf", "spark.x"], "expected key=value, found 'spark.x'"),
        (["--grace", "5"], "write a duration such as '5 s'"),
        (["--wait", "5 s"], "--wait is about a checkpoint that others may hold"),
        (["--lease", "60 s", "--checkpoint", "c", "--remote", "sc://x"], "--lease has no effect with --remote"),
        (["--max-restarts", "3"], "--max-restarts continues from a checkpoint"),
        (["--restart-delay", "3 s"], "set their number with --max-restarts"),
        (["--restart-delay", "0 s", "--max-restarts", "3", "--checkpoint", "c"], "--restart-delay must not be 0"),
        (["--watch"], "--watch records in the checkpoint which plan ran"),
        (["--watch", "--once", "--checkpoint", "c"], "--once processes the existing rows and stops; it has no --watch"),
        (["--watch", "--expect", "9f2c", "--checkpoint", "c"], "so --watch could apply no edit"),
        (["--watch", "--remote", "sc://x", "--checkpoint", "c"], "--watch applies no edits with --remote"),
        (["--health", "host:port"], "expected PORT or HOST:PORT, found 'host:port'"),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(run_command, ["plan.json", *arguments])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("key", ["spark.sql.shuffle.partitions", "spark.sql.ansi.enabled"])
def test_a_setting_that_would_have_no_effect_is_refused(job: Path, key: str) -> None:
    result = CliRunner().invoke(run_command, [str(job / "plan.json"), "--conf", f"{key}=1"])
    assert f"{key} cannot be set for a run" in str(result.exception)
