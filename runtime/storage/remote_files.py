"""Files behind a URL, accessed through pyarrow. Each file is read from a complete copy on this machine.

A copy has the name of the file. Names are never reused, so a copy is never stale; a damaged copy is fetched again. An
object store publishes a file after its last byte; on other file systems, a complete file is renamed. Credentials come
from the environment or the role of the machine, never from a plan. :mod:`hintplan.runtime.stores` lists the supported
URLs.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.local_files import mapped
from hintplan.runtime.storage.operations import FileOperations
from hintplan.runtime.stores import move_onto, open_store

_OBJECT_STORES = ("s3", "gcs", "abfs")
_COPIED_BYTES = 8 << 20
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""The pauses in seconds before a failed read is repeated."""

_Got = TypeVar("_Got")


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """The files below ``base`` of ``system``, at the URL ``root``, with local copies in the directory ``copies``."""

    root: str
    system: pafs.FileSystem
    base: str
    copies: str
    operations: FileOperations = field(default_factory=FileOperations, compare=False)

    def names(self, folder: str) -> list[str]:
        self.operations.lists += 1
        listed = [info.base_name for info in self._listed(pafs.FileSelector(f"{self.base}/{folder}"))]
        here = os.path.join(self.copies, folder)
        with suppress(FileNotFoundError):
            for name in set(os.listdir(here)) - set(listed):
                if not name.startswith("."):
                    self._forget(f"{folder}/{name}")
        return listed

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files by path, except files whose names begin with a dot."""
        return {
            info.path.removeprefix(f"{self.base}/"): info.size
            for info in self._listed(pafs.FileSelector(self.base, recursive=True))
            if info.type == pafs.FileType.File and not info.base_name.startswith(".")
        }

    def fetched(self, path: str) -> bytes:
        """Return the content of a file without a local copy; FileNotFoundError if it does not exist."""

        def fetch() -> bytes:
            with self.system.open_input_stream(f"{self.base}/{path}") as source:
                return bytes(source.read())

        return patiently(fetch)

    def read(self, path: str) -> pa.Buffer:
        try:
            with open(os.path.join(self.copies, path), "rb") as source:
                return mapped(source)
        except FileNotFoundError:
            pass
        self.operations.reads += 1
        with self._drafted(path) as draft:

            def copy() -> None:
                with self.system.open_input_stream(f"{self.base}/{path}") as source, open(draft, "wb") as file:
                    while part := source.read(_COPIED_BYTES):
                        file.write(part)

            patiently(copy)
            os.replace(draft, os.path.join(self.copies, path))
        return self.read(path)

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        with self._drafted(path) as draft:
            with open(draft, "wb") as file:
                yield file
            with open(draft, "rb") as source, self._published(path) as out:
                while part := source.read(_COPIED_BYTES):
                    out.write(part)
            os.replace(draft, os.path.join(self.copies, path))

    def publish(self, path: str, data: bytes) -> bool:
        if self._is_there(path):
            return False
        try:
            with self._published(path) as out:
                out.write(data)
        except FileExistsError:
            return False  # another attempt was first, which only a rename detects
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, and replace an existing one. Read such a file only with :meth:`fetched`."""
        with self._published(path, onto=True) as out:
            out.write(data)

    def mark(self, path: str) -> None:
        pass

    def remove(self, path: str) -> None:
        self._forget(path)
        self.operations.deletes += 1
        with suppress(FileNotFoundError):
            self.system.delete_file(f"{self.base}/{path}")

    def take(self, path: str, source: object, *, link: bool) -> bool:
        if not isinstance(source, RemoteFiles) or not self.system.equals(source.system):
            return False
        if self.system.type_name not in _OBJECT_STORES:
            return False  # HDFS has no server-side copy
        self.operations.writes += 1
        target = f"{self.base}/{path}"
        try:
            self.system.copy_file(f"{source.base}/{path}", target)
        except FileNotFoundError:
            raise
        except (OSError, NotImplementedError):
            return False  # a store may refuse a copy: S3 refuses objects of more than 5 GiB in one request
        return True

    def refresh(self, folder: str) -> None:
        pass  # listings of stores are always current

    def settle(self, path: str) -> None:
        pass

    def distrust(self, path: str) -> bool:
        """Remove the local copy, and return whether there was one."""
        return self._forget(path)

    def _listed(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Return the entries of a folder, or none if it does not exist.

        Arrow's ``allow_not_found`` fails if the folder is created at that moment.
        """
        try:
            return list(self.system.get_file_info(selector))
        except FileNotFoundError:
            return []

    def _is_there(self, path: str) -> bool:
        self.operations.reads += 1
        try:
            self.system.open_input_file(f"{self.base}/{path}").close()  # one request to an object store
        except FileNotFoundError:
            return False
        return True

    def _forget(self, path: str) -> bool:
        try:
            os.unlink(os.path.join(self.copies, path))
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            return False
        return True

    @contextmanager
    def _drafted(self, path: str) -> Iterator[str]:
        """Provide a temporary name for a copy until it is complete."""
        folder, name = os.path.split(os.path.join(self.copies, path))
        draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        os.makedirs(folder, exist_ok=True)
        try:
            yield draft
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)

    @contextmanager
    def _published(self, path: str, *, onto: bool = False) -> Iterator[pa.NativeFile]:
        target = f"{self.base}/{path}"
        self.operations.writes += 1
        if self.system.type_name in _OBJECT_STORES:
            with self.system.open_output_stream(target) as out:
                yield out
            return
        folder, _, name = target.rpartition("/")
        draft = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        self.system.create_dir(folder)
        try:
            with self.system.open_output_stream(draft) as out:
                yield out
            move = move_onto if onto else pafs.FileSystem.move
            move(self.system, draft, target)
        except FileExistsError:
            self.system.delete_file(draft)
            raise


def patiently(ask: Callable[[], _Got]) -> _Got:
    """Return the result of ``ask``, and repeat it if S3 answers the read of a file with an error.

    Arrow itself repeats other requests. For this request, it only reports that the length of the answer differs from
    the length of the file.
    """
    for pause in _PAUSES:
        try:
            return ask()
        except FileNotFoundError:
            raise
        except OSError as error:
            if "during GetObject" not in str(error):
                raise
        time.sleep(pause)
    return ask()


def remote_files(root: str) -> RemoteFiles:
    """Return the files below a URL; RunError if its scheme is not supported here."""
    try:
        system, base = open_store(root)
    except ImportError as error:
        raise RunError(
            f"the state in {root} cannot be reached: {error.name} is missing in this Python ({sys.executable})",
            hint="pip install 'hintplan[hdfs]' here, and hdfs-native and fsspec on workers",
        ) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RunError(
            f"the state in {root} cannot be reached: {error}",
            hint="state is read and written by pyarrow, which supports s3://, hdfs://, gs:// and abfs://; or mount the "
            "file system on all workers and give its path",
        ) from error
    digest = hashlib.sha256(root.encode()).hexdigest()[:16]
    return RemoteFiles(root.rstrip("/"), system, base.rstrip("/"), os.path.join(_scratch(), digest))


@cache
def _scratch() -> str:
    """Return the directory for copies: below the executor's own directory, or a temporary one of this process.

    Both are removed when their owner ends.
    """
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if local:
        return os.path.join(local, "hintplan-state")
    directory = tempfile.mkdtemp(prefix="hintplan-state-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
