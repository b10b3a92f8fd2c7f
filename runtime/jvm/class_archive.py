"""The class data archive: Spark's classes in the form that the JVM has in memory.

With it, the next JVM maps a file instead of reading, checking and linking the classes. There is one archive for each
environment: this Java, these jars of Spark, this class path. ``hintplan`` makes it in the background after the first
run, in ``$XDG_CACHE_HOME/hintplan/classes`` or ``~/.cache/hintplan/classes``. JVMs that hintplan starts use it from
then on. ``HINTPLAN_CLASS_ARCHIVE=off`` in the environment disables both.

An archive is code. So it is used only from a directory of this user that no other user can enter. It is also used only
in its full length, because a JVM that maps a part of an archive crashes.

    options()                # the options of a JVM that uses the archive; none if there is no archive
    make()                   # make it now, which takes a minute
    make_in_background()     # let another process make it
    python -m hintplan.runtime.jvm.class_archive
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hintplan.runtime.code_files import HOME
from hintplan.runtime.jvm.java import java_command, release_file

VARIABLE = "HINTPLAN_CLASS_ARCHIVE"
OFF = "off"

_WITHOUT = ("PYSPARK_GATEWAY_PORT", "SPARK_PREPEND_CLASSES", "SPARK_TESTING")
"""Variables that exclude an archive: a JVM runs already, or the launcher puts directories before Spark's jars."""

_NEEDED_SPACE = 1 << 30
_RETRY_SECONDS = 24 * 3600.0
"""The time after a failure until the archive is tried again."""
_LONGEST_SECONDS = 3600
_NICENESS = 10

_LATE = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times the thresholds at which Java optimises a method.

In a short run, the optimisation costs more than it gains. In a long run, important methods reach these thresholds in a
moment.
"""

_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options of the JVM that Spark's launcher starts. Options of ``--conf`` come after them."""

_SCRIPT = """
CREATE TABLE orders (id BIGINT, customer STRING, total DECIMAL(10, 2), at TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');
CREATE TABLE payments (order_id BIGINT, method STRING, amount DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'payments', 'format' = 'csv');
CREATE TABLE paid (id BIGINT, total DECIMAL(10, 2), method STRING) WITH ('connector' = 'print');
CREATE TABLE totals (customer STRING, orders BIGINT, total DECIMAL(38, 2)) WITH ('connector' = 'print');
CREATE TABLE kept (id BIGINT, customer STRING, total DECIMAL(10, 2), at TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'kept', 'format' = 'parquet');

INSERT INTO paid
SELECT o.id, o.total, p.method FROM orders AS o JOIN payments AS p ON o.id = p.order_id WHERE p.amount > 1;
INSERT INTO totals SELECT customer, COUNT(*), SUM(total) FROM orders GROUP BY customer;

SET 'execution.runtime-mode' = 'batch';
INSERT INTO kept SELECT id, UPPER(customer), total, at FROM orders WHERE total > 1;
SELECT k.customer, COUNT(*), SUM(p.amount) FROM kept AS k JOIN payments AS p ON k.id = p.order_id
GROUP BY k.customer ORDER BY k.customer LIMIT 10;
"""
"""A job of each kind, in a stream and in batch mode; the archive has the classes that these jobs load."""

_FILES = {
    "orders/1.json": '{"id": 1, "customer": "Ann", "total": 20.5, "at": "2026-01-01 12:00:00"}\n'
    '{"id": 2, "customer": "Ben", "total": 7, "at": "2026-01-01 12:00:01"}\n',
    "payments/1.csv": "1,card,20.5\n2,cash,7.0\n",
    "script.sql": _SCRIPT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaEnvironment:
    """A Java and a Spark. ``place`` is the digest of their paths, ``content`` the digest of their current files."""

    java: Path
    jars: Path
    place: str
    content: str

    @property
    def name(self) -> str:
        """The file name of the archive."""
        return f"{self.place}-{self.content}.jsa"


def options() -> list[str]:
    """Return the options of a JVM that uses this environment's archive and optimises later; none without an archive."""
    archive_options = class_data()
    return [*archive_options, *_LATE] if archive_options else []


def class_data() -> list[str]:
    """Return the options with which a JVM uses the archive of this environment; none without an archive."""
    path = archive()
    if path is None:
        return []
    # If an archive is unusable, the JVM runs without it and prints nothing.
    quiet = [f"-Xlog:{tags}=off" for tags in ("cds", "cds+dynamic", "cds+heap")]
    return ["-Xshare:auto", f"-XX:SharedArchiveFile={path}", *quiet]


def submit_options() -> dict[str, str]:
    """Return the variable with which a JVM of Spark's launcher uses the archive; the user's own options win."""
    words = [*map(quoted_option, options()), os.environ.get(_SUBMIT_OPTIONS, "")]
    return {_SUBMIT_OPTIONS: " ".join(filter(None, words))} if any(words) else {}


def archive() -> Path | None:
    """Return the archive of this environment, if it is complete and no other user can have written it."""
    here = environment()
    return None if here is None else _whole(here)


def is_wanted() -> bool:
    """Return True if this environment can have an archive, has none, and no attempt failed in the last day."""
    here = environment()
    if here is None or _whole(here) is not None:
        return False
    try:
        return time.time() - _failure(here).stat().st_mtime > _RETRY_SECONDS
    except OSError:
        return True


def make() -> Path | None:
    """Make the archive if it is wanted, and return it; None if there is none, or if another process is making it."""
    here = environment()
    folder = _folder()
    if here is None or not _owned(folder, create=True):
        return None
    with _alone(folder / "lock") as alone:
        if alone and is_wanted() and shutil.disk_usage(folder).free > _NEEDED_SPACE:
            _remove_parts(folder)
            if _made(here, folder):
                _remove_replaced(here, folder)
            else:
                _failure(here).touch()
    return _whole(here)


def make_in_background() -> None:
    """Start a process that makes the archive, if it is wanted. The process holds no terminal and no pipe."""
    if not is_wanted():
        return
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name],
            cwd=HOME,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.returncode = 0  # it outlives this process, and Python must not warn about that


def environment(variables: Mapping[str, str] | None = None) -> JavaEnvironment | None:
    """Return the environment of a JVM that starts with ``variables``, by default with the variables of this process.

    It is None if it can have no archive. There are four such cases:

    - The archive is switched off.
    - spark-submit has started the JVM.
    - Java has no release file that describes it.
    - The class path begins with a directory, which the JVM does not archive.
    """
    variables = os.environ if variables is None else variables
    if variables.get(VARIABLE, "").lower() == OFF or any(name in variables for name in _WITHOUT):
        return None
    java, spark = java_command(variables), _spark_home(variables)
    if java is None or spark is None:
        return None
    if Path(variables.get("SPARK_CONF_DIR") or spark / "conf").is_dir():
        return None
    real, jars = Path(os.path.realpath(java)), spark / "jars"
    try:
        release = release_file(java).read_bytes()
        jar_stamps = [f"{entry.name} {_stamp(entry.stat())}" for entry in os.scandir(jars)]
        content = [_stamp(real.stat()), *sorted(jar_stamps)]
    except OSError:
        return None
    place = [str(real), str(jars), sys.platform, platform.machine()]
    return JavaEnvironment(
        java=real, jars=jars, place=_digest(*place), content=_digest(*content, release.decode(errors="replace"))
    )


def _spark_home(variables: Mapping[str, str]) -> Path | None:
    """Return the home of the Spark that PySpark starts."""
    if configured := variables.get("SPARK_HOME"):
        return Path(configured)
    import pyspark

    home = Path(os.path.realpath(pyspark.__file__)).parent
    return home if (home / "bin" / "spark-submit").is_file() and not (home / "spark-distribution").exists() else None


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return Path(cache if os.path.isabs(cache) else os.path.expanduser("~/.cache"), "hintplan", "classes")


def _owned(folder: Path, *, create: bool = False) -> bool:
    """Return True if ``folder`` is a directory of this user that no other user can enter."""
    try:
        if create:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        return _is_private(folder.lstat()) and stat.S_ISDIR(folder.lstat().st_mode)
    except OSError:
        return False


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IRWXO)


def _whole(here: JavaEnvironment) -> Path | None:
    """Return the archive of ``here`` if it is unchanged since it was made, and belongs to this user alone."""
    path = _folder() / here.name
    if not _owned(path.parent):
        return None
    try:
        status, note = path.lstat(), json.loads(_note(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = stat.S_ISREG(status.st_mode) and _is_private(status)
    return path if is_ours and isinstance(note, dict) and note.get("stamp") == _stamp(status) else None


def _note(path: Path) -> Path:
    return path.with_suffix(".json")


def _failure(here: JavaEnvironment) -> Path:
    return _folder() / f"{here.place}-{here.content}.failed"


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Yield True in the one process that may make an archive now."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _made(here: JavaEnvironment, folder: Path) -> bool:
    """Make the archive of ``here`` and move it into place as a whole; return False if Java does not make one."""
    path, part = folder / here.name, folder / f"{here.name}.{os.getpid()}.part"
    try:
        _run_jobs(part)
        if not _is_usable(here, part):
            return False
        part.chmod(0o600)
        _note(path).unlink(missing_ok=True)
        part.replace(path)
        written = {"stamp": _stamp(path.stat()), "jars": str(here.jars)}
        _note(path).write_text(json.dumps(written) + "\n", encoding="utf-8")
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def _run_jobs(part: Path) -> None:
    """Run the jobs in a JVM that writes its classes to ``part`` when it ends.

    The JVM also holds the pipe, and ends after the command. So the pipe ends when the archive is complete.
    """
    variables = {**os.environ, VARIABLE: OFF, _SUBMIT_OPTIONS: quoted_option(f"-XX:ArchiveClassesAtExit={part}")}
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"):
        variables.pop(name, None)
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HOME), variables.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory(prefix="hintplan-classes-") as folder:
        for name, text in _FILES.items():
            file = Path(folder, name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "hintplan", "sql", "script.sql", "--master", "local[2]"],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_SECONDS,
            check=True,
        )


def _is_usable(here: JavaEnvironment, part: Path) -> bool:
    """Return True if Java accepts ``part``, with all of its checksums, and the other options.

    A crash writes its report to the working directory.
    """
    with tempfile.TemporaryDirectory(prefix="hintplan-classes-") as folder:
        checked = subprocess.run(
            [
                *(here.java, "-Xshare:auto", f"-XX:SharedArchiveFile={part}", "-XX:+VerifySharedSpaces", *_LATE),
                *("-cp", _class_path(here.jars), "-version"),
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    return checked.returncode == 0


def _class_path(jars: Path) -> str:
    """Return the class path of Spark's launcher. Java accepts an archive only with the path that it was made with."""
    return os.pathsep.join([f"{jars.parent / 'conf'}/", *map(str, jars.glob("slf4j-api-*.jar")), f"{jars}/*"])


def _remove_parts(folder: Path) -> None:
    """Remove incomplete files of processes that were killed."""
    for path in folder.glob("*.part"):
        path.unlink(missing_ok=True)


def _remove_replaced(here: JavaEnvironment, folder: Path) -> None:
    """Remove older archives for the place of this environment, and archives of Sparks that no longer exist."""
    for path in folder.glob("*.jsa"):
        if path.name != here.name and (path.name.startswith(f"{here.place}-") or not _is_there(path)):
            for old in (path, _note(path), path.with_suffix(".failed")):
                old.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    """Return True if the Spark of an archive is still in its place."""
    try:
        return Path(json.loads(_note(path).read_text(encoding="utf-8"))["jars"]).is_dir()
    except (OSError, ValueError, LookupError, TypeError):
        return False


def quoted_option(option: str) -> str:
    """Return ``option`` as a word of ``SPARK_SUBMIT_OPTS``, quoted for Spark's launcher."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _step_back() -> None:
    """Lower the priority of this process.

    Linux weighs sessions against each other, and this process has its own, so its autogroup gets the niceness, too.
    """
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(f"{_NICENESS}\n", encoding="ascii")


if __name__ == "__main__":
    _step_back()
    make()
