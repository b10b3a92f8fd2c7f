"""Confines a Delta table's log to the table's directory: a reference to a file elsewhere is refused before any read.

Anyone who can write to a table controls its log. The log refers to data files, deletion vectors and parts of
checkpoints. Each path may be absolute, as in a shallow clone, or contain ``..``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.target import LakeTarget

_LOG = "_delta_log"
_NAMING = ("deletionVectors", "v2Checkpoint")
"""The features with which a log refers to files other than data files."""
_ENDS = (".json", ".parquet")
_INLINE = "i"

_known: set[tuple[str, str]] = set()
"""Log files that passed the check, as (root of the table, path). Log files never change."""


def refuse_outer_links(target: LakeTarget) -> None:
    """Raise RunError if the log of a local table, or a file in the log, is a link that leads out of the table."""
    root = target.storage.root
    log = os.path.join(root, _LOG)
    if not target.storage.is_local or not os.path.lexists(log):
        return
    links = [log] if os.path.islink(log) else []
    for folder in (log, os.path.join(log, "_sidecars")):
        if os.path.isdir(folder):
            links += [entry.path for entry in os.scandir(folder) if entry.is_symlink()]
    for link in links:
        if not _is_below(link, root):
            raise _elsewhere(target, os.path.relpath(link, root), "a link")


def data_file_path(target: LakeTarget, path: str) -> str:
    """Return the decoded path of a data file relative to the root; raise RunError if it leads out of the table."""
    plain = unquote(path)
    root = target.storage.root
    if not _leads_down(plain) or (target.storage.is_local and not _is_below(os.path.join(root, plain), root)):
        raise _elsewhere(target, path, "a file")
    return plain


def refuse_files_elsewhere(target: LakeTarget, table: DeltaTable) -> None:
    """Raise RunError if the log refers to a data file, a deletion vector or a part of itself outside the table."""
    for path in pa.table(table.get_add_actions())["path"].to_pylist():
        data_file_path(target, path)
    refuse_parts_elsewhere(target, table)


def refuse_parts_elsewhere(target: LakeTarget, table: DeltaTable) -> None:
    """Raise RunError if the log refers to a deletion vector or a part of itself outside the table."""
    if not set(_NAMING).intersection(table.protocol().reader_features or ()):
        return
    system, root = target.storage.files()
    selector = pafs.FileSelector(f"{root}/{_LOG}", recursive=True)
    for entry in system.get_file_info(selector):
        key = (target.storage.root, entry.path)
        if entry.is_file and entry.path.endswith(_ENDS) and key not in _known:
            for kind, path in _named(system, entry.path):
                if not _leads_down(path) or (kind != "a deletion vector" and "/" in path):
                    raise _elsewhere(target, path, kind)
            _known.add(key)


def _named(system: pafs.FileSystem, file: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the path of each file to which a log file refers, except data files."""
    for action in _actions(system, file):
        vector = (action.get("add") or action.get("remove") or {}).get("deletionVector")
        if vector and vector.get("storageType") != _INLINE:
            path = str(vector.get("pathOrInlineDv"))
            # A relative path is a prefix, followed by the file name in 20 characters.
            yield "a deletion vector", path[:-20] + "x" if vector.get("storageType") == "u" else f"/{path}"
        if sidecar := action.get("sidecar"):
            yield "a part of a checkpoint", unquote(str(sidecar.get("path")))


def _actions(system: pafs.FileSystem, file: str) -> Iterator[Mapping[str, Any]]:
    if file.endswith(".json"):
        with system.open_input_stream(file) as stream:
            for line in stream.read().splitlines():
                action = json.loads(line)
                if isinstance(action, dict):
                    yield action
        return
    with system.open_input_file(file) as source:
        parquet = pq.ParquetFile(source)
        action_names = [name for name in ("add", "remove", "sidecar") if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(columns=action_names):
            for name in action_names:
                kept = batch.column(name).filter(pc.is_valid(batch.column(name)))
                yield from ({name: value} for value in kept.to_pylist())


def _leads_down(path: str) -> bool:
    parts = path.split("/")
    return "://" not in path and not path.startswith(("/", "file:")) and ".." not in parts


def _is_below(path: str, root: str) -> bool:
    return os.path.realpath(path).startswith(f"{os.path.realpath(root).rstrip('/')}/")


def _elsewhere(target: LakeTarget, path: str, what: str) -> RunError:
    return RunError(
        f"table {target.name}: the Delta table {target.storage.root} has {what} elsewhere: {path!r}",
        hint="copy its rows into a table that has all of its files, as a deep clone does",
        path=target.path,
    )
