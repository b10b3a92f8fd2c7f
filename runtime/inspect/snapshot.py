"""Copies a checkpoint as of its last committed batches to another directory, also while a run is active there.

    take_snapshot("/data/checkpoints/revenue", "/data/snapshots/revenue-1120").batches

The batch of each query is chosen first. A run may remove files during the copy, since it no longer needs them; then the
copy continues with newer batches. The record is written last, and a local directory is created under a temporary name
and renamed, so an incomplete copy is not a valid checkpoint. The copy is then checked as before a run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import stored_files
from hintplan.runtime.checkpoint.parts import KEPT_BATCHES, refuse_damaged
from hintplan.runtime.inspect.batches import entries_kept, last_numbers, parsed_record, record_files
from hintplan.runtime.inspect.opening import no_checkpoint
from hintplan.runtime.inspect.snapshot_parts import SnapshotPart, snapshot_parts
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.local_files import LocalFiles

_ATTEMPTS = 10
_REQUESTS = 16
"""The number of concurrent requests to an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The copy of ``checkpoint`` in ``directory``; ``plan`` last ran on the checkpoint.

    ``batches`` are the last committed batches of its queries, None for a query without one. ``linked`` of the ``files``
    are hard links to files of the checkpoint.
    """

    checkpoint: str
    directory: str
    plan: str
    batches: Mapping[str, int | None]
    files: int
    bytes: int
    linked: int


def take_snapshot(checkpoint: str | os.PathLike[str], directory: str | os.PathLike[str]) -> Snapshot:
    """Copy ``checkpoint`` as of its last committed batches to ``directory``, which must be empty or not exist.

    Both are paths or URLs. RunError if there is no checkpoint, if it is damaged, if its run commits too fast, or if
    ``directory`` cannot be written. After an error, ``directory`` is unchanged.
    """
    checkpoint, directory = os.fspath(checkpoint), os.fspath(directory)
    source = files_at(absolute(checkpoint).rstrip("/"))
    with _empty(directory, source) as target:
        return _copied(checkpoint, directory, source, target)


def _copied(checkpoint: str, directory: str, source: Files, target: Files) -> Snapshot:
    have: dict[str, bool] = {}
    kept_before = KEPT_BATCHES
    failure: Exception | None = None
    failed_at: Mapping[str, int | None] | None = None
    for _ in range(_ATTEMPTS):
        lines = record_files(source)
        record = parsed_record(lines, checkpoint)
        if record is None:
            raise no_checkpoint(checkpoint)
        numbers = last_numbers(source, record.queries)
        try:
            parts = list(snapshot_parts(source, record, numbers))
            have |= _have(source, target, [part for part in parts if part.path not in have])
            for path in have.keys() - {part.path for part in parts}:
                target.remove(path)
                del have[path]
            there = stored_files(target.root)
            kept = entries_kept(there, record)
            refuse_damaged(there, record, checkpoint, kept=kept)
        except (FileNotFoundError, RunError) as error:
            before, failed_at, failure = failed_at, numbers, error
            # A single failure may be due to a compaction, which replaces files of the same batch.
            if before == numbers == last_numbers(source, record.queries):
                raise
            continue
        # The oldest entries of Spark's logs may just have been removed, but a run needs as many as Spark keeps.
        short = kept < kept_before and last_numbers(source, record.queries) != numbers
        kept_before = kept
        if short or record_files(source) != lines:
            continue
        for path, text in lines.items():
            target.publish(path, text)
        sizes = there.sizes.values()
        return Snapshot(
            checkpoint=checkpoint,
            directory=directory,
            plan=record.plan,
            batches=numbers,
            files=len(sizes) + len(lines),
            bytes=sum(sizes) + sum(map(len, lines.values())),
            linked=sum(have.values()),
        )
    raise RunError(
        f"a run is active in {checkpoint}, and removes files before they are copied",
        hint="try again, or stop the run while the snapshot is made",
    ) from failure


def _have(source: Files, target: Files, parts: list[SnapshotPart]) -> dict[str, bool]:
    """Copy or link ``parts``, and return for each whether it was linked."""

    def one(part: SnapshotPart) -> bool:
        if target.take(part.path, source, link=part.link):
            return part.link
        data = source.read(part.path)
        with target.writing(part.path) as out:
            out.write(data)
        for files in (source, target):
            files.distrust(part.path)  # discard the copy on this machine
        return False

    is_local = isinstance(source, LocalFiles) and isinstance(target, LocalFiles)
    linked: dict[str, bool] = {}
    for group in ([part for part in parts if not part.link], [part for part in parts if part.link]):
        if is_local:
            linked |= {part.path: one(part) for part in group}
        else:
            with ThreadPoolExecutor(_REQUESTS) as pool:
                linked |= dict(zip((part.path for part in group), pool.map(one, group), strict=True))
    return linked


@contextmanager
def _empty(directory: str, source: Files) -> Iterator[Files]:
    """Provide the files of an empty ``directory`` until it is complete; RunError if it has files, or cannot be written.

    If the block fails, remove all files.
    """
    try:
        if is_local_path(directory):
            with _beside(Path(os.path.realpath(directory.removeprefix("file://"))), directory, source) as target:
                yield target
        else:
            with _behind(directory.rstrip("/"), source) as target:
                yield target
    except OSError as error:
        raise RunError(
            f"the snapshot {directory} cannot be made: {error.strerror or error} ({error.filename or source.root})",
            hint="there must be room, the right to write there, and to read the checkpoint",
        ) from error


@contextmanager
def _beside(place: Path, directory: str, source: Files) -> Iterator[Files]:
    if isinstance(source, LocalFiles) and Path(os.path.realpath(source.root)) in (place, *place.parents):
        raise _inside(directory)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise _taken(directory)
    place.parent.mkdir(parents=True, exist_ok=True)
    making = tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
    try:
        yield LocalFiles(making)
        _settle(making, source, place)
        os.rename(making, place)
        LocalFiles(str(place.parent)).settle("")
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _settle(making: str, source: Files, place: Path) -> None:
    """Give directories and copies the permissions that they have in the checkpoint, and sync them to the disk.

    The top directory is readable only for users who could read both the checkpoint and the previous directory.
    """
    for folder, _, names in os.walk(making, topdown=False):
        below = os.path.relpath(folder, making)
        if isinstance(source, LocalFiles):
            for name in (*names, "."):
                with suppress(FileNotFoundError):
                    mode = os.stat(os.path.join(source.root, below, name)).st_mode & 0o777
                    mode &= place.stat().st_mode if (below, name) == (".", ".") and place.exists() else 0o777
                    if os.stat(os.path.join(folder, name)).st_mode & 0o777 != mode:
                        os.chmod(os.path.join(folder, name), mode)
        LocalFiles(folder).settle("")


@contextmanager
def _behind(url: str, source: Files) -> Iterator[Files]:
    if f"{url}/".startswith(f"{source.root}/"):
        raise _inside(url)
    target = files_at(url)
    if stored_files(url).sizes:
        raise _taken(url)
    try:
        yield target
    except BaseException:
        for path in stored_files(url).sizes:
            target.remove(path)
        raise


def _inside(directory: str) -> RunError:
    return RunError(
        f"the snapshot {directory} would be a part of the checkpoint", hint="give a directory that is not inside of it"
    )


def _taken(directory: str) -> RunError:
    return RunError(
        f"{directory} is not empty: a snapshot is a directory of its own",
        hint="choose a new directory, or empty this one",
    )
