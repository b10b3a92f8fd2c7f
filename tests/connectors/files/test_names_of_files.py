"""Names of files that the JVM cannot decode: they are refused, for Spark would pass them over in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.source_files import refuse_unread_files

LATIN_1 = "größe.json".encode("latin-1")


@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, scheme: str) -> None:
    for name in ("größe.json".encode(), b"plain.json", "東京 🎉.json".encode(), b"_" + LATIN_1, b"." + LATIN_1):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).touch()
    refuse_unread_files(f"{scheme}{tmp_path}", "o")
    below = tmp_path / "day=1"
    below.mkdir()
    (below / os.fsdecode(LATIN_1)).touch()
    refuse_unread_files(f"{scheme}{tmp_path}", "o")  # which reads no directories below
    with pytest.raises(RunError, match=r"table o cannot be read: the file .* has a name that is not UTF-8"):
        refuse_unread_files(f"{scheme}{tmp_path}", "o", below=True)
    (tmp_path / os.fsdecode(LATIN_1)).touch()
    with pytest.raises(RunError, match="not UTF-8"):
        refuse_unread_files(f"{scheme}{tmp_path}", "o")


@pytest.mark.parametrize("path", ["s3a://bucket/x", "/nowhere at all", "hdfs:///x"])
def test_what_is_not_a_directory_here_is_left_to_spark(path: str) -> None:
    refuse_unread_files(path, "o", below=True)
