"""The class data archive: which one is taken, which is made anew, and that nothing else is ever mapped.

Java is a shell script here, and the jobs that load the classes write a file. A JVM takes a real archive in
tests/runtime/run/test_class_archive_of_a_run.py.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hintplan.runtime.jvm import class_archive


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Java, a Spark and a cache directory below ``tmp_path``."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 0\n")
    java.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core.jar").write_text("classes")
    for name in (class_archive.VARIABLE, "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive, "_run_jobs", lambda part: part.write_bytes(b"archive"))
    return tmp_path


def archives(place: Path) -> list[Path]:
    return sorted((place / "cache" / "hintplan" / "classes").glob("*.jsa"))


def test_there_are_no_options_before_the_archive_is_made_and_then_those_that_map_it(place: Path) -> None:
    assert class_archive.options() == []
    made = class_archive.make()
    assert [made] == archives(place)
    assert f"-XX:SharedArchiveFile={made}" in class_archive.options()
    assert "-Xshare:auto" in class_archive.options()


def test_nobody_else_can_enter_the_directory(place: Path) -> None:
    made = class_archive.make()
    assert made is not None
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert made.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o701, 0o722])
def test_a_directory_that_others_can_enter_is_not_used(place: Path, mode: int) -> None:
    made = class_archive.make()
    assert made is not None
    made.parent.chmod(mode)
    assert class_archive.options() == []
    assert class_archive.make() is None


def test_a_directory_of_another_user_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_archive.make()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert class_archive.options() == []
    assert class_archive.make() is None


def test_a_directory_that_is_a_link_is_not_used(place: Path) -> None:
    (place / "elsewhere").mkdir(mode=0o700)
    (place / "cache" / "hintplan").mkdir(parents=True)
    (place / "cache" / "hintplan" / "classes").symlink_to(place / "elsewhere")
    assert class_archive.make() is None
    assert list((place / "elsewhere").iterdir()) == []


def test_an_archive_that_others_can_write_is_not_used(place: Path) -> None:
    made = class_archive.make()
    assert made is not None
    made.chmod(0o620)
    assert class_archive.options() == []


def test_an_archive_that_was_cut_off_is_ignored_and_made_anew(place: Path) -> None:
    made = class_archive.make()
    assert made is not None
    made.write_bytes(b"arch")
    assert class_archive.options() == []
    assert class_archive.is_wanted()
    assert class_archive.make() == made
    assert made.read_bytes() == b"archive"


def test_an_archive_of_a_process_that_was_killed_before_its_note_is_not_used(place: Path) -> None:
    made = class_archive.make()
    assert made is not None
    made.with_suffix(".json").write_text("{")
    assert class_archive.options() == []
    assert class_archive.make() == made


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ("spark/jars/spark-core.jar", "other classes"),
        ("spark/jars/more.jar", "classes"),
        ("java/release", 'JAVA_VERSION="17.0.2"\n'),
        ("java/bin/java", "#!/bin/sh\nexit 0 # newer\n"),
    ],
)
def test_another_java_or_spark_in_the_same_place_makes_another_archive_instead(
    place: Path, changed: str, text: str
) -> None:
    first = class_archive.make()
    (place / changed).write_text(text)
    assert class_archive.options() == []
    second = class_archive.make()
    assert second not in (None, first)
    assert archives(place) == [second]


def test_a_spark_elsewhere_has_an_archive_of_its_own_beside_this_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = class_archive.make()
    jars = place / "other" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core.jar").write_text("classes")
    monkeypatch.setenv("SPARK_HOME", str(place / "other"))
    second = class_archive.make()
    assert sorted(archives(place)) == sorted(path for path in (first, second) if path is not None)


def test_the_archive_of_a_spark_that_is_gone_is_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_archive.make()
    (place / "spark").rename(place / "moved")
    monkeypatch.setenv("SPARK_HOME", str(place / "moved"))
    second = class_archive.make()
    assert second is not None
    assert archives(place) == [second]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (class_archive.VARIABLE, "off"),
        (class_archive.VARIABLE, "OFF"),
        ("PYSPARK_GATEWAY_PORT", "4040"),
        ("SPARK_CONF_DIR", "{place}/spark"),
        ("SPARK_HOME", "{place}/nowhere"),
        ("JAVA_HOME", "{place}/nowhere"),
    ],
)
def test_an_environment_without_an_archive_neither_uses_nor_makes_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    class_archive.make()
    monkeypatch.setenv(name, value.format(place=place))
    assert class_archive.environment() is None
    assert class_archive.options() == []
    assert not class_archive.is_wanted()


def test_a_java_that_makes_none_is_not_asked_again_for_a_day(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "java" / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert class_archive.make() is None
    assert archives(place) == []
    assert not class_archive.is_wanted()
    now = class_archive.time.time()
    monkeypatch.setattr(class_archive.time, "time", lambda: now + 25 * 3600)
    assert class_archive.is_wanted()


def test_jobs_that_fail_leave_nothing_but_the_note_of_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(part: Path) -> None:
        part.write_bytes(b"arch")
        raise subprocess.CalledProcessError(1, "hintplan")

    monkeypatch.setattr(class_archive, "_run_jobs", fails)
    assert class_archive.make() is None
    assert {path.suffix for path in (place / "cache" / "hintplan" / "classes").iterdir()} == {"", ".failed"}


def test_one_process_makes_an_archive_at_a_time(place: Path) -> None:
    folder = place / "cache" / "hintplan" / "classes"
    folder.mkdir(parents=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert class_archive.make() is None
    assert class_archive.make() is not None


def test_what_a_killed_process_left_is_removed(place: Path) -> None:
    folder = place / "cache" / "hintplan" / "classes"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "old.jsa.17.part").write_bytes(b"arch")
    class_archive.make()
    assert list(folder.glob("*.part")) == []


def test_options_of_the_user_come_last(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert class_archive.submit_options() == {}
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xss4m")
    assert class_archive.submit_options() == {"SPARK_SUBMIT_OPTS": "-Xss4m"}
    class_archive.make()
    words = class_archive.submit_options()["SPARK_SUBMIT_OPTS"]
    assert words.startswith('"-Xshare:auto" "-XX:SharedArchiveFile=')
    assert words.endswith(" -Xss4m")


@pytest.mark.parametrize("text", ["plain", "a b", 'a"b', "a\\b", "it's"])
def test_an_option_is_one_word_to_sparks_launcher(text: str) -> None:
    """By the rules of ``CommandBuilderUtils.parseOptionString``: in quotes, a backslash takes the next character."""
    word = class_archive.quoted_option(text)
    assert (word[0], word[-1]) == ('"', '"')
    taken, rest = "", iter(word[1:-1])
    for character in rest:
        assert character != '"'
        taken += next(rest) if character == "\\" else character
    assert taken == text


def test_the_maker_in_the_background_has_neither_the_terminal_nor_the_pipes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that reads the output of a run to its end does not wait for the maker, which sleeps here."""
    program = (
        "import subprocess, sys\n"
        "from hintplan.runtime.jvm import class_archive\n"
        "start = subprocess.Popen\n"
        "def asleep(command, **how):\n"
        "    global made\n"
        "    made = start([sys.executable, '-c', 'import time; time.sleep(60)'], **how)\n"
        "    return made\n"
        "subprocess.Popen = asleep\n"
        "class_archive.make_in_background()\n"
        "print(made.pid)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    maker = int(ran.stdout)
    try:
        assert os.getsid(maker) == maker
        assert {os.readlink(f"/proc/{maker}/fd/{number}") for number in range(3)} == {"/dev/null"}
    finally:
        os.kill(maker, 9)
    assert ran.stderr == ""
