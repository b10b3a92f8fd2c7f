"""The start of a JVM: what Spark's launcher is given, and what becomes of a JVM that does not come up or is not wanted.

The launcher is a shell script here. Every test with the fixture ``spark`` has a JVM that was started in this way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkRuntimeError

from hintplan.runtime.jvm import class_archive
from hintplan.runtime.jvm.launch import Launch, launch


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Spark whose launcher writes its arguments and its environment to files, and does what ``jvm`` says."""
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(
        '#!/bin/sh\ncd "${0%/*}/.."\nprintf "%s\\n" "$@" > arguments.new\nenv > environment\n'
        "mv arguments.new arguments\n. ./jvm\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


def started(home: Path, jvm: str) -> Launch:
    """A launch whose launcher has written its files."""
    (home / "jvm").write_text(jvm)
    found = launch({"spark.master": "local[2]", "spark.x": "a b"})
    while not (home / "arguments").exists():
        time.sleep(0.01)
    return found


def environment(home: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (home / "environment").read_text().splitlines() if "=" in line)


def left(home: Path) -> list[Path]:
    return list(home.glob("hintplan-jvm-*"))


def test_spark_is_given_the_settings_as_pyspark_gives_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(home, "exit 0").abandon()
    assert (home / "arguments").read_text().splitlines() == [
        "--conf", "spark.master=local[2]", "--conf", "spark.x=a b", "pyspark-shell"
    ]  # fmt: skip
    (home / "arguments").unlink()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars 'a b.jar' pyspark-shell")
    started(home, "exit 0").abandon()
    assert (home / "arguments").read_text().splitlines()[4:] == ["--jars", "a b.jar", "pyspark-shell"]


def test_the_archive_and_what_the_user_set_are_options_of_the_jvm(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "archive", lambda: Path("/cache/x y.jsa"))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xss4m")
    started(home, "exit 0").abandon()
    options = environment(home)["SPARK_SUBMIT_OPTS"]
    assert '"-XX:SharedArchiveFile=/cache/x y.jsa"' in options
    assert options.endswith(" -Xss4m")
    assert environment(home)["SPARK_HOME"] == str(home)
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Xss4m"


def test_the_launcher_finds_its_classes_before_it_opens_a_hundred_jars(home: Path) -> None:
    jars = [
        home / "jars" / name for name in ("spark-launcher_2.13-4.3.0.jar", "spark-common-utils-java_2.13-4.3.0.jar")
    ]
    jars[0].parent.mkdir()
    for jar in jars:
        jar.touch()
    started(home, "exit 0").abandon()
    said = environment(home)["SPARK_LAUNCHER_OPTS"].split()
    assert f"-Xbootclasspath/a:{jars[0]}:{jars[1]}" in said


@pytest.mark.parametrize("name", ["spark-launcher_2.13-4.0.0.jar", "spark-common-utils_2.13-4.0.0.jar"])
def test_a_launcher_whose_classes_are_in_other_jars_is_left_alone(home: Path, name: str) -> None:
    (home / "jars").mkdir()
    (home / "jars" / name).touch()
    started(home, "exit 0").abandon()
    assert "bootclasspath" not in environment(home)["SPARK_LAUNCHER_OPTS"]


def test_a_launcher_below_a_directory_with_a_blank_is_left_alone(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's script splits the options at blanks."""
    other = tmp_path / "a b"
    (other / "jars").mkdir(parents=True)
    for name in ("spark-launcher_2.13-4.3.0.jar", "spark-common-utils-java_2.13-4.3.0.jar"):
        (other / "jars" / name).touch()
    (home / "bin").rename(other / "bin")
    monkeypatch.setenv("SPARK_HOME", str(other))
    started(other, "exit 0").abandon()
    assert "bootclasspath" not in environment(other)["SPARK_LAUNCHER_OPTS"]


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ({}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, "C.UTF-8"),
        ({"LC_CTYPE": "de_DE.ISO-8859-1"}, "C.UTF-8"),
        ({"LANG": "en_GB.UTF-8"}, None),
        ({"LC_ALL": "", "LC_CTYPE": "de_DE.utf8@euro"}, ""),
    ],
)
def test_the_jvm_takes_names_of_files_for_utf_8_in_any_locale(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str], given: str | None
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    started(home, "exit 0").abandon()
    assert environment(home).get("LC_ALL") == given


def test_a_jvm_that_ends_instead_of_coming_up_is_the_error_of_pyspark(home: Path) -> None:
    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"):
        started(home, "exit 3").gateway()
    assert left(home) == []


def test_a_jvm_that_ends_with_zero_instead_of_coming_up_is_an_error_too(home: Path) -> None:
    """PySpark waits for such a JVM for ever."""
    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"):
        started(home, "exit 0").gateway()


def test_an_interrupt_ends_the_jvm_that_is_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = started(home, "exec sleep 60")

    def interrupts(seconds: float) -> None:
        raise KeyboardInterrupt

    # Other threads sleep by the module itself.
    monkeypatch.setattr("hintplan.runtime.jvm.launch.time", SimpleNamespace(sleep=interrupts))
    with pytest.raises(KeyboardInterrupt):
        launched.gateway()
    assert launched.process.wait(50) == -9
    assert left(home) == []


def test_a_jvm_that_is_not_wanted_any_more_ends(home: Path) -> None:
    launched = started(home, "exec sleep 60")
    launched.abandon()
    assert launched.process.returncode == -9
    assert left(home) == []
    launched.abandon()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("jvm", ["exec sleep 600", "while :; do sleep 0.1; done"], ids=["program", "script"])
def test_what_has_not_come_up_ends_with_whoever_has_started_it(home: Path, number: int, jvm: str) -> None:
    """Also if it does not look at its input yet."""
    (home / "jvm").write_text(jvm)
    program = (
        "import time; from hintplan.runtime.jvm.launch import launch\n"
        "print(launch({}).process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        while not (home / "arguments").exists():
            time.sleep(0.01)
        assert is_running(pid)
        parent.send_signal(number)
    deadline = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(pid)


def test_what_another_thread_has_started_outlives_that_thread(home: Path) -> None:
    found: list[Launch] = []
    thread = threading.Thread(target=lambda: found.append(started(home, "exec sleep 600")))
    thread.start()
    thread.join()
    with pytest.raises(subprocess.TimeoutExpired):
        found[0].process.wait(0.3)
    found[0].abandon()
