"""The manifest of a partition: the state of an operator after a batch, and the locations of its segments.

The file consists of a line with the length of the header, the header in JSON, and small segments, so that a small batch
needs only one file. It contains the version of this format, which is higher for an operator that goes by event time and
so has a watermark in its header. An unreadable manifest is refused and never treated as empty.

>>> manifest = decode_manifest(encode_manifest(Manifest(operator="join_o_c", batch=3, run=7), []), "3.7.manifest")
>>> manifest.operator, manifest.segments
('join_o_c', {})
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hintplan.plans.errors import RunError
from hintplan.plans.evidence.ages import Counts, added, by_bucket, counts

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
WATERMARK_FORMAT = 2
"""The format of a manifest with a watermark. Code that knows no watermarks refuses it, and so never loses one."""
RESTORE = (
    "restore it, or the whole checkpoint, from a backup, then run again; a checkpoint that cannot be restored is lost: "
    "start with a new directory and an empty sink"
)
_FIRST_LINE = 40
_ALIGNED = 64
"""The alignment that Arrow needs to read data in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A file format: ``magic`` and one of ``versions`` at the start.

    Messages call a file ``one``, and the format ``of``.
    """

    magic: str
    versions: tuple[int, ...]
    one: str
    of: str


_MANIFESTS = FileFormat(magic="hintplan-state", versions=(FORMAT, WATERMARK_FORMAT), one="a manifest", of="state")


class DamagedFile(RunError):
    """The file ``path`` of a checkpoint differs from the written file: ``what`` is wrong."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} {what}", hint=RESTORE)
        self.what = what


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """The location of a segment: ``length`` bytes of ``file``, a path below the state, with a checksum.

    In a manifest, ``offset`` counts from the end of the header. ``low`` and ``high`` limit the segment to hashes from
    ``low`` to before ``high``, after its partition was split.
    """

    file: str
    offset: int
    length: int
    crc: int
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class SplitMark:
    """The highest mark of a split of a source, in ms, and the time (ms) of the last batch that raised it.

    If the source has an idle timeout, it is the time of the last batch with a row of the split.
    """

    split: str
    highest: int
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWatermark:
    """The watermark of an operator ``after`` a batch, in ms, and the marks of each of its sources, by split.

    ``since`` is the time (ms) of the operator's first batch. ``lateness`` counts the late rows of all batches, for each
    input (:mod:`hintplan.runtime.kernels.lateness`); it is empty if no row was late. ``due`` is the earliest time (ms)
    at which the operator has something to do without new rows, or None (:mod:`hintplan.runtime.spark.waking`).
    """

    after: int
    since: int
    marks: tuple[tuple[SplitMark, ...], ...]
    lateness: tuple[Counts, ...] = ()
    due: int | None = None


def added_lateness(one: tuple[Counts, ...], other: tuple[Counts, ...]) -> tuple[Counts, ...]:
    """Return the lateness of the late rows of both, for each input."""
    return tuple(map(added, one, other)) if one and other else one or other


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The state of ``operator`` with ``lineage`` in a partition after ``batch``, written by ``run``.

    ``tables`` is the operator's own manifest, or None if it has no state. ``segments`` are the locations of the
    segments that it names. ``watermark`` is None unless the operator goes by event time.
    """

    operator: str
    batch: int
    run: int
    lineage: str | None = None
    partition: int = 0
    partitions: int = 1
    state_rows: int = 0
    state_bytes: int = 0
    tables: bytes | None = None
    segments: Mapping[str, SegmentRef] = field(default_factory=dict)
    watermark: StoredWatermark | None = None


def encode_manifest(manifest: Manifest, inline: Sequence[bytes | pa.Buffer]) -> bytes:
    """Return the file of ``manifest``, followed by the ``inline`` segments at their :func:`offsets`."""
    header: dict[str, Any] = {
        manifest_field.name: getattr(manifest, manifest_field.name) for manifest_field in fields(manifest)
    }
    header["tables"] = None if manifest.tables is None else manifest.tables.decode()
    header["segments"] = {name: _listed(ref) for name, ref in manifest.segments.items()}
    if manifest.watermark is None:
        header.pop("watermark")
        return framed(_MANIFESTS, header, inline)
    marks = [[[mark.split, mark.highest, mark.seen] for mark in source] for source in manifest.watermark.marks]
    stored: dict[str, Any] = {"after": manifest.watermark.after, "since": manifest.watermark.since, "marks": marks}
    if manifest.watermark.lateness:
        stored["lateness"] = [by_bucket(histogram) for histogram in manifest.watermark.lateness]
    if manifest.watermark.due is not None:
        stored["due"] = manifest.watermark.due
    header["watermark"] = stored
    return framed(_MANIFESTS, header, inline, WATERMARK_FORMAT)


def framed(
    files: FileFormat, header: Mapping[str, Any], pieces: Iterable[bytes | pa.Buffer], version: int | None = None
) -> bytes:
    """Return a file of this format, with the ``header``, followed by ``pieces`` at their :func:`offsets`.

    Its version is the first one, or ``version``.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    first = f"{files.magic} {version or files.versions[0]} {len(text)} {zlib.crc32(text):08x}"
    parts: list[bytes | pa.Buffer] = [first.ljust(_FIRST_LINE - 1).encode(), b"\n", text, b"\n"]
    parts.append(bytes(-(_FIRST_LINE + len(text) + 1) % _ALIGNED))
    for piece in pieces:
        parts += [piece, bytes(-len(piece) % _ALIGNED)]
    return b"".join(parts)


def offsets(lengths: Iterable[int]) -> list[int]:
    """Return the offsets of inline segments with these ``lengths``."""
    starts, at = [], 0
    for length in lengths:
        starts.append(at)
        at += length + -length % _ALIGNED
    return starts


def decode_manifest(data: bytes | pa.Buffer, path: str) -> Manifest:
    """Parse the result of :func:`encode_manifest`.

    DamagedFile if it is damaged, RunError with ``path`` for another format.
    """
    header, _ = unframed(_MANIFESTS, data, path)
    tables = header.pop("tables")
    segments = {name: SegmentRef(*ref) for name, ref in header.pop("segments").items()}
    stored = header.pop("watermark", None)
    return Manifest(
        **header,
        tables=None if tables is None else tables.encode(),
        segments=segments,
        watermark=None if stored is None else _watermark(stored),
    )


def _watermark(stored: Mapping[str, Any]) -> StoredWatermark:
    marks = tuple(tuple(SplitMark(*mark) for mark in source) for source in stored["marks"])
    lateness = tuple(counts(dict(pairs)) for pairs in stored.get("lateness", ()))
    return StoredWatermark(
        after=stored["after"], since=stored["since"], marks=marks, lateness=lateness, due=stored.get("due")
    )


def body_start(data: bytes | pa.Buffer, path: str) -> int:
    """Return the start of the inline segments in a manifest; RunError as :func:`decode_manifest`."""
    return _body(_header_end(_MANIFESTS, data, path))


def _listed(ref: SegmentRef) -> list[Any]:
    values = [ref.file, ref.offset, ref.length, ref.crc]
    return values if ref.low is None else [*values, ref.low, ref.high]


def unframed(files: FileFormat, data: bytes | pa.Buffer, path: str) -> tuple[dict[str, Any], int]:
    """Return the header in a result of :func:`framed`, and the start of the pieces.

    The errors are the same as of :func:`decode_manifest`.
    """
    end = _header_end(files, data, path)
    return json.loads(bytes(memoryview(data)[_FIRST_LINE:end])), _body(end)


def _body(end: int) -> int:
    return end + 1 + -(end + 1) % _ALIGNED


def _header_end(files: FileFormat, data: bytes | pa.Buffer, path: str) -> int:
    view = memoryview(data)
    words = bytes(view[:_FIRST_LINE]).decode(errors="replace").split()
    if len(view) < _FIRST_LINE or len(words) != 4 or words[0] != files.magic or not words[2].isdecimal():
        raise DamagedFile(path, f"does not begin as {files.one} does")
    if words[1] not in map(str, files.versions):
        known = f"format{'s' if len(files.versions) > 1 else ''} {' and '.join(map(str, files.versions))}"
        raise RunError(
            f"{path} has {files.of} format {words[1]}, this version of hintplan reads {known}",
            hint="run the plan with the version of hintplan that wrote the checkpoint, or use a new checkpoint",
        )
    end = _FIRST_LINE + int(words[2])
    if len(view) <= end or f"{zlib.crc32(view[_FIRST_LINE:end]):08x}" != words[3]:
        raise DamagedFile(path, "is cut off or changed")
    return end
