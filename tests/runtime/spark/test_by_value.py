"""What is pickled by value opens in a Python that has nothing of hintplan, as far as Spark needs it there."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle

from hintplan.runtime.connectors.print_sink import PrintBatch
from hintplan.runtime.engine.pack import as_it_is, with_their_marks
from hintplan.runtime.spark.by_value import ShippedFunction
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.shipping import code_archive, ship_code
from hintplan.runtime.spark.waking import WakingReader
from hintplan.runtime.storage.files import published_by_task

BARE = """
import importlib.util, json, pickle, sys
assert importlib.util.find_spec("hintplan") is None
with open(sys.argv[1], "rb") as file:
    found = pickle.load(file)
"""

NEEDED = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "google", "pytz", "dateutil", "six.py", "tzdata")


def bare(directory: Path, pickled: object, program: str) -> list[str]:
    """What ``program`` prints of ``found``, which was ``pickled``, where only what Spark needs is installed."""
    (directory / "pickled").write_bytes(cloudpickle.dumps(pickled))
    packages = directory / "packages"
    packages.mkdir()
    installed = Path(pyspark.__file__).parents[1]
    for name in NEEDED:
        if (installed / name).exists():
            (packages / name).symlink_to(installed / name)
    start = f"import sys; sys.path.append({str(packages)!r})\n{BARE}\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start, str(directory / "pickled")],
        capture_output=True, text=True, check=False, cwd=directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_carried_brings_its_code_once(tmp_path: Path) -> None:
    program = """
import pyarrow
class Batch:
    def toArrow(self): return pyarrow.table({"a": [1], "b": ["x"]})
with open(sys.argv[1], "rb") as file:
    again = pickle.load(file)
sys.path.insert(1, "/nowhere/" + next(path.rpartition("/")[2] for path in sys.path if "hintplan-" in path))
with open(sys.argv[1], "rb") as file:
    pickle.load(file)
found(Batch(), 0)
again(Batch(), 1)
print(type(found) is type(again), sum("hintplan-" in path for path in sys.path if "nowhere" not in path))
"""
    writer = ShippedFunction(PrintBatch(identifier="out"), [code_archive(tmp_path)])
    assert bare(tmp_path, writer, program) == ["out> +I[1, x]", "out> +I[1, x]", "True 1"]


def test_a_process_that_has_other_code_of_that_name_gets_what_is_carried(tmp_path: Path) -> None:
    pickled = []
    for version in (1, 2, 1):
        own = tmp_path / f"{version}"
        own.mkdir(exist_ok=True)
        (own / "shop.py").write_text(f"def version(): return {version}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", PICKLING, own], capture_output=True, cwd=Path(__file__).parents[3], check=True
        )
        pickled.append(done.stdout)
    program = "import pickle\nprint([pickle.loads(each)() for each in found])"
    assert bare(tmp_path, pickled, program) == ["[1, 2, 1]"]


@pytest.mark.parametrize("listed", ["files", "files/of-a-client"])
def test_a_task_finds_the_code_that_spark_has_sent_in_the_directory_of_another_session(
    tmp_path: Path, listed: str
) -> None:
    """The path of a task has the file in another directory than that of the query's own session."""
    archive = code_archive(tmp_path)
    for session in ("files/of-a-client", "files/another", "files/of-the-query"):
        (tmp_path / session).mkdir(parents=True)
    (tmp_path / "files" / "another" / archive.name).write_bytes(b"what another session has sent under this name")
    pickled = cloudpickle.dumps(ShippedFunction(PrintBatch(identifier="out"), [archive], is_task=True))
    assert len(pickled) < 10_000
    archive.rename(tmp_path / "files" / "of-the-query" / archive.name)
    program = f"""
import os, pathlib, shutil
try:
    pickle.loads(found)
except RuntimeError as error:
    print(error)
os.environ["SPARK_LOCAL_DIRS"] = {str(tmp_path)!r}
sys.path.insert(1, {str(tmp_path / listed / archive.name)!r})
task = pickle.loads(found)
shutil.rmtree({str(tmp_path / "files")!r})
import hintplan.runtime.engine.pack
print(type(task).__name__, pathlib.Path(hintplan.__path__[0]).parent.parent == pathlib.Path({str(tmp_path)!r}))
"""
    assert bare(tmp_path, pickled, program) == [
        f"Spark has not sent {archive.name} to the executor, below any of []", "PrintBatch True"
    ]  # fmt: skip


def test_a_task_without_plans_writes_the_files_that_end_event_time(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    publish = partial(published_by_task, root=str(tmp_path / "state"), contents={"sink_r/ending/7": b"\n"})
    program = """
import pyarrow
print([batch.to_pydict() for batch in found([pyarrow.record_batch({"id": [0]})])])
"""
    assert bare(tmp_path, ShippedFunction(publish, [code_archive(tmp_path)]), program) == [
        "[{'name': ['sink_r/ending/7']}]"
    ]
    assert (tmp_path / "state" / "sink_r" / "ending" / "7").read_bytes() == b"\n"


class RemoteSession:
    """A session of a Spark Connect client as far as code is shipped with it."""

    session_id = "of-a-client"

    def addArtifacts(self, *paths: str, pyfile: bool) -> None:
        assert pyfile
        self.sent = paths


RemoteSession.__module__ = "pyspark.sql.connect.session"


class RemoteStream:
    """A streaming DataFrame of a client, which keeps the functions that it gets."""

    isStreaming = True

    def __init__(self) -> None:
        self.sparkSession = RemoteSession()
        self.pickled: list[int] = []

    def mapInArrow(self, function: object, schema: str) -> RemoteStream:
        self.pickled.append(len(cloudpickle.dumps(function)))
        return self


def test_a_plan_of_spark_connect_does_not_carry_the_code_with_each_step() -> None:
    """The server keeps a dozen plans; with the code in each of 45 steps, a plan had 114 MB."""
    stream = RemoteStream()
    ship_code(stream.sparkSession)  # type: ignore[arg-type]
    (archive,) = stream.sparkSession.sent
    for step in (as_it_is, with_their_marks):
        map_in_arrow(stream, step, "a int")  # type: ignore[arg-type]
    assert max(stream.pickled) < 10_000 < Path(archive).stat().st_size


PICKLING = """
import sys, pathlib
from pyspark import cloudpickle
from hintplan.runtime.spark.by_value import ShippedFunction
from hintplan.runtime.spark.shipping import own_code
sys.path.insert(1, sys.argv[1])
import shop
sys.stdout.buffer.write(cloudpickle.dumps(ShippedFunction(shop.version, own_code(["shop"], pathlib.Path(sys.argv[1])))))
"""


def test_the_source_that_wakes_a_job_needs_nothing_of_hintplan(tmp_path: Path) -> None:
    program = "print(found.latestOffset())"
    assert bare(tmp_path, WakingReader(str(tmp_path / "nowhere"), 10), program) == ["{'due': 0}"]
    (tmp_path / "remote").mkdir()
    assert bare(tmp_path / "remote", WakingReader("file:///nowhere/at/all", 10), "print(found.latestOffset())") == [
        "{'due': 0}"
    ]
