"""Stores for the files of a lease: in a shared directory, behind Hadoop's file systems, or behind pyarrow's.

    store = directory_store(Path("/mnt/checkpoints/revenue"))
    store.create(1, b"...")

A store raises OSError for every failure of its file system, regardless of the original exception.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hintplan.runtime.checkpoint.lease import LEASES
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.storage.local_files import NO_LINKS, LocalFiles
from hintplan.runtime.storage.remote_files import RemoteFiles

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession

_CREATES_ONCE = ("abfs", "abfss", "gs", "hdfs", "o3fs", "ofs", "swebhdfs", "viewfs", "webhdfs")
"""Schemes for which Hadoop lets only one of several clients create a file. For s3a, it depends on the version and the
server.
"""

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryStore:
    """Files in a directory that other machines may share. Every call refreshes the listing."""

    files: LocalFiles
    atomic: bool = True

    def epochs(self) -> list[int]:
        self.files.refresh(LEASES)
        return _epochs(self.files.names(LEASES))

    def read(self, epoch: int) -> bytes | None:
        self.files.refresh(LEASES)
        try:
            return Path(self.files.root, LEASES, str(epoch)).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, epoch: int, data: bytes) -> bool:
        target = Path(self.files.root, LEASES, str(epoch))
        with self._drafted(data) as draft:
            try:
                os.link(draft, target)
            except FileExistsError:
                return draft.stat().st_nlink == 2  # we created it, and the answer of the server was lost
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
            else:
                return True
        try:
            with target.open("xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True

    def write(self, epoch: int, data: bytes) -> None:
        with self._drafted(data) as draft:
            draft.replace(Path(self.files.root, LEASES, str(epoch)))

    def remove(self, epoch: int) -> None:
        self.files.remove(f"{LEASES}/{epoch}")

    @contextmanager
    def _drafted(self, data: bytes) -> Iterator[Path]:
        folder = Path(self.files.root, LEASES)
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield draft
        finally:
            draft.unlink(missing_ok=True)


def directory_store(directory: Path, *, fresh: bool = True) -> DirectoryStore:
    """Return the lease of a checkpoint in a directory that is mounted here.

    Without ``fresh``, which needs write access, its state may be half a minute old.
    """
    return DirectoryStore(files=LocalFiles(str(directory), shared=fresh))


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopStore:
    """Files that Spark's JVM reads and writes."""

    jvm: JVMView
    system: JavaObject
    folder: str
    atomic: bool

    def epochs(self) -> list[int]:
        def listed() -> list[int]:
            return _epochs(str(status.getPath().getName()) for status in self.system.listStatus(self._path()))

        return self._asked(listed, [])

    def read(self, epoch: int) -> bytes | None:
        def content() -> bytes:
            source = self.system.open(self._path(epoch))
            try:
                return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(source))
            finally:
                source.close()

        return self._asked(content, None)

    def create(self, epoch: int, data: bytes) -> bool:
        try:
            self._written(epoch, data, replace=False)
        except FileExistsError:
            return False
        return True

    def write(self, epoch: int, data: bytes) -> None:
        self._written(epoch, data, replace=True)

    def remove(self, epoch: int) -> None:
        self._asked(lambda: self.system.delete(self._path(epoch), False), None)

    def _written(self, epoch: int, data: bytes, *, replace: bool) -> None:
        def write() -> None:
            out = self.system.create(self._path(epoch), replace)
            try:
                out.write(bytearray(data))
            finally:
                out.close()

        self._asked(write, None)

    def _path(self, epoch: int | None = None) -> JavaObject:
        return self.jvm.org.apache.hadoop.fs.Path(self.folder if epoch is None else f"{self.folder}/{epoch}")

    def _asked(self, ask: Callable[[], _Done], missing: _Done) -> _Done:
        """Return the result of ``ask``, or ``missing`` if a file does not exist.

        Raise FileExistsError if the file already exists, and OSError for other failures. Hadoop's file systems report
        an existing file with different exceptions.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return ask()
        except Py4JJavaError as error:
            text = str(error.java_exception.toString())
            if "FileNotFoundException" in text:
                return missing
            if "AlreadyExists" in text or "AlreadyBeingCreated" in text or "already exists" in text:
                raise FileExistsError(text) from error
            raise OSError(text) from error
        except Py4JError as error:
            raise OSError(str(error)) from error


def hadoop_store(spark: SparkSession, checkpoint: str, folder: str = LEASES) -> HadoopStore:
    """Return the lease of a checkpoint on a file system that Spark reaches; not for Spark Connect.

    ``folder`` can name another directory of files with numbers as names.
    """
    jvm = jvm_of(spark)
    path = jvm.org.apache.hadoop.fs.Path(checkpoint)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    target = str(jvm.org.apache.hadoop.fs.Path(path, folder).toString())
    return HadoopStore(jvm=jvm, system=system, folder=target, atomic=str(system.getScheme()) in _CREATES_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowStore:
    """Files behind a URL, accessed without Spark."""

    files: RemoteFiles
    atomic: bool = False

    def epochs(self) -> list[int]:
        return _epochs(self.files.names(LEASES))

    def read(self, epoch: int) -> bytes | None:
        with suppress(FileNotFoundError):
            return self.files.fetched(f"{LEASES}/{epoch}")
        return None

    def create(self, epoch: int, data: bytes) -> bool:
        return self.files.publish(f"{LEASES}/{epoch}", data)

    def write(self, epoch: int, data: bytes) -> None:
        self.files.replace(f"{LEASES}/{epoch}", data)

    def remove(self, epoch: int) -> None:
        self.files.remove(f"{LEASES}/{epoch}")


def arrow_store(files: RemoteFiles) -> ArrowStore:
    """Return the lease of a checkpoint behind a URL."""
    return ArrowStore(files=files)


def _epochs(names: Iterable[str]) -> list[int]:
    return [int(name) for name in names if name.isdecimal()]
