"""Where the files of a lease are: in a directory that machines share, behind Hadoop's interface, or behind pyarrow's.

    store = directory_store(Path("/mnt/checkpoints/revenue"))
    store.create(1, b"...")

What a file system does not answer is an OSError, whatever it calls that.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hintplan.runtime.checkpoint.lease import LEASES
from hintplan.runtime.storage.local_files import NO_LINKS, LocalFiles
from hintplan.runtime.storage.remote_files import RemoteFiles

_CREATES_ONCE = ("abfs", "abfss", "gs", "hdfs", "o3fs", "ofs", "swebhdfs", "viewfs", "webhdfs")
"""Schemes on which Hadoop creates a file for one of several only. What s3a does depends on its version and server."""

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryStore:
    """Files in a directory that other machines may see, too: a listing is asked for anew each time."""

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
                return draft.stat().st_nlink == 2  # it was ours, and the answer of the server was lost
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
    """The lease of a checkpoint in a directory that is mounted here.

    Without ``fresh`` it may be what it was half a minute ago, for who has no right to write there.
    """
    return DirectoryStore(files=LocalFiles(str(directory), shared=fresh))


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopStore:
    """Files that Spark's JVM reaches."""

    jvm: Any
    system: Any
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

    def _path(self, epoch: int | None = None) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(self.folder if epoch is None else f"{self.folder}/{epoch}")

    def _asked(self, ask: Callable[[], _Done], missing: _Done) -> _Done:
        """What ``ask`` gives, or ``missing`` if a file is not there; OSError or FileExistsError for what else it says.

        Of a file that is there, Hadoop's file systems say so in different exceptions.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return ask()
        except Py4JJavaError as error:
            said = str(error.java_exception.toString())
            if "FileNotFoundException" in said:
                return missing
            if "AlreadyExists" in said or "AlreadyBeingCreated" in said or "already exists" in said:
                raise FileExistsError(said) from error
            raise OSError(said) from error
        except Py4JError as error:
            raise OSError(str(error)) from error


def hadoop_store(spark: Any, checkpoint: str, folder: str = LEASES) -> HadoopStore:
    """The lease of a checkpoint on a file system that Spark reaches, which is not on Spark Connect.

    Other files with numbers for names are in another ``folder``.
    """
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(checkpoint)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    place = str(jvm.org.apache.hadoop.fs.Path(path, folder).toString())
    return HadoopStore(jvm=jvm, system=system, folder=place, atomic=str(system.getScheme()) in _CREATES_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowStore:
    """Files behind a URL, for who has no Spark."""

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
    """The lease of a checkpoint behind a URL."""
    return ArrowStore(files=files)


def _epochs(names: Any) -> list[int]:
    return [int(name) for name in names if name.isdecimal()]
