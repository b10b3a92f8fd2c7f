"""YARN on this machine: a resource manager with two queues and a node manager, of the version of Spark's client.

Spark itself fetches their jars from Maven once, into ``.integration`` of the checkout.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.installed import KEPT, environment, installed
from tests.cluster.standalone import free_port, kill, poll
from tests.faults.processes import descendants
from tests.spark.quick import quick_executors

__all__ = ["QUEUE", "Yarn", "running_yarn"]

QUEUE = "reports"
_DAEMONS = "org.apache.hadoop.yarn.server"
_SERVERS = ("resourcemanager", "nodemanager", "timelineservice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yarn:
    """Where its configuration is, and the port on which it answers."""

    directory: Path
    port: int

    def options(self) -> list[str]:
        """The options of spark-submit for the queue ``QUEUE``, with workers that have nothing of hintplan."""
        conf = {
            "spark.yarn.jars": f"local:{installed().spark_home}/jars/*",
            "spark.yarn.stagingDir": str(self.directory / "staging"),
            "spark.pyspark.python": str(installed().worker),
            "spark.ui.enabled": "false",  # Spark fails if YARN's filter comes while it adds pages
            "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
            "spark.executor.instances": "1",
            "spark.executor.memory": "600m",
            "spark.driver.memory": "600m",
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
            **quick_executors(),
        }
        settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        return ["--master", "yarn", "--queue", QUEUE, *settings]

    def applications(self) -> list[dict[str, str]]:
        """What YARN knows of each application, the newest first."""
        return sorted(self._said("apps")["apps"]["app"], key=lambda app: -int(app["startedTime"]))

    def nodes(self) -> list[str]:
        """The states of its nodes; none while it does not answer."""
        try:
            found = self._said("nodes")["nodes"] or {"node": []}
        except OSError:
            return []
        return [node["state"] for node in found["node"]]

    def said(self, application: str) -> str:
        """What the processes of an application have printed."""
        logs = sorted((self.directory / "logs" / application).rglob("std*"))
        return "\n".join(log.read_text(encoding="utf-8") for log in logs)

    def _said(self, what: str) -> dict[str, dict[str, list[dict[str, str]]]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ws/v1/cluster/{what}", timeout=5) as answer:
            found: dict[str, dict[str, list[dict[str, str]]]] = json.load(answer)
            return found


@contextmanager
def running_yarn(directory: Path) -> Iterator[Yarn]:
    """YARN with 4 GB in a directory of its own, for the time of the block."""
    yarn = Yarn(directory=directory, port=free_port())
    conf = directory / "conf"
    conf.mkdir(parents=True)
    for name, values in _configuration(yarn).items():
        properties = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
        (conf / f"{name}.xml").write_text(f"<configuration>{''.join(properties)}</configuration>", encoding="utf-8")
    managers = {"resourcemanager": "ResourceManager", "nodemanager": "NodeManager"}
    started = []
    try:
        for name, main in managers.items():
            started.append(_started(directory, name, f"{_DAEMONS}.{name}.{main}"))
            if name == "resourcemanager":
                poll("the resource manager", lambda: _answers(yarn), started[-1])
        poll("a node", lambda: "RUNNING" in yarn.nodes(), started[-1])
        yield yarn
    finally:
        containers = [pid for process in started for pid in descendants(process.pid)]
        for process in started:
            kill(process)
        for pid in containers:  # each is a session of its own
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _answers(yarn: Yarn) -> bool:
    try:
        yarn._said("info")
    except OSError:
        return False
    return True


def _configuration(yarn: Yarn) -> dict[str, dict[str, str]]:
    manager, node = "yarn.resourcemanager", "yarn.nodemanager"
    addresses = {f"{manager}.{name}.address": "" for name in ("scheduler", "resource-tracker", "admin")}
    addresses |= dict.fromkeys((f"{manager}.address", f"{node}.address", f"{node}.localizer.address"), "")
    addresses |= {f"{node}.webapp.address": ""}
    queues = "yarn.scheduler.capacity"
    return {
        "core-site": {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(yarn.directory / "tmp")},
        "yarn-site": {
            **{name: f"127.0.0.1:{free_port()}" for name in addresses},
            f"{manager}.webapp.address": f"127.0.0.1:{yarn.port}",
            f"{node}.resource.memory-mb": "4096",
            f"{node}.resource.cpu-vcores": "4",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.pmem-check-enabled": "false",
            f"{node}.local-dirs": str(yarn.directory / "local"),
            f"{node}.log-dirs": str(yarn.directory / "logs"),
            f"{node}.disk-health-checker.enable": "false",
            "yarn.scheduler.minimum-allocation-mb": "256",
        },
        "capacity-scheduler": {
            f"{queues}.root.queues": f"default,{QUEUE}",
            f"{queues}.root.default.capacity": "50",
            f"{queues}.root.{QUEUE}.capacity": "50",
            f"{queues}.root.{QUEUE}.maximum-capacity": "100",
            f"{queues}.maximum-am-resource-percent": "0.9",
        },
    }


def _started(directory: Path, name: str, main: str) -> subprocess.Popen[bytes]:
    path = ":".join([str(directory / "conf"), *map(str, _jars())])
    command = ["java", "-Xmx256m", "--add-opens=java.base/java.lang=ALL-UNNAMED", f"-Dhadoop.home.dir={directory}"]
    with open(directory / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            [*command, "-cp", path, main],
            cwd=directory, env=environment(), stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _jars() -> list[Path]:
    """The jars of both servers and of what these need."""
    (client,) = (installed().spark_home / "jars").glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    kept = KEPT / f"yarn-{version}"
    if not (kept / "ready").exists():
        packages = ",".join(f"org.apache.hadoop:hadoop-yarn-server-{name}:{version}" for name in _SERVERS)
        program = (
            "from pyspark.sql import SparkSession\n"
            f"builder = SparkSession.builder.master('local[1]').config('spark.jars.packages', '{packages}')\n"
            f"builder.config('spark.jars.ivy', '{kept}').config('spark.ui.enabled', 'false').getOrCreate().stop()\n"
        )
        subprocess.run([installed().python, "-c", program], env=environment(), capture_output=True, check=True)
        (kept / "ready").touch()
    return sorted((kept / "jars").glob("*.jar"))
