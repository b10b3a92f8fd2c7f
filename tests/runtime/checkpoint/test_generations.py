"""Logs of a query are written anew for other sources, line by line; what they must be is written down here by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.compare.sources import Order, SourceRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.generations import begin_generation, end_generations, old_logs
from hintplan.runtime.storage.files import files_at

HEAD = 'v1\n{"batchTimestampMs":7}'


def record(order: Order, generation: int, **tables: str) -> QueryRecord:
    sources = tuple(SourceRecord(operator=name, table=table, lineage=name) for name, table in tables.items())
    return QueryRecord(id="q", sinks=("r",), sources=sources, states=(), order=order, generation=generation, begun=True)


def written(directory: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = directory / "q" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        (path.parent / f".{path.name}.crc").write_bytes(b"")
    return directory


def found(*names: str) -> str:
    return "\n".join(["v1", *(f'{{"path":"{name}","timestamp":1,"batchId":0}}' for name in names)])


OLD = record((("o", 0), ("c", 1), ("o", 0)), 0, o="o", c="c")
FILES = {
    "metadata": '{"id":"1"}',
    "offsets/0": f'{HEAD}\n{{"logOffset":0}}\n-\n{{"logOffset":0}}',
    "offsets/1": f'{HEAD}\n{{"logOffset":1}}\n{{"logOffset":0}}\n{{"logOffset":1}}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/0": found("a"),
    "sources/0/1": found("b"),
    "sources/1/0": found("x"),
    "state/join.1/0/0/0.5.manifest": "kept where it is",
}


def begin(directory: Path, old: QueryRecord, new: QueryRecord) -> dict[str, str]:
    """The logs of ``new`` by their names."""
    begin_generation(files_at(str(directory)), local_files(directory), old, new)
    there = directory / new.logs
    return {
        path.relative_to(there).as_posix(): path.read_text()
        for path in there.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_lines_and_files_go_to_the_numbers_that_their_sources_have_now(tmp_path: Path) -> None:
    directory = written(tmp_path, FILES)
    new = record((("d", 0), ("c2", 1), ("o", 2), ("c2", 1)), 1, d="d", c2="c", o="o")
    assert begin(directory, OLD, new) == {
        "metadata": FILES["metadata"],
        "commits/0": FILES["commits/0"],
        "offsets/0": f'{HEAD}\n-\n-\n{{"logOffset":0}}\n-',
        "offsets/1": f'{HEAD}\n-\n{{"logOffset":0}}\n{{"logOffset":1}}\n{{"logOffset":0}}',
        "sources/1/0": FILES["sources/1/0"],
        "sources/2/0": FILES["sources/0/0"],
        "sources/2/1": FILES["sources/0/1"],
    }


def test_a_source_that_becomes_two_goes_on_as_both(tmp_path: Path) -> None:
    logs = begin(written(tmp_path, FILES), OLD, record((("o", 0), ("o", 1)), 1, o="o"))
    assert logs["offsets/1"] == f'{HEAD}\n{{"logOffset":1}}\n{{"logOffset":1}}'
    assert logs["sources/0/1"] == logs["sources/1/1"] == FILES["sources/0/1"]


def test_what_a_run_that_died_has_left_of_the_generation_is_not_taken_for_a_part_of_it(tmp_path: Path) -> None:
    directory = written(tmp_path, {**FILES, "logs.1/offsets/9": "left", "logs.1/sources/3/0": "left"})
    logs = begin(directory, OLD, record((("o", 0),), 1, o="o"))
    assert {"offsets/9", "sources/3/0"}.isdisjoint(logs)


def two(first: list[str], second: list[str], *, compact: bool = False) -> dict[str, str]:
    """A query that reads ``o`` as two sources to Spark, which have found these files, one in an entry."""
    files = {"metadata": "{}", "commits/0": "v1\n{}"}
    for number, names in enumerate((first, second)):
        for entry, name in enumerate(names):
            files[f"sources/{number}/{entry}"] = found(name)
    if compact:
        files = {name: text for name, text in files.items() if not name.startswith("sources/1/")}
        files["sources/1/0.compact"] = found(*second)
    ends = [f'{{"logOffset":{len(names) - 1}}}' for names in (first, ["all"] if compact else second)]
    return {**files, "offsets/0": "\n".join([HEAD, *ends])}


TWICE = record((("o", 0), ("o", 1)), 0, o="o")


@pytest.mark.parametrize(("second", "compact"), [(["b", "a"], False), (["a", "b"], True)])
def test_two_sources_that_have_found_the_same_go_on_as_one(tmp_path: Path, second: list[str], compact: bool) -> None:
    directory = written(tmp_path, two(["a", "b"], second, compact=compact))
    logs = begin(directory, TWICE, record((("o", 0), ("o", 0)), 1, o="o"))
    lines = logs["offsets/0"].splitlines()[2:]
    assert lines[0] == lines[1]
    kept = {name for name in logs if name.startswith("sources/")}
    assert kept == ({"sources/0/0.compact"} if compact else {"sources/0/0", "sources/0/1"})


def test_two_sources_of_which_one_is_ahead_do_not(tmp_path: Path) -> None:
    directory = written(tmp_path, two(["a", "b"], ["a"]))
    with pytest.raises(RunError, match="o is read in several places of q, which have read different files") as said:
        begin(directory, TWICE, record((("o", 0), ("o", 0)), 1, o="o"))
    assert "once=True" in str(said.value)


def test_logs_of_other_sources_than_were_recorded_are_damaged(tmp_path: Path) -> None:
    directory = written(tmp_path, {**FILES, "offsets/1": f'{HEAD}\n{{"logOffset":1}}'})
    with pytest.raises(RunError, match="q/offsets/1 is not of the sources that were recorded"):
        begin(directory, OLD, record((("o", 0),), 1, o="o"))


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_logs_of_other_generations_go_and_nothing_else(tmp_path: Path, generation: int) -> None:
    files = {**FILES, "pins/aa/1.5.x.pin": "kept"}
    logs = {name: text for name, text in FILES.items() if not name.startswith("state/")}
    for other in (1, 2):
        files |= {f"logs.{other}/{name}": text for name, text in logs.items()}
    directory = written(tmp_path, {**files, "logs.2/notes": "not Spark's"})
    kept = CheckpointRecord(plan="p", partitions=1, queries=(replace(OLD, generation=generation),))
    end_generations(files_at(str(directory)), local_files(directory), kept)
    there = local_files(directory)
    in_force = {f"q/{'' if not generation else f'logs.{generation}/'}{name}" for name in logs}
    others = {"q/state/join.1/0/0/0.5.manifest", "q/pins/aa/1.5.x.pin", "q/logs.2/notes"}
    assert set(there.sizes) == in_force | others
    assert there.gone == frozenset(), "their checksums go with them"
    assert list(old_logs(there, kept)) == []
