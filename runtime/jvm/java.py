"""Finds the Java that Spark's launcher starts, checks that Spark runs on it, and gives access to a session's JVM."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hintplan.plans.errors import RunError

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17


def java_command(variables: Mapping[str, str]) -> str | None:
    """Return the Java that Spark's launcher starts; None if there is none on the path."""
    home = variables.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java", path=variables.get("PATH"))


def release_file(java: str) -> Path:
    """Return the release file of a Java, which describes it. A wrapper program that only finds a Java has none."""
    return Path(os.path.realpath(java)).parent.parent / "release"


def java_version() -> str | None:
    """Return the major version of the Java that Spark starts on; None if only starting Java can reveal it."""
    java = java_command(os.environ)
    try:
        release = "" if java is None else release_file(java).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return None if match is None else match[1]


def require_java() -> None:
    """Raise RunError, with advice on what to install, unless Spark's launcher finds Java 17 or newer."""
    home, java = os.environ.get("JAVA_HOME"), java_command(os.environ)
    install = (
        f"install a Java runtime, version {MINIMUM_JAVA} or 21, for instance with "
        f"'apt-get install openjdk-{MINIMUM_JAVA}-jre-headless' or 'brew install openjdk@{MINIMUM_JAVA}', "
        "and set JAVA_HOME if it is not on the PATH"
    )
    problem = f"JAVA_HOME is {home!r}, and there is no working bin/java" if home else "there is no java on the PATH"
    try:
        if java is None:
            raise FileNotFoundError
        completed = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(f"Spark needs Java, and {problem}", hint=install) from error
    except (OSError, subprocess.SubprocessError) as error:
        failure = getattr(error, "stderr", None) or error
        raise RunError(
            f"Spark needs Java, and {java} -version fails: {failure}",
            hint="start it in a shell: it may lack permission or memory",
        ) from error
    match = re.search(r'version "(?:1\.)?(\d+)', completed.stderr + completed.stdout)
    if match is None or int(match[1]) < MINIMUM_JAVA:
        version = match[1] if match else "of an unknown version"
        raise RunError(f"Spark needs Java {MINIMUM_JAVA} or newer; {java} is Java {version}", hint=install)


def signal_that_ended(exit_code: int | None) -> int | None:
    """Return SIGINT or SIGTERM if it has ended a process of Java or of Spark's scripts; otherwise None.

    ``exit_code`` is negative if the signal has killed the process; a JVM or a shell returns 128 plus the signal.
    """
    return next((number for number in (signal.SIGINT, signal.SIGTERM) if exit_code in (-number, 128 + number)), None)


def jvm_of(spark: SparkSession) -> JVMView:
    """Return the packages and classes of the JVM of ``spark``, a session of classic Spark."""
    return spark.sparkContext._jvm
