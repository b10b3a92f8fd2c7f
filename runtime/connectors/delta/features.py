"""Features of Delta tables: which of them those who read and write here have what they ask for.

A table says in its protocol what its readers and writers must know. What is on neither list is refused, whatever it is.
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
from hintplan.runtime.connectors.lakes.target import Target

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
_PLAIN = "!$&'()+,-./:;=@~"
"""What, beside letters and digits of ASCII, delta-rs writes into the log as it is in the name of a file."""


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


def refuse_to_replace(target: Target, table: DeltaTable) -> None:
    """RunError if delta-rs cannot take each file of the table away.

    It writes the names of files anew, and of one that others write otherwise ("é", where it has "%C3%A9"), readers that
    compare texts, as it does, would go on to read it.
    """
    names = pa.table(table.get_add_actions())["path"]
    for name in names.filter(pc.match_substring_regex(names, rf"[^\w{re.escape(_PLAIN)}]")).to_pylist():
        if quote(unquote(name), safe=_PLAIN) != name:
            raise RunError(
                f"the Delta table {target.storage.root} has the file {name!r}, whose name in the log this sink would "
                "write otherwise, so that the file would be read on where it has been replaced",
                hint="write to another table, which is partitioned by values of ASCII",
                path=target.path,
            )
