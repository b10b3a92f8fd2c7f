"""Starts the JVM of a Spark session as PySpark does, while Python imports the modules that a run needs.

    started = launch({"spark.master": "local[2]"})
    import hintplan.runtime.run.execute          # a second of work
    gateway = started.gateway()         # waits for the JVM

The JVM ends with this process in all cases, because its input is closed then. Before the JVM reads its input, and while
Spark's scripts run, Linux sends SIGTERM when this process ends. The JVM obeys SIGTERM until it is up.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hintplan.runtime.jvm import class_archive

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_POLL_SECONDS = 0.01

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1

_OF_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the short-lived JVM that assembles the command line of the next one."""

_LAUNCHERS = ("spark-launcher_", "spark-common-utils-java_")
"""The jars with the classes of that JVM. A hundred other jars precede them in the class path, and would be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A starting JVM, and the ``folder`` in which it will write its address."""

    process: subprocess.Popen[bytes]
    folder: Path

    def gateway(self) -> JavaGateway:
        """Wait for the JVM, and return PySpark's gateway to it; PySparkRuntimeError if the JVM ends instead."""
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        path = self.folder / "connection"
        try:
            while not path.is_file():
                if self.process.poll() is not None:
                    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
                time.sleep(_POLL_SECONDS)
            with path.open("rb") as file:
                port = read_int(file)  # type: ignore[no-untyped-call]
                secret = UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
        except BaseException:  # an interrupt, too
            self.process.kill()
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        # With these variables, PySpark connects to a running JVM.
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        gateway.proc = self.process
        return gateway

    def abandon(self) -> None:
        """End a JVM without a connection."""
        if self.folder.exists():
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


def launch(settings: Mapping[str, str]) -> Launch:
    """Start a JVM with ``settings`` of Spark; the JVM writes its address when it is up."""
    from pyspark.find_spark_home import _find_spark_home

    home = _find_spark_home()
    command = [str(Path(home, "bin", "spark-submit"))]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    folder = Path(tempfile.mkdtemp(prefix="hintplan-jvm-"))
    variables = {
        **os.environ,
        "SPARK_HOME": home,  # otherwise a script would start another Python to find it
        "SPARK_CONNECT_MODE": "0",
        **_utf_8(),
        "SPARK_LAUNCHER_OPTS": " ".join([_OF_LAUNCHER, *_jars_first(home), os.environ.get("SPARK_LAUNCHER_OPTS", "")]),
        **class_archive.submit_options(),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "connection"),
    }
    # To Linux, the end of the thread that started a process is the end of its parent.
    lasts = threading.current_thread() is threading.main_thread()
    in_the_child = partial(_in_the_child, ends_with_parent=lasts)
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, preexec_fn=in_the_child)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Launch(process=process, folder=folder)


def _utf_8() -> dict[str, str]:
    """Return the variable that makes a JVM decode file names as UTF-8, which hintplan uses in any locale.

    In other locales the JVM cannot decode some names, and Spark does not see the files.
    """
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    return {} if "utf8" in locale.lower().replace("-", "") else {"LC_ALL": "C.UTF-8"}


def _jars_first(home: str) -> list[str]:
    """Return the option with which the JVM of Spark's launcher finds its classes first; none if other jars have them.

    The launcher's script splits the option at blanks.
    """
    jars_of = [glob.glob(f"{glob.escape(home)}/jars/{name}*.jar") for name in _LAUNCHERS]
    if any(len(jars) != 1 for jars in jars_of) or any(character.isspace() for character in home):
        return []
    return ["-Xbootclasspath/a:" + os.pathsep.join(jar for (jar,) in jars_of)]


def _in_the_child(*, ends_with_parent: bool) -> None:
    """Ignore Ctrl-C in the JVM, and end it with its parent.

    A terminal sends Ctrl-C to all processes, but a batch needs the JVM until its end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _LIBC is not None and ends_with_parent:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
