"""The names of the files of a partition: what they say, and which manifest is in force."""

from __future__ import annotations

import pytest

from hintplan.runtime.storage.names import DRAFT, MANIFEST, SEGMENT, WRITTEN, Name, file_name, newest, parse_name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("12.7.manifest", Name(12, 7, MANIFEST)),
        ("12.1763860000123.0a1b2c3d4e5f6071.arrow", Name(12, 1763860000123, SEGMENT)),
        ("0.1.written", Name(0, 1, WRITTEN)),
        (".12.7.manifest.9f86d081884c4d65.tmp", Name(12, 7, DRAFT)),
        (".12.7.0a1b.arrow.9f86d081884c4d65.tmp", Name(12, 7, DRAFT)),
    ],
)
def test_a_name_says_of_which_batch_and_run_a_file_is(name: str, found: Name) -> None:
    assert parse_name(name) == found


@pytest.mark.parametrize("name", ["", "12", "12.manifest", "x.7.manifest", "README.md", ".crc", "lost+found", "-1.2.x"])
def test_other_files_are_none_of_ours(name: str) -> None:
    assert parse_name(name) is None


def test_a_name_is_read_as_it_was_made() -> None:
    assert file_name(3, 7, MANIFEST) == "3.7.manifest"
    assert file_name(3, 7, SEGMENT, "ab") == "3.7.ab.arrow"
    assert parse_name(file_name(3, 7, SEGMENT, "ab")) == Name(3, 7, SEGMENT)


NAMES = ("9.7.manifest", "10.7.manifest", "10.30.manifest", "10.8.manifest", "11.40.ab.arrow", ".11.40.manifest.1.tmp")


@pytest.mark.parametrize(
    ("before", "since", "found"),
    [
        (9, 0, None),
        (10, 0, "9.7.manifest"),
        (11, 0, "10.30.manifest"),
        (99, 0, "10.30.manifest"),
        (11, 10, "10.30.manifest"),
        (11, 11, None),
        (10, 10, None),
    ],
)
def test_the_manifest_in_force_is_of_the_last_batch_and_then_of_the_last_run(
    before: int, since: int, found: str | None
) -> None:
    assert newest(NAMES, before=before, since=since) == found
    assert newest(reversed(NAMES), before=before, since=since) == found


def test_drafts_segments_and_marks_are_in_force_of_nothing() -> None:
    assert newest(["3.1.ab.arrow", "3.1.written", ".3.1.manifest.1.tmp"], before=9) is None
    assert newest(["3.1.manifest", "4.1.written"], before=9, kind=WRITTEN) == "4.1.written"
