"""Files behind a URL, through pyarrow: each is read from a whole copy on this machine.

A copy is called after the file, whose name is never used twice, so it is never stale; one that is damaged is fetched
anew. An object store publishes a file when its last byte is there; elsewhere it is renamed. Credentials are those that
the machine has for the store, in the environment or by its role, never in a plan. Which URLs there are says
:mod:`hintplan.runtime.stores`.
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
from hintplan.runtime.stores import move_onto, opened

_OBJECT_STORES = ("s3", "gcs", "abfs")
_COPIED_BYTES = 8 << 20
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""In seconds, before the reading of a file is tried again."""

_Got = TypeVar("_Got")


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """The files below ``base`` of ``system``, which ``root`` is the URL of, with copies in the directory ``copies``."""

    root: str
    system: pafs.FileSystem
    base: str
    copies: str
    operations: FileOperations = field(default_factory=FileOperations, compare=False)

    def names(self, folder: str) -> list[str]:
        self.operations.lists += 1
        found = [info.base_name for info in self._listed(pafs.FileSelector(f"{self.base}/{folder}"))]
        here = os.path.join(self.copies, folder)
        with suppress(FileNotFoundError):
            for name in set(os.listdir(here)) - set(found):
                if not name.startswith("."):
                    self._forget(f"{folder}/{name}")
        return found

    def sizes(self) -> dict[str, int]:
        """The sizes of all files by their paths, but of those whose names begin with a dot."""
        return {
            info.path.removeprefix(f"{self.base}/"): info.size
            for info in self._listed(pafs.FileSelector(self.base, recursive=True))
            if info.type == pafs.FileType.File and not info.base_name.startswith(".")
        }

    def fetched(self, path: str) -> bytes:
        """What is in a file, without a copy here; FileNotFoundError if it is not there."""

        def fetch() -> bytes:
            with self.system.open_input_stream(f"{self.base}/{path}") as source:
                return bytes(source.read())

        return _patiently(fetch)

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

            _patiently(copy)
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
            return False  # another attempt was first, where a rename tells
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Write a file as a whole, in the place of one of that name; it is to be read with :meth:`fetched` only."""
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
            return False  # HDFS copies nothing by itself
        self.operations.writes += 1
        target = f"{self.base}/{path}"
        try:
            self.system.copy_file(f"{source.base}/{path}", target)
        except FileNotFoundError:
            raise
        except (OSError, NotImplementedError):
            return False  # no store copies everything: S3 no object of more than 5 GiB in one request
        return True

    def refresh(self, folder: str) -> None:
        pass  # stores list what is there

    def settle(self, path: str) -> None:
        pass

    def distrust(self, path: str) -> bool:
        """Whether there was a copy, which is gone now."""
        return self._forget(path)

    def _listed(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """What is in a folder if it is there. Arrow's ``allow_not_found`` fails if it is made at that moment."""
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
        """A name for a copy until it is whole."""
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


def _patiently(ask: Callable[[], _Got]) -> _Got:
    """What ``ask`` gives. It is asked again where S3 has answered the reading of a file with an error.

    Arrow makes other requests again itself. Of this one it says only that the answer does not fit, which was to have as
    many bytes as the file.
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
    """The files below a URL; RunError if nothing here can open its scheme."""
    try:
        system, base = opened(root)
    except ImportError as error:
        raise RunError(
            f"the state in {root} cannot be reached: {error.name} is missing in this Python ({sys.executable})",
            hint="pip install 'hintplan[hdfs]' here, and hdfs-native and fsspec on workers",
        ) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RunError(
            f"the state in {root} cannot be reached: {error}",
            hint="state is read and written by pyarrow, which knows s3://, hdfs://, gs:// and abfs://; or mount the "
            "file system on all workers and give its path",
        ) from error
    digest = hashlib.sha256(root.encode()).hexdigest()[:16]
    return RemoteFiles(root.rstrip("/"), system, base.rstrip("/"), os.path.join(_scratch(), digest))


@cache
def _scratch() -> str:
    """Where copies are: below the executor's own directory, which goes with it, or one that goes with this process."""
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if local:
        return os.path.join(local, "hintplan-state")
    directory = tempfile.mkdtemp(prefix="hintplan-state-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
