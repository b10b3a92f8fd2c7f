"""Features of Delta tables: which of them those who read and write here have what they ask for.

A table says in its protocol what its readers and writers must know. What is on neither list is refused, whatever it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalake import DeltaTable

from plans.errors import RunError
from runtime.connectors.lakes.target import Target

_READ = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint"})
"""Columns are found by name, so a mapping must not be on; files of narrower types are cast."""
_WRITTEN = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz", "v2Checkpoint",
    }
)  # fmt: skip
"""What delta-rs does, or has nothing to do for unless the table asks for more, as below."""
_OF_COLUMNS = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
"""What the metadata of a column may ask of its writers, and nobody here does."""
_MAPPING = "delta.columnMapping.mode"
_APPEND_ONLY = "delta.appendOnly"


def unread_features(table: DeltaTable) -> list[str]:
    """The features that readers of the table must know, and its source does not."""
    known = _READ if table.metadata().configuration.get(_MAPPING, "none") == "none" else _READ - {"columnMapping"}
    return [name for name in table.protocol().reader_features or () if name not in known] or (
        ["columnMapping"] if known is not _READ else []
    )


def refuse_to_write(target: Target, table: DeltaTable, fields: Mapping[str, Any]) -> None:
    """RunError if the table, with columns ``fields`` as its schema has them, asks for what the sink does not do."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    asked = [name for name in configuration if name.startswith("delta.constraints.")]
    asked += [name for field in fields.values() for name in _OF_COLUMNS if name in field["metadata"]]
    if configuration.get(_MAPPING, "none") != "none":
        asked.append(_MAPPING)
    features = sorted({*(protocol.writer_features or ()), *(protocol.reader_features or ())} - _WRITTEN)
    asked += [f"the feature {name}" for name in features]
    if asked:
        raise RunError(
            f"the Delta table {target.storage.root} has {asked[0]}, which this sink does not keep",
            hint="take it from the table, or write to another one",
            path=target.path,
        )
    if target.primary_key and configuration.get(_APPEND_ONLY, "false").lower() == "true":
        raise RunError(
            f"the Delta table {target.storage.root} has {_APPEND_ONLY}, and a sink with a PRIMARY KEY replaces rows",
            hint="take it from the table, or write to one without a PRIMARY KEY",
            path=target.path,
        )
