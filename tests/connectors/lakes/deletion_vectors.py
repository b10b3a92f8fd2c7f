"""Deletion vectors of Delta tables, made by hand as Delta's protocol says, and commits of other features."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.connectors.lakes.readers import actions, versions

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_OF_READERS = {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "variantType"}


def require(table: Path, *features: str, configuration: Mapping[str, str] | None = None) -> None:
    """Commit that the table has these features, and is configured so."""
    (metadata,) = [each["metaData"] for each in actions(table) if "metaData" in each][-1:]
    readers = [name for name in features if name in _OF_READERS]
    protocol: dict[str, Any] = {
        "minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": list(features),
        **({"readerFeatures": readers} if readers else {}),
    }  # fmt: skip
    commit(table, {"protocol": protocol}, {"metaData": {**metadata, "configuration": dict(configuration or {})}})


def delete_rows(table: Path, added: Mapping[str, Any], places: Sequence[int]) -> None:
    """Commit that the rows at ``places`` of a file, whose action is ``added``, are deleted."""
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True}
    sizes = {"partitionValues": added["partitionValues"], "size": added["size"]}
    vector = {"add": {**added, "dataChange": True, "deletionVector": _vector(places)}}
    commit(table, {"remove": {**removed, **sizes}}, vector)


def commit(table: Path, *found: Mapping[str, Any]) -> None:
    file = table / "_delta_log" / f"{len(versions(table)):020d}.json"
    file.write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")


def _vector(places: Sequence[int]) -> dict[str, Any]:
    """One that stands in the log: an array of one Roaring bitmap, of one container that lists its values."""
    assert 0 < len(places) < 4096
    assert max(places) < 1 << 16
    values = b"".join(struct.pack("<H", place) for place in sorted(places))
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(places) - 1, 16) + values
    data = struct.pack("<Iqi", 1681511377, 1, 0) + bitmap
    text = _z85(data + bytes(-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(places)}


def _z85(data: bytes) -> str:
    numbers = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    return "".join(_DIGITS[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))
