"""Each part of a checkpoint that is deleted, cut off or changed is named by every command, and nothing starts.

What may lack without harm stands in ``SPARE``, with the reason, and the run that follows is right.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.errors import RunError
from hintplan.plans.files.codec import dumps
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.parts import undamaged_record
from hintplan.runtime.inspect.check import check_command
from hintplan.runtime.inspect.command import state_command
from hintplan.runtime.run.command import run_command
from hintplan.runtime.run.execute import execute
from tests.sample import sampled
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

SPARE = {
    r"hintplan\.lock": "it only says who runs",
    r"hintplan/_last": "it only says which entry of the record is the last, which is there",
    r".*/\.[^/]*\.crc": "Spark reads what has no checksums; those that are wrong spoil what they are of",
    r".*\.written": "it only says that there was a manifest",
    r".*\.(manifest|arrow)": "older ones of which nothing is needed any more; never the last one of a partition",
    r"sink_result/sources/1": "nothing is in it, for the source has found no files",
}
"""What may lack."""

FIRST_ROWS = 20_000
"""So many that a segment of the join is a file of its own; the rows of the other batches stand in manifests."""
LAST_BATCH = 6
"""Orders come in five batches, then two in a second run."""


def orders_of(batch: int) -> list[dict[str, int | float]]:
    if batch == 0:
        return [{"id": i, "customer": i % 5, "amount": i + 0.5} for i in range(FIRST_ROWS)]
    return sample(FIRST_ROWS + 10 * batch, 10)


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(180)


@pytest.fixture(scope="module")
def job(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of two runs that has more to read."""
    directory = tmp_path_factory.mktemp("job")
    plan = revenue_plan(directory)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    for batches in (range(5), range(5, LAST_BATCH + 1)):
        for batch in batches:
            add_rows(directory, "orders", orders_of(batch))
        run_once(plan, spark, directory / "checkpoint")
    (directory / "plan.json").write_bytes(dumps(plan))
    add_rows(directory, "orders", orders_of(LAST_BATCH + 1))
    return directory


def delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def overwrite(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * (1 + path.stat().st_size // 9))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def link(path: Path) -> None:
    delete(path)
    path.symlink_to("nowhere")


def set_back(path: Path) -> None:
    """The file is what the one before it in its folder is, with its checksums; of the record, the last entry goes."""
    if path.name == "record.jsonl":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    elif (before := before_in_folder(path)) is not None:
        path.write_bytes(before.read_bytes())
        checksums = path.with_name(f".{path.name}.crc")
        if checksums.exists():
            checksums.write_bytes(before.with_name(f".{before.name}.crc").read_bytes())


def before_in_folder(path: Path) -> Path | None:
    """The file of the same kind that was written before ``path``; None of the first one, or if nothing tells them."""
    numbered = re.fullmatch(r"(\d+)(.*?)(\.[a-z]+)?", path.name)
    if numbered is None or path.name.startswith("."):
        return None
    older = [
        (int(found[1]), other)
        for other in path.parent.iterdir()
        if (found := re.fullmatch(r"(\d+)(.*?)(\.[a-z]+)?", other.name)) and found[3] == numbered[3]
    ]
    earlier = [(number, other) for number, other in older if number < int(numbered[1])]
    return max(earlier)[1] if earlier else None


def parts(checkpoint: Path) -> list[Path]:
    return [path.relative_to(checkpoint) for path in sorted(checkpoint.rglob("*"))]


@contextmanager
def damaged(job: Path, damage: Callable[[Path], None], *parts: Path) -> Iterator[Path]:
    """A copy of the checkpoint, in which each of ``parts`` is damaged."""
    copy = job / "damaged"
    shutil.copytree(job / "checkpoint", copy)
    try:
        for part in parts:
            damage(copy / part)
        yield copy
    finally:
        shutil.rmtree(copy)


def reports(checkpoint: Path) -> str:
    """What is said of the checkpoint; nothing if all is well."""
    try:
        undamaged_record(str(checkpoint), {})
    except RunError as error:
        return str(error)
    return ""


def is_spare(part: Path) -> bool:
    return any(re.fullmatch(pattern, part.as_posix()) for pattern in SPARE)


def last_of_partitions(checkpoint: Path) -> set[Path]:
    """The last manifest in each partition, and the last large segment: the job changes all of them in each batch."""
    partitions = list(checkpoint.glob("sink_result/state/*/*/*"))
    found = [sorted(folder.glob(kind)) for folder in partitions for kind in ("*.manifest", "*.arrow")]
    return {paths[-1].relative_to(checkpoint) for paths in found if paths}


def requires_named(part: Path, said: str) -> None:
    # Of a directory, the first things that lack in it; of the only file in one, the directory.
    names = "|".join(re.escape(path.as_posix()) for path in (part, *part.parents) if path != Path())
    assert re.search(rf"is damaged: (.*; )?({names})(/\S*)? ", said), (part, said)
    if "state" in part.parts[:2]:
        operator = part.parts[2].removesuffix(".1") if len(part.parts) > 2 else "aggregate_t, join_o_c"
        assert f"(state of {operator})" in said
    assert "hint: restore it, or the whole checkpoint, from a backup" in said


def requires_right_result(job: Path, spark: SparkSession, damage: Callable[[Path], None], *spare: Path) -> None:
    """What a run makes of the damaged checkpoint is right; the result is then as it was before."""
    shutil.copytree(job / "result", job / "kept")
    try:
        with damaged(job, damage, *spare) as checkpoint:
            run_once(revenue_plan(job), spark, checkpoint)
            orders = [order for batch in range(LAST_BATCH + 2) for order in orders_of(batch)]
            assert fold(changes(job)) == expected(orders), spare
    finally:
        shutil.rmtree(job / "result")
        (job / "kept").rename(job / "result")


def unnoticed(job: Path, damage: Callable[[Path], None], parts: list[Path]) -> list[Path]:
    """Those of the ``parts`` of which nothing is said when they are damaged; of each other one, that it is named."""
    found = []
    for part in parts:
        with damaged(job, damage, part) as checkpoint:
            if damage is set_back and (checkpoint / part).read_bytes() == (job / "checkpoint" / part).read_bytes():
                continue
            said = reports(checkpoint)
        if said and part.suffix != ".crc" and part.parts[0] != "hintplan":
            requires_named(part, said)
        elif not said:
            found.append(part)
    return found


def test_each_file_and_folder_that_is_missing_is_named_or_spare(spark: SparkSession, job: Path) -> None:
    checkpoint = job / "checkpoint"
    assert reports(checkpoint) == ""
    found = unnoticed(job, delete, parts(checkpoint))
    assert [part for part in found if not is_spare(part)] == []
    needed = last_of_partitions(checkpoint)
    assert {part.suffix for part in needed} == {".manifest", ".arrow"}
    assert not needed & {*found}
    assert any(part.suffix == ".manifest" for part in found)
    requires_right_result(job, spark, delete, *found)


SHARES = 6
"""Into as many parts the spare parts of a checkpoint are divided, each of which takes a run."""


@pytest.mark.integration
@pytest.mark.parametrize("share", sampled(range(SHARES), keep=1))
def test_a_run_without_each_spare_part_is_right(spark: SparkSession, job: Path, share: int) -> None:
    spare = [part for part in parts(job / "checkpoint") if is_spare(part)]
    for part in unnoticed(job, delete, spare[share::SHARES]):
        requires_right_result(job, spark, delete, part)


@pytest.mark.parametrize("damage", [overwrite, cut, empty, flip, set_back])
def test_each_file_that_is_not_what_was_written_is_named_or_spare(
    spark: SparkSession, job: Path, damage: Callable[[Path], None]
) -> None:
    checkpoint = job / "checkpoint"
    files = [part for part in parts(checkpoint) if (checkpoint / part).is_file() and (checkpoint / part).stat().st_size]
    found = unnoticed(job, damage, [part for part in files if part.name != "hintplan.lock"])
    assert [part for part in found if not is_spare(part)] == []
    assert not last_of_partitions(checkpoint) & {*found}
    requires_right_result(job, spark, damage, *found)


def test_links_are_named_wherever_they_are(job: Path) -> None:
    for part in parts(job / "checkpoint"):
        with damaged(job, link, part) as checkpoint:
            assert f"is damaged: {part.as_posix()} is a symbolic link" in reports(checkpoint)


def test_parts_that_are_not_what_was_written_are_named_without_checksums(job: Path, tmp_path: Path) -> None:
    shutil.copytree(job / "checkpoint", tmp_path / "checkpoint")
    for file in (tmp_path / "checkpoint").rglob(".*.crc"):
        file.unlink()
    files = [part for part in parts(tmp_path / "checkpoint") if (tmp_path / "checkpoint" / part).is_file()]
    for damage in (overwrite, cut, empty):
        found = unnoticed(tmp_path, damage, [part for part in files if part.name != "hintplan.lock"])
        assert {part.suffix for part in found} == {".written", ".manifest", ".arrow"}


COMMANDS = {"run": run_command, "check": check_command, "state": state_command}
CELLS = (
    ("hintplan", "hintplan/ is missing"),
    ("sink_result", "sink_result/ is missing"),
    ("sink_result/metadata", "sink_result/metadata is missing"),
    ("sink_result/offsets", "sink_result/offsets/0 is missing"),
    ("sink_result/offsets/0", "sink_result/offsets/0 is missing"),
    ("sink_result/offsets/1", "sink_result/offsets/1 is missing"),
    ("sink_result/offsets/6", "sink_result/offsets/6 is missing"),
    ("sink_result/commits", "sink_result/commits/0 is missing"),
    ("sink_result/commits/1", "sink_result/commits/1 is missing"),
    ("sink_result/commits/6", "sink_result/commits/6 is missing"),
    ("sink_result/[oc]*s/*6*", "sink_result/offsets/6 is missing, though there is sink_result/state/"),
    ("sink_result/sources", "sink_result/sources/0/6 is missing"),
    ("sink_result/sources/0/1", "sink_result/sources/0/1 is missing"),
    ("sink_result/state", "sink_result/state/ is missing (state of aggregate_t, join_o_c)"),
    ("sink_result/state/join_o_c.1", "sink_result/state/join_o_c.1/ is missing (state of join_o_c)"),
    ("sink_result/state/join_o_c.1/0/1", "sink_result/state/join_o_c.1/0/1/ is missing (state of join_o_c)"),
    ("sink_result/state/join_o_c.1/0/1/6.*.manifest", "sink_result/state/join_o_c.1/0/1/6."),
)


def without(job: Path, parts: str, to: Path) -> Path:
    """A copy that lacks what the pattern fits."""
    shutil.copytree(job / "checkpoint", to)
    for path in list(to.glob(parts)):
        delete(path)
    return to


@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("part", "said"), CELLS)
def test_commands_refuse_before_spark_starts(job: Path, tmp_path: Path, command: str, part: str, said: str) -> None:
    checkpoint = without(job, part, tmp_path / "checkpoint")
    before = sorted(tmp_path.rglob("*"))
    options = ["--take-over", "--allow-state-drop"] if command == "run" else []
    result = CliRunner().invoke(COMMANDS[command], [str(job / "plan.json"), "--checkpoint", str(checkpoint), *options])
    assert isinstance(result.exception, RunError), result.output
    assert f"checkpoint {checkpoint} is damaged: {said}" in str(result.exception)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("part", "said"), [CELLS[0], CELLS[1], CELLS[6], CELLS[13], CELLS[15]])
def test_plans_that_a_client_runs_are_refused_too(
    spark: SparkSession, job: Path, tmp_path: Path, part: str, said: str
) -> None:
    checkpoint = without(job, part, tmp_path / "checkpoint")
    plan = revenue_plan(job)
    with pytest.raises(RunError, match=re.escape(said)):
        execute(plan, spark, checkpoint=str(checkpoint), once=True, allow_state_drop=True, take_over=True)
    record = checkpoint / "hintplan" / "record.jsonl"
    assert not record.exists() or local_record(str(checkpoint)) == local_record(str(job / "checkpoint"))


def test_the_state_of_another_operator_is_not_taken_for_its_own(job: Path, tmp_path: Path) -> None:
    checkpoint = without(job, "sink_result/state/join_o_c.1", tmp_path / "checkpoint")
    states = checkpoint / "sink_result" / "state"
    shutil.copytree(states / "aggregate_t.1", states / "join_o_c.1")
    assert re.search(r"belongs to another state, of aggregate_t \(state of join_o_c\)", reports(checkpoint))


def test_a_partition_in_the_place_of_another_is_named(job: Path, tmp_path: Path) -> None:
    checkpoint = without(job, "sink_result/state/join_o_c.1/0/1", tmp_path / "checkpoint")
    partitions = checkpoint / "sink_result" / "state" / "join_o_c.1" / "0"
    shutil.copytree(partitions / "0", partitions / "1")
    assert re.search(r"join_o_c\.1/0/1/6\.\d+\.manifest is of partition 0 of 2", reports(checkpoint))


def test_a_run_that_ended_before_its_queries_began_and_one_without_its_last_commit_go_on(
    spark: SparkSession, job: Path, tmp_path: Path
) -> None:
    lines = (job / "checkpoint" / "hintplan" / "record.jsonl").read_text(encoding="utf-8").splitlines()
    fresh = tmp_path / "fresh" / "hintplan"
    fresh.mkdir(parents=True)
    (fresh / "record.jsonl").write_text(lines[0] + "\n", encoding="utf-8")
    assert reports(tmp_path / "fresh") == ""
    commits = Path("sink_result", "commits")  # a killed run leaves neither
    requires_right_result(job, spark, delete, commits / str(LAST_BATCH), commits / f".{LAST_BATCH}.crc")


@pytest.mark.parametrize(
    "drafts",
    [("offsets/.0.7e5d.tmp",), ("offsets/.0.7e5d.tmp", "offsets/..0.7e5d.tmp.crc"), ("commits/.0.7e5d.tmp",)],
    ids=["offsets", "offsets with checksums", "commits"],
)
def test_a_run_that_was_killed_while_it_wrote_its_first_entry_goes_on(
    spark: SparkSession, tmp_path: Path, drafts: tuple[str, ...]
) -> None:
    plan, checkpoint = revenue_plan(tmp_path), tmp_path / "checkpoint"
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 20))
    run_once(plan, spark, checkpoint)
    first_entry, *_ = (checkpoint / "hintplan" / "record.jsonl").read_bytes().splitlines(keepends=True)
    metadata = (checkpoint / "sink_result" / "metadata").read_bytes()
    for written in (checkpoint, tmp_path / "result"):
        shutil.rmtree(written)
    left = {f"sink_result/{draft}": b"v1\n{" for draft in drafts}
    for part, content in {"hintplan/record.jsonl": first_entry, "sink_result/metadata": metadata, **left}.items():
        (checkpoint / part).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / part).write_bytes(content)
    assert reports(checkpoint) == ""
    run_once(plan, spark, checkpoint)
    assert fold(changes(tmp_path)) == expected(sample(0, 20))


def test_batches_that_spark_no_longer_keeps_are_not_missed(job: Path, tmp_path: Path) -> None:
    checkpoint = without(job, "sink_result/[oc]*s/0", tmp_path / "checkpoint")
    assert "sink_result/offsets/0 is missing" in reports(checkpoint)
    undamaged_record(str(checkpoint), {"spark.sql.streaming.minBatchesToRetain": "2"})


def test_an_entry_of_the_record_that_is_missing_is_told(job: Path, tmp_path: Path) -> None:
    shutil.copytree(job / "checkpoint", tmp_path / "checkpoint")
    record = tmp_path / "checkpoint" / "hintplan" / "record.jsonl"
    _, *others = record.read_text(encoding="utf-8").splitlines()
    assert others
    record.write_text("\n".join([*others, ""]), encoding="utf-8")
    assert "hintplan has lost the entry of the plan that ran as number 1" in reports(tmp_path / "checkpoint")
