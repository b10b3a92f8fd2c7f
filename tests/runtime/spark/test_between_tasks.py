"""What a worker has loaded is neither read nor looked at again between two tasks."""

from __future__ import annotations

import gc
import subprocess
import sys
import types
import zipimport
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest

from hintplan.runtime.engine.pack import Ticking
from hintplan.runtime.spark import between_tasks
from hintplan.runtime.spark.between_tasks import as_task

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    list(run(iter([])))  # the first batch of all imports parts of Arrow
    gc.collect()  # what other tests have left may import more when it goes: a task that never ended is logged
    monkeypatch.setattr(between_tasks, "_loaded", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return iter([*batches, pa.record_batch({"n": [gc.get_freeze_count()]})])


def frozen() -> int:
    *_, last = as_task(run)(iter([]))
    return int(last["n"][0].as_py())


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_loaded_is_not_looked_at_again_and_garbage_still_is() -> None:
    """In a process of its own: what other tests have left may import something when it goes."""
    code = f"from {__name__} import check_what_is_frozen; check_what_is_frozen()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check_what_is_frozen() -> None:
    frozen()  # the first batch of all imports parts of Arrow
    before = frozen()
    assert before > 10_000
    kept = [Cycle() for _ in range(1000)]
    assert frozen() < before + 500, "nothing has been imported since"
    del kept
    assert gc.collect() >= 1000
    sys.modules["imported_since"] = types.ModuleType("imported_since")
    kept = [Cycle() for _ in range(10_000)]
    assert frozen() > before + 5_000, "some of what there was may have gone"
    del kept


def test_garbage_of_the_first_task_does_not_stay() -> None:
    found = []

    class Seen(Cycle):
        def __del__(self) -> None:
            found.append(1)

    Seen()
    frozen()
    assert found == [1]


def test_finders_of_zip_files_are_forgotten(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "some.zip", "w") as packed:
        packed.writestr("module.py", "")
    path = str(tmp_path / "some.zip")
    sys.path_importer_cache[path] = zipimport.zipimporter(path)
    frozen()
    assert path not in sys.path_importer_cache
    assert any(not isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())


def test_a_task_has_the_name_of_its_function_in_spark_s_plans() -> None:
    assert as_task(run).__name__ == "run"


def test_what_a_task_is_given_reaches_the_function() -> None:
    batch = pa.record_batch({"n": [7]})
    assert next(as_task(run)(iter([batch]))).equals(batch)


def test_a_task_reads_all_of_its_input_so_that_its_worker_is_used_again() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1]})
    for run in (Ticking(buckets=[0, 1]), lambda batches: iter([next(batches)])):
        given = iter([batch, batch, batch])
        assert len([*as_task(run)(given)]) == 1
        assert next(given, None) is None
