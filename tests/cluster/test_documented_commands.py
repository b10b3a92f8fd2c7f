"""Every command line of the pages on deployment and metrics, typed in by a user who has the plan of the README.

Names that stand for something of the reader's (hosts, buckets, paths below ``/``) are those of here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.cluster.conftest import DEADLINE_SECONDS
from tests.cluster.installed import environment, installed
from tests.cluster.standalone import Cluster, free_port
from tests.cluster.yarn import Yarn
from tests.connectors.object_store.jars import jars
from tests.connectors.object_store.server import ACCESS_KEY, SECRET_KEY, running_store
from tests.docs.test_docs import blocks, sessions
from tests.runtime.metrics import scraped
from tests.runtime.metrics.receiver import receiver
from tests.sample import in_turn, sampled
from tests.spark.quick import quick_executors


def lines(page: str) -> list[str]:
    """The command lines on a page about deployment."""
    return [line for line, _ in sessions(f"docs/deployment/{page}.md")]


# Another line on a page needs another test here.
MAKE_PYTHON, FILL_PYTHON, WITH_MODULE = lines("index")
LOCAL, ON_CLUSTER, LINK, SUBMITTED, SERVER, CONNECTED, ON_YARN = lines("clusters")
(BUNDLE,) = lines("bundles")
STORE, KEYS, ON_STORE = lines("storage")
# What the first installs, the environments of these tests have.
_, PROMETHEUS, OTLP = (line for line, _ in sessions("docs/metrics.md"))

BATCH = "sink_paid batch 0: 2 rows in · 1 row out"
STATE = "/shared/state"


@dataclass(frozen=True, slots=True)
class User:
    """Types command lines in ``directory``."""

    directory: Path

    def types(self, *lines: str, names: Mapping[str, str] = MappingProxyType({}), **variables: str) -> str:
        """What ``lines`` print until they have ended, all in one shell; ``names`` are those of a page, and of here."""
        done = subprocess.run(
            _shell(lines, names), cwd=self.directory, env=_environment(variables), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def runs(
        self, *lines: str, names: dict[str, str], meanwhile: Callable[[], object] = lambda: None, **variables: str
    ) -> None:
        """Type ``lines``, of which the last starts the job: it has its first batch, and ends when it is asked to."""
        said = self.directory / "said"
        names = {STATE: str(self.directory / "state"), **names}
        with open(said, "wb") as log:
            process = subprocess.Popen(
                _shell((*lines[:-1], f"exec env {lines[-1]}"), names), cwd=self.directory,
                env=_environment(variables), stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while BATCH not in said.read_text(encoding="utf-8"):
                assert time.monotonic() < deadline, said.read_text(encoding="utf-8")
                assert process.poll() is None, said.read_text(encoding="utf-8")
                threading.Event().wait(0.3)
            meanwhile()
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        assert "stopped after 1 batch" in said.read_text(encoding="utf-8"), said.read_text(encoding="utf-8")

    def configured(self, conf: dict[str, str]) -> str:
        """A directory in which Spark finds settings of this machine, such as it has for all that use it."""
        (self.directory / "conf").mkdir()
        lines = "".join(f"{key} {value}\n" for key, value in conf.items())
        (self.directory / "conf" / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        return str(self.directory / "conf")


def _shell(lines: tuple[str, ...], names: Mapping[str, str]) -> list[str]:
    text = "\n".join(lines)
    for name, here in names.items():
        assert name in text or name == STATE, name
        text = text.replace(name, here)
    return ["bash", "-ec", text]


def _environment(variables: dict[str, str]) -> dict[str, str]:
    path = f"{installed().hintplan.parent}:{installed().spark_home / 'bin'}:{os.environ['PATH']}"
    return environment(**{"PATH": path, **variables})


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Somebody with the files of the README; a job that runs elsewhere needs their whole paths."""
    (script,) = blocks("README.md", "sql")[:1]
    for name in ("orders", "payments"):
        assert f"'path' = '{name}'" in script
        script = script.replace(f"'path' = '{name}'", f"'path' = '{tmp_path / name}'")
    (tmp_path / "paid.sql").write_text(script, encoding="utf-8")
    folders, rows, compiled, *_ = (line for line, _ in sessions("README.md"))
    User(tmp_path).types(folders, rows, compiled, "cp paid.json plan.json")
    return User(tmp_path)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment for workers that the page makes."""
    made = tmp_path_factory.mktemp("opt") / "workers"
    names = {"python3.11": sys.executable, "/opt/workers": str(made)}
    User(made.parent).types(MAKE_PYTHON, FILL_PYTHON, names=names)
    return made


@in_turn(0, of=3)
def test_a_local_run(user: User) -> None:
    user.runs(LOCAL, names={})


@pytest.mark.parametrize(
    "lines",
    sampled(
        [
            pytest.param((ON_CLUSTER,), id="run"),
            pytest.param((LINK, SUBMITTED), id="submit"),
            pytest.param((WITH_MODULE,), id="module"),
        ],
        keep=1,
    ),
)
def test_a_standalone_cluster(cluster: Cluster, workers: Path, user: User, lines: tuple[str, ...]) -> None:
    names = {"spark://host:7077": cluster.master}
    names |= {name: here for name, here in _of_submitters(workers).items() if name in "".join(lines)}
    conf = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **quick_executors()}
    if lines != (LINK, SUBMITTED):
        conf["spark.executor.memory"] = "700m"
    if lines == (WITH_MODULE,):
        conf["spark.pyspark.python"] = str(workers / "bin" / "python")
        (user.directory / "src" / "shop").mkdir(parents=True)
        (user.directory / "src" / "shop" / "rates.py").write_text("", encoding="utf-8")
    user.runs(*lines, names=names, SPARK_CONF_DIR=user.configured(conf))


def _of_submitters(workers: Path) -> dict[str, str]:
    # Workers of this cluster have a gigabyte.
    return {
        "/opt/workers": str(workers),
        "/opt/hintplan/bin/python": str(installed().python),
        "spark.executor.memory=4g": "spark.executor.memory=700m",
    }


@in_turn(1, of=2)
def test_a_bundle_on_yarn(yarn: Yarn, workers: Path, user: User) -> None:
    state = user.directory / "state"
    # With --once the job ends by itself.
    user.types(f"{BUNDLE} --once", names={"s3a://lake/state/paid": str(state)})
    with tarfile.open(user.directory / "workers.tar.gz", "w:gz", compresslevel=1) as packed:
        packed.add(workers, ".")
    words = yarn.options()
    conf = dict(word.split("=", 1) for word in words if word.startswith("spark.") and "pyspark.python" not in word)
    variables = {"SPARK_CONF_DIR": user.configured(conf), "HADOOP_CONF_DIR": str(yarn.directory / "conf")}
    user.types(ON_YARN, **variables)
    (application, *_) = yarn.applications()
    said = yarn.said(application["id"])
    assert BATCH in said, said
    assert (application["name"], application["finalStatus"]) == ("paid", "SUCCEEDED")
    assert application["queue"].rpartition(".")[2] == "reports"


@pytest.fixture
def server(user: User) -> Iterator[str]:
    """The URL of the Spark Connect server that the page starts."""
    port = free_port()
    address = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    conf = {"spark.master": "local[2]", "spark.ui.enabled": "false", **address}
    own = {name: str(user.directory / name) for name in ("SPARK_PID_DIR", "SPARK_LOG_DIR")}
    own |= {"SPARK_HOME": str(installed().spark_home), "SPARK_CONF_DIR": user.configured(conf)}
    user.types(SERVER, names={"/opt/server/bin/python": str(installed().server)}, **own)
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        user.types("$SPARK_HOME/sbin/stop-connect-server.sh", **own)


@in_turn(0, of=2)
def test_spark_connect(server: str, user: User) -> None:
    user.runs(CONNECTED, names={"sc://host:15002": server})


@in_turn(1, of=2)
def test_an_object_store(user: User) -> None:
    if not jars():
        pytest.skip("the jars for S3 are not there; make s3 fetches them")
    conf = user.configured({"spark.jars": ",".join(map(str, jars()))})
    with running_store() as store:
        store.make_bucket("lake")
        names = {"http://store:9000": store.url}
        names |= {"KEY_ID=...": f"KEY_ID={ACCESS_KEY}", "ACCESS_KEY=...": f"ACCESS_KEY={SECRET_KEY}"}
        user.runs(STORE, KEYS, ON_STORE, names=names, SPARK_CONF_DIR=conf)
        assert [key for key in store.keys("lake") if key.startswith("lake/checkpoints/revenue/")]


@in_turn(1, of=3)
def test_metrics_that_are_scraped(user: User) -> None:
    port = free_port()
    found: list[scraped.Samples] = []
    user.runs(
        PROMETHEUS,
        names={":9464": f":{port}"},
        meanwhile=lambda: found.append(scraped.scrape(f"http://127.0.0.1:{port}/metrics")),
    )
    assert scraped.of(found[0], "hintplan_sink_rows_total", operator="sink_paid") == 1


@in_turn(2, of=3)
def test_metrics_that_are_sent(user: User) -> None:
    with receiver() as received:
        user.runs(OTLP, names={"http://collector:4318": received.url})
    assert "hintplan.sink.rows" in received.series()
