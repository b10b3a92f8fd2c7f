"""Files of a mounted directory: whole or not there, and the first of a name stays."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.local_files import LocalFiles


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(str(tmp_path))


def test_what_is_published_is_read_and_listed(files: LocalFiles) -> None:
    assert files.publish("0/1/2.1.manifest", b"one")
    assert files.read("0/1/2.1.manifest").to_pybytes() == b"one"
    assert files.names("0/1") == ["2.1.manifest"]


def test_the_first_of_a_name_stays(files: LocalFiles) -> None:
    assert files.publish("0/1/2.1.manifest", b"one")
    assert not files.publish("0/1/2.1.manifest", b"two")
    with files.writing("0/1/2.1.manifest") as out:
        out.write(b"three")
    assert files.read("0/1/2.1.manifest").to_pybytes() == b"one"
    assert files.names("0/1") == ["2.1.manifest"]


def test_a_file_is_not_there_before_it_is_whole(files: LocalFiles) -> None:
    with files.writing("0/1/2.1.a.arrow") as out:
        out.write(b"half")
        (draft,) = files.names("0/1")
        assert draft.startswith(".2.1.a.arrow.")
        assert draft.endswith(".tmp")
    assert files.names("0/1") == ["2.1.a.arrow"]


def test_nothing_is_left_of_a_file_whose_writing_fails(files: LocalFiles) -> None:
    with pytest.raises(TypeError), files.writing("0/1/2.1.a.arrow") as out:
        out.write("text")  # type: ignore[arg-type]
    assert files.names("0/1") == []


def test_nothing_is_left_when_the_disk_is_full(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            files.publish("0/1/2.1.manifest", b"one")
    assert files.names("0/1") == []
    assert files.publish("0/1/2.1.manifest", b"one")


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL])
def test_where_there_are_no_links_a_file_is_renamed_unless_its_name_is_taken(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refused(source: str, target: str) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", refused)
    assert files.publish("0/1/2.1.manifest", b"one")
    assert not files.publish("0/1/2.1.manifest", b"two")
    assert files.read("0/1/2.1.manifest").to_pybytes() == b"one"
    assert files.names("0/1") == ["2.1.manifest"]


def test_another_failure_to_name_a_file_is_told(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: str, target: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(OSError, match="Input/output error"):
        files.publish("0/1/2.1.manifest", b"one")
    assert files.names("0/1") == []


def test_what_is_not_there_lists_as_nothing_is_removed_and_is_not_read(files: LocalFiles) -> None:
    assert files.names("0/9") == []
    files.remove("0/9/1.1.manifest")
    with pytest.raises(FileNotFoundError):
        files.read("0/9/1.1.manifest")


def test_what_is_removed_can_still_be_read_by_who_has_it(files: LocalFiles) -> None:
    files.publish("0/1/2.1.a.arrow", b"one")
    held = files.read("0/1/2.1.a.arrow")
    files.remove("0/1/2.1.a.arrow")
    assert files.names("0/1") == []
    assert held.to_pybytes() == b"one"


def test_an_empty_file_is_read_as_one(files: LocalFiles) -> None:
    files.publish("0/1/2.1.manifest", b"one")
    files.mark("0/1/2.1.written")
    assert files.read("0/1/2.1.written").size == 0


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_path_may_be_written_as_a_url(tmp_path: Path, scheme: str) -> None:
    files_at(f"{scheme}{tmp_path}").publish("0/1/2.1.manifest", b"one")
    assert (tmp_path / "0/1/2.1.manifest").read_bytes() == b"one"


def test_a_shared_folder_is_changed_to_be_listed_anew_and_is_left_as_it_was(tmp_path: Path) -> None:
    for shared in (True, False):
        files = LocalFiles(str(tmp_path / str(shared)), shared=shared)
        files.refresh("0/3")
        assert not (tmp_path / str(shared)).exists(), "there is nothing to be listed"
        files.publish("0/3/1.7.manifest", b"one")
        folder = tmp_path / str(shared) / "0" / "3"
        os.utime(folder, (1, 1))
        files.refresh("0/3")
        assert os.listdir(folder) == ["1.7.manifest"]
        assert (folder.stat().st_mtime > 1) == shared
