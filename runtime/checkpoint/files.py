"""The names, sizes and contents of the files of a checkpoint.

This process reads the files on this machine; Spark reads the files elsewhere.

    files = local_files(Path("/data/checkpoints/revenue"))
    files.sizes["sink_r/offsets/0"]
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from hintplan.plans.checkpoint.record import is_local_path
from hintplan.plans.errors import RunError
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.names import escaped_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hintplan.runtime.storage.remote_files import RemoteFiles

_CHECKSUMS = b"crc\0"
"""The first bytes of Hadoop's checksum files. The block size in bytes follows, then a checksum of four bytes per block.
"""
SMALL = 1 << 20
"""The checksums of larger files are not computed; only their lengths are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """The files below a checkpoint. All paths are relative to the checkpoint.

    ``sizes`` has the size of each file. ``read`` returns the contents of some files. ``spoilt`` returns whether a file
    differs from its checksum file, if it has one. ``gone`` are files that are missing although their checksum files
    exist. ``whole`` is true if ``sizes`` includes the files that Spark hides, such as ``_metadata``. ``sizes`` has
    neither symbolic ``links`` nor ``folders``.
    """

    sizes: Mapping[str, int]
    read: Callable[[Sequence[str]], dict[str, bytes]]
    spoilt: Callable[[str], bool] = lambda path: False
    gone: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    whole: bool = True

    def names(self, directory: str) -> list[str]:
        """Return the names of the files in ``directory``."""
        start = f"{directory}/"
        return [path[len(start) :] for path in self.sizes if path.startswith(start) and "/" not in path[len(start) :]]

    def numbers(self, directory: str) -> list[int]:
        """Return the entries of one of Spark's logs, whose files have numbers as names, in order."""
        return sorted(int(name) for name in self.names(directory) if name.isdecimal())


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A part of a checkpoint, by its relative path, and its damage."""

    part: str
    what: str = "is missing"

    def __str__(self) -> str:
        return f"{self.part} {self.what}"


NO_FILES = CheckpointFiles(sizes={}, read=lambda paths: {})
"""The files of a checkpoint that does not exist yet."""


def local_directory(spark: SparkSession, checkpoint: str) -> Path | None:
    """Return the path of ``checkpoint`` on this machine, or None if it is elsewhere.

    On Spark Connect, the result is always None, because only the server knows the file system.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    url = urlsplit(_qualified(spark, checkpoint))
    return Path(unquote(url.path)) if url.scheme == "file" else None


def reached_by_workers(spark: SparkSession, checkpoint: str) -> str:
    """Return ``checkpoint`` as workers reach it: a path on mounted file systems, otherwise a URL."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return checkpoint
    directory = local_directory(spark, checkpoint)
    return _qualified(spark, checkpoint) if directory is None else str(directory)


def _qualified(spark: SparkSession, checkpoint: str) -> str:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import IllegalArgumentException

    jvm = jvm_of(spark)
    try:
        path = jvm.org.apache.hadoop.fs.Path(checkpoint)
        system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        return str(system.makeQualified(path).toUri().toString())
    except (Py4JJavaError, IllegalArgumentException) as error:
        raise RunError(
            f"{checkpoint} cannot be reached: {root_cause(error)}",
            hint="check the scheme and the host of the path, and whether Spark has the packages of the file system",
        ) from error


def checkpoint_files(spark: SparkSession, checkpoint: str) -> CheckpointFiles:
    """Return the files of ``checkpoint``, local or remote; no files if it does not exist."""
    directory = local_directory(spark, checkpoint)
    return _remote_files(spark, checkpoint) if directory is None else local_files(directory)


def stored_files(root: str) -> CheckpointFiles:
    """Return the files of a checkpoint at ``root``, a path or a URL, without Spark; RunError if it cannot be listed."""
    if is_local_path(root):
        return local_files(Path(root.removeprefix("file://")))
    from hintplan.runtime.storage.remote_files import remote_files

    with reaching(root):
        files = remote_files(root)
        sizes = files.sizes()
    return CheckpointFiles(sizes=sizes, read=partial(_fetched, files), whole=False)


@contextmanager
def reaching(root: str) -> Iterator[None]:
    """Raise RunError if the first access to a URL in the block fails: no server answers, or access is denied."""
    from hintplan.runtime.stores import silence

    try:
        if (why := silence(root)) is not None:
            raise OSError(why)
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if is_local_path(root):
            raise
        raise RunError(
            f"{root} cannot be reached: {error}",
            hint="check the path, the server, and the credentials in the environment",
        ) from error


def _fetched(files: RemoteFiles, paths: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        with suppress(FileNotFoundError):
            contents[path] = files.fetched(path)
    return contents


def local_files(directory: Path) -> CheckpointFiles:
    """Return the files of a checkpoint on this machine; RunError if it cannot be listed."""
    sizes, checked, links, below = {}, set(), set(), set()
    for folder, folders, names in os.walk(directory, onerror=refuse_unreadable):
        relative = Path(folder).relative_to(directory)
        below |= {(relative / name).as_posix() for name in folders}
        linked = {name for name in (*folders, *names) if Path(folder, name).is_symlink()}
        links |= {(relative / name).as_posix() for name in linked}
        for name in names:
            if name in linked:
                continue
            if not name.startswith("."):
                sizes[(relative / name).as_posix()] = Path(folder, name).lstat().st_size
            elif name.endswith(".crc"):
                checked.add((relative / name[1:].removesuffix(".crc")).as_posix())
    return CheckpointFiles(
        sizes=sizes,
        read=partial(_read_local, directory),
        spoilt=partial(_is_spoilt, directory),
        gone=frozenset(checked - sizes.keys()),
        links=frozenset(links),
        folders=frozenset(below),
    )


def refuse_unreadable(error: OSError) -> None:
    """Raise RunError with the reason why a local file cannot be read. Ignore files that do not exist."""
    if isinstance(error, FileNotFoundError):
        return
    hint = "the user of the run needs the right to read it"
    if isinstance(error, NotADirectoryError):
        hint = "there is a file where a directory must be: give another path, or remove the file"
    raise RunError(f"{error.filename} cannot be read: {error.strerror}", hint=hint) from error


def _read_local(directory: Path, paths: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        try:
            contents[path] = (directory / path).read_bytes()
        except OSError as error:
            refuse_unreadable(error)
    return contents


def _is_spoilt(directory: Path, path: str) -> bool:
    file = directory / path
    try:
        checksums = (file.parent / f".{file.name}.crc").read_bytes()
        size = file.stat().st_size
    except OSError:
        return False
    if checksums[:4] != _CHECKSUMS or len(checksums) < 8:
        return False
    step = int.from_bytes(checksums[4:8], "big")
    if len(checksums) != 8 + 4 * -(-size // step):
        return True
    if size > SMALL:
        return False
    data = file.read_bytes()
    wanted = b"".join(zlib.crc32(data[at : at + step]).to_bytes(4, "big") for at in range(0, size, step))
    return checksums[8:] != wanted


def _remote_files(spark: SparkSession, checkpoint: str) -> CheckpointFiles:
    from pyspark.errors import AnalysisException

    root = urlsplit(checkpoint).path.strip("/") if "://" in checkpoint else checkpoint.strip("/")

    def load(paths: Sequence[str], *columns: str) -> list[Any]:
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            return reader.load([escaped_path(path) for path in paths]).select("path", *columns).collect()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return []

    def read(paths: Sequence[str]) -> dict[str, bytes]:
        urls = [f"{checkpoint.rstrip('/')}/{path}" for path in paths]
        rows = load(urls, "content") if urls else []
        return {row.path.partition(f"/{root}/")[2]: bytes(row.content) for row in rows}

    sizes = {row.path.partition(f"/{root}/")[2]: row.length for row in load([checkpoint], "length")}
    return CheckpointFiles(sizes=sizes, read=read, whole=False)
