"""Features of Delta tables: which of them this reader and this writer support.

The protocol of a table lists what its readers and writers must support. Any feature outside the two lists is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.target import LakeTarget

_READ = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint"})
"""Supported reader features. Columns are found by name, so column mapping must be off; narrower types are cast."""
_WRITTEN = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz", "v2Checkpoint",
    }
)  # fmt: skip
"""Supported writer features: delta-rs implements them, or they need no action without the properties below."""
_OF_COLUMNS = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
"""Properties in the metadata of a column that oblige writers to do something that this sink does not do."""
_MAPPING = "delta.columnMapping.mode"
_APPEND_ONLY = "delta.appendOnly"
_PLAIN = "!$&'()+,-./:;=@~"
"""The characters, besides ASCII letters and digits, that delta-rs does not escape in a file name in the log."""


def unread_features(table: DeltaTable) -> list[str]:
    """Return the features that the table requires of its readers and that this reader does not support."""
    supported = _READ if table.metadata().configuration.get(_MAPPING, "none") == "none" else _READ - {"columnMapping"}
    return [name for name in table.protocol().reader_features or () if name not in supported] or (
        ["columnMapping"] if supported is not _READ else []
    )


def refuse_to_write(target: LakeTarget, table: DeltaTable, fields: Mapping[str, Any]) -> None:
    """Raise RunError if the table requires something that the sink does not do.

    ``fields`` are the columns of the table, as in its schema.
    """
    protocol, configuration = table.protocol(), table.metadata().configuration
    requirements = [name for name in configuration if name.startswith("delta.constraints.")]
    requirements += [name for field in fields.values() for name in _OF_COLUMNS if name in field["metadata"]]
    if configuration.get(_MAPPING, "none") != "none":
        requirements.append(_MAPPING)
    features = sorted({*(protocol.writer_features or ()), *(protocol.reader_features or ())} - _WRITTEN)
    requirements += [f"the feature {name}" for name in features]
    if requirements:
        raise RunError(
            f"the Delta table {target.storage.root} has {requirements[0]}, which this sink does not keep",
            hint="take it from the table, or write to another one",
            path=target.path,
        )
    if target.primary_key and configuration.get(_APPEND_ONLY, "false").lower() == "true":
        raise RunError(
            f"the Delta table {target.storage.root} has {_APPEND_ONLY}, and a sink with a PRIMARY KEY replaces rows",
            hint="take it from the table, or write to one without a PRIMARY KEY",
            path=target.path,
        )


def refuse_to_replace(target: LakeTarget, table: DeltaTable) -> None:
    """Raise RunError if delta-rs cannot remove every file of the table.

    delta-rs escapes file names again when it removes a file. Another writer may escape the same name differently ("é",
    where delta-rs writes "%C3%A9"). Readers that compare names as text, including delta-rs, would continue to read the
    file.
    """
    files = pa.table(table.get_add_actions())["path"]
    for file in files.filter(pc.match_substring_regex(files, rf"[^\w{re.escape(_PLAIN)}]")).to_pylist():
        if quote(unquote(file), safe=_PLAIN) != file:
            raise RunError(
                f"the Delta table {target.storage.root} has the file {file!r}, whose name in the log this sink would "
                "write otherwise, so that the file would be read on where it has been replaced",
                hint="write to another table, which is partitioned by values of ASCII",
                path=target.path,
            )
