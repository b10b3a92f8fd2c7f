"""The parts that a checkpoint must have, and a check for missing or damaged parts.

    <checkpoint>/hintplan/                       the record of its runs (:mod:`hintplan.plans.checkpoint.record`)
    <checkpoint>/<query>/metadata                the id of a query
    <checkpoint>/<query>/offsets/<n>             the input of batch n, written before the batch begins
    <checkpoint>/<query>/commits/<n>             batch n has ended
    <checkpoint>/<query>/sources/<s>/<n>         files that source s has found; every tenth entry has all before it
    <checkpoint>/<query>/ending/<n>              batch n ends event time (:mod:`hintplan.runtime.spark.ending`)
    <checkpoint>/<query>/marks/<n>               the versions of sinks (:mod:`hintplan.runtime.checkpoint.sink_marks`)
    <checkpoint>/<query>/logs.<g>/               a later generation (:mod:`hintplan.runtime.checkpoint.generations`)
    <checkpoint>/<query>/state/                  state of operators (:mod:`hintplan.runtime.checkpoint.state_parts`)
    <checkpoint>/<query>/pins/                   pinned answers (:mod:`hintplan.runtime.checkpoint.pin_parts`)

The check prevents a run from taking a damaged checkpoint for a new one. Spark keeps the last hundred batches of its
logs. A batch with offsets that is not committed runs again, so the last entry of ``commits`` may be missing after a run
was killed. This module reads files through :mod:`hintplan.runtime.checkpoint.files`, and starts nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hintplan.plans.checkpoint.record import LAST, CheckpointRecord, last_line, local_record
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles, Damage, local_files
from hintplan.runtime.checkpoint.pin_parts import pin_damages
from hintplan.runtime.checkpoint.run_lock import is_held
from hintplan.runtime.checkpoint.sink_marks import mark_damage, newest_mark
from hintplan.runtime.checkpoint.state_parts import state_damages
from hintplan.runtime.storage.manifest import RESTORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT_BATCHES = 100
"""The number of batches that Spark keeps in its logs by default."""
_KEPT = "spark.sql.streaming.minBatchesToRetain"
_SAID = 3
_BATCH = re.compile(r"[^/]+/(logs\.\d+/)?(offsets|commits)/\d+")


def batches_kept(spark: SparkSession) -> int:
    """Return the number of batches that ``spark`` keeps in its logs."""
    return int(spark.conf.get(_KEPT, str(KEPT_BATCHES)) or KEPT_BATCHES)


def undamaged_record(checkpoint: str, conf: Mapping[str, str]) -> CheckpointRecord | None:
    """Return the record of a checkpoint on this machine, or None if it is new; RunError if the checkpoint is damaged.

    A checkpoint that a run is writing to is not checked, because its files change all the time. That run checked it
    when it started.
    """
    record = local_record(checkpoint)
    directory = Path(checkpoint.removeprefix("file://"))
    if not is_held(directory):
        refuse_damaged(local_files(directory), record, checkpoint, kept=int(conf.get(_KEPT, KEPT_BATCHES)))
    return record


def refuse_damaged(
    files: CheckpointFiles, record: CheckpointRecord | None, checkpoint: str, *, kept: int = KEPT_BATCHES
) -> None:
    """Raise RunError with the damaged parts, unless the checkpoint has everything that its runs have written.

    The runs are those in ``record``.
    """
    damaged = list(damages(files, record, kept=kept))
    if damaged:
        more = f"; and {len(damaged) - _SAID} more" if len(damaged) > _SAID else ""
        raise RunError(
            f"checkpoint {checkpoint} is damaged: {'; '.join(map(str, damaged[:_SAID]))}{more}",
            hint=RESTORE,
        )


def damages(files: CheckpointFiles, record: CheckpointRecord | None, *, kept: int = KEPT_BATCHES) -> Iterator[Damage]:
    """Yield the missing and damaged parts of a checkpoint with ``record``, which is None if it has none."""
    if files.links:
        yield from (Damage(part=path, what="is a symbolic link, which no run makes") for path in sorted(files.links))
        return
    ran = {path.split("/")[0] for path in files.sizes if _BATCH.fullmatch(path)}
    if record is None:
        if ran:
            yield Damage(part="hintplan/", what=f"is missing, though there are batches of {' and '.join(sorted(ran))}")
        return
    if (wrong := _lost_entry(files, record)) is not None:
        yield wrong
    recorded = {query.id for query in record.queries}
    for query in sorted(ran - recorded):
        yield Damage(part="hintplan/", what=f"does not mention {query}, although there are batches of it")
    for path in sorted(files.sizes):
        if path.startswith("hintplan/") and files.spoilt(path):
            yield Damage(part=path, what="was changed after it was written")
    for query_record in record.queries:
        yield from _of_query(files, query_record, kept)


def _lost_entry(files: CheckpointFiles, record: CheckpointRecord) -> Damage | None:
    """Return the damage if the last entries of a record are lost, which the remaining entries do not show."""
    content = files.read([f"hintplan/{LAST}"]).get(f"hintplan/{LAST}") if f"hintplan/{LAST}" in files.sizes else None
    if content is None or content == last_line(record).encode():
        return None
    match = re.fullmatch(rb"(\d{1,9}) [0-9a-f]{16}\n", content)
    if match is None or int(match[1]) == record.run:
        return Damage(part=f"hintplan/{LAST}", what="was not written by hintplan")
    if int(match[1]) < record.run:  # a run was killed before it had updated this file
        return None
    return Damage(part="hintplan/", what=f"has lost the entry of the plan that ran as number {int(match[1])}")


def last_batches(files: CheckpointFiles, logs: str) -> tuple[int, int]:
    """Return the numbers of the last batch in ``logs`` that began, and of the last that ended; -1 if there is none."""
    offsets, commits = files.numbers(f"{logs}/offsets"), files.numbers(f"{logs}/commits")
    return max(offsets, default=-1), max(commits, default=-1)


def _of_query(files: CheckpointFiles, query: QueryRecord, kept: int) -> Iterator[Damage]:
    here = query.logs
    if not any(path.startswith(f"{here}/") for path in files.sizes):
        if query.begun:
            is_file = here in files.sizes
            yield Damage(part=f"{here}/", what="is a file, where a directory must be" if is_file else "is missing")
        return
    if f"{here}/metadata" not in files.sizes:
        yield _missing(files, f"{here}/metadata")
    began, ended = last_batches(files, here)
    if began < 0 and ended < 0:
        if any(path.startswith(f"{query.id}/state/") for path in files.sizes):
            yield Damage(part=f"{here}/offsets/", what="and commits/ are empty, though there is state")
        return
    # A batch that began may not have ended; a batch that ended has begun.
    last = {"offsets": max(began, ended), "commits": began - 1 if ended < began else ended}
    checked = [f"{here}/metadata"]
    for log, newest in last.items():
        numbers = range(max(0, newest - kept + 1), newest + 1)
        yield from (_missing(files, part) for n in numbers if (part := f"{here}/{log}/{n}") not in files.sizes)
        # Checksums without their entry show that the entry was lost: a killed run leaves no checksums of an unwritten
        # entry.
        next_entry = f"{here}/{log}/{newest + 1}"
        if next_entry in files.gone:
            yield Damage(part=next_entry)
        # On remote file systems, reading all entries that Spark never reads again would take too long.
        checked += [f"{here}/{log}/{n}" for n in (*numbers, newest + 1) if files.whole or n >= newest - 1]
    marked = newest_mark(files, query.id, ended)
    contents = files.read([path for path in (*checked, marked or "") if path in files.sizes])
    if marked is not None and (wrong := mark_damage(marked, contents.pop(marked))) is not None:
        yield wrong
    for path, content in contents.items():
        if files.spoilt(path) or not _is_log(content, header="metadata" not in path):
            yield Damage(part=path, what="was changed after Spark wrote it")
    yield from _of_others({path: entry for path, entry in contents.items() if path.startswith(f"{here}/offsets/")})
    if offsets := contents.get(f"{here}/offsets/{began}"):
        yield from _of_sources(files, query, offsets)
    yield from state_damages(files, query, began=last["offsets"], ended=ended)
    yield from pin_damages(files, query, began=began, ended=ended)


def _missing(files: CheckpointFiles, part: str) -> Damage:
    problem = "is a directory, where a file must be" if part in files.folders else "is missing"
    return Damage(part=part, what=problem)


def _of_others(offsets: Mapping[str, bytes]) -> Iterator[Damage]:
    """Yield entries that are copies of another entry: each has the start time of its batch, so no two are equal."""
    first: dict[bytes, str] = {}
    for path, content in offsets.items():
        same = first.setdefault(content, path)
        if same != path:
            yield Damage(part=path, what=f"is what stands in {same}")


def _is_log(content: bytes, *, header: bool = True) -> bool:
    """Return whether a file has lines of JSON or ``-``, after a line with a version if it has a ``header``."""
    try:
        lines = content.decode().splitlines()
        if header and not re.fullmatch(r"v\d+", lines.pop(0)):
            return False
        for line in lines:
            if line != "-":
                json.loads(line)
    except (ValueError, IndexError):
        return False
    return header or bool(lines)


def _of_sources(files: CheckpointFiles, query: QueryRecord, offsets: bytes) -> Iterator[Damage]:
    """Yield the missing and damaged entries of the file logs of sources, up to the last batch."""
    for number, newest in _source_ends(
        query, offsets, lambda number: bool(files.names(f"{query.logs}/sources/{number}"))
    ):
        folder = f"{query.logs}/sources/{number}"
        names, needed = set(files.names(folder)), []
        while newest >= 0:
            compact = f"{newest}.compact" in names
            needed.append(f"{folder}/{newest}{'.compact' if compact else ''}")
            if needed[-1] not in files.sizes:
                yield _missing(files, needed.pop())
                break
            if compact:
                break
            newest -= 1
        for path, content in files.read(needed).items():
            if files.spoilt(path) or not _is_log(content):
                yield Damage(part=path, what="was changed after Spark wrote it")
            elif (batch := _batch_of_files(content)) != int(path.rpartition("/")[2].removesuffix(".compact")):
                yield Damage(part=path, what="names no file" if batch is None else f"belongs to batch {batch}")


def _batch_of_files(log: bytes) -> int | None:
    """Return the batch of an entry of a source log, which is the batch of its newest files; None if it has no files."""
    entries = (json.loads(line) for line in log.decode().splitlines()[1:])
    return max((entry["batchId"] for entry in entries if isinstance(entry, dict) and "batchId" in entry), default=None)


def _source_ends(query: QueryRecord, offsets: bytes, has_files: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Yield the number of each source of ``query`` that has a file log, with the newest log entry in ``offsets``.

    If the sources of the lines are unknown, yield all sources with files, each with the entry of the slowest source.
    """
    ends = [log_offset(line) for line in offsets.decode(errors="replace").splitlines()[2:]]
    if len(query.order) == len(ends):
        newest = {number: end for (_, number), end in zip(query.order, ends, strict=True)}
    elif any(source.places > 1 for source in query.sources):
        least = None if None in ends else min((end for end in ends if end is not None), default=None)
        newest = {number: least if has_files(number) else None for number in range(len(ends))}
    else:
        newest = dict(enumerate(ends))
    yield from ((number, end) for number, end in newest.items() if end is not None)


def log_offset(line: str) -> int | None:
    """Return the newest log entry in a source's offset; None if the source reads no files, or has found none yet."""
    try:
        offset = json.loads(line)["logOffset"]
    except (ValueError, KeyError, TypeError):
        return None
    return offset if isinstance(offset, int) else None
