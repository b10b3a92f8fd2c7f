"""The record of a checkpoint: one line of JSON for each plan that ran on it, of which the last line is in force.

    {"layout": 5, "run": 1, "plan": "revenue", ..., "queries": [...], "document": {...}, "checksum": "9f2c51e07ab38d64"}

``queries`` decides what carries over (:mod:`hintplan.plans.compare.carryover`). ``document`` is the whole plan, from
which hintplan explains a verdict and to which a user can return. Lines are appended and never changed, so a run that
dies leaves one of them in force. Each line ends with the checksum of its text, which includes the checksum of the line
before as ``after``. A line that is changed, lost or moved is therefore detected. This module converts lines to and from
text. It reads local files; Spark reads remote ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.plans.compare.sources import SourceRecord
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.links import link_to_nowhere

LAYOUT = 5
"""Version of everything below a checkpoint that hintplan lays out: this record, and the location of state.

Up to layout 3, state was in Spark's state store; up to layout 4, lines had no checksums.
"""

_WITHOUT_CHECKSUMS = 4
"""An older layout that runs can continue. The first line of the newer layout has the checksum of the last of these."""

LAST = "_last"
"""A file next to the record of a local checkpoint; it names the last entry of the record."""

_CHECKSUM = ', "checksum": "'
_FROM_BACKUP = "restore it, or the whole checkpoint, from a backup, then run again"


@frozen
class CheckpointRecord:
    """A line of a record.

    ``spark`` is the version of Spark that wrote it, ``document`` the text of the plan, and ``after`` the checksum of
    the line before. ``since`` has the first batch of each query with this plan, if another plan ran before.
    """

    plan: str
    partitions: int
    run: int = 1
    spark: str | None = None
    queries: tuple[QueryRecord, ...] = ()
    document: str = "{}"
    since: tuple[tuple[str, int], ...] = ()
    after: str | None = None
    layout: int = LAYOUT

    @property
    def checksum(self) -> str:
        """The checksum of the text of the line."""
        return _checksum(_text(self))

    @property
    def operators(self) -> frozenset[str]:
        """The ids of the operators of the plan that last ran."""
        return frozenset(operator["id"] for operator in json.loads(self.document).get("operators", ()))


def record_path(checkpoint: str) -> str:
    """Return the directory in which a checkpoint keeps its record."""
    return f"{checkpoint.rstrip('/')}/hintplan"


def following(before: CheckpointRecord, record: CheckpointRecord) -> CheckpointRecord:
    """Return ``record`` as the line that follows ``before``."""
    return replace(record, run=before.run + 1, after=before.checksum, layout=LAYOUT)


def record_line(record: CheckpointRecord) -> str:
    """Return the record as one line of JSON, without the line break."""
    text = _text(record)
    return f'{text[:-1]}{_CHECKSUM}{_checksum(text)}"}}'


def _text(record: CheckpointRecord) -> str:
    """Return the line without its checksum."""
    entry = asdict(record)
    if record.layout == _WITHOUT_CHECKSUMS:
        del entry["after"]
    entry["document"] = json.loads(record.document)
    _drop_empty(entry, "since")
    for query in entry["queries"]:
        # Omitted when empty: older lines lack these keys, and the checksum covers the text.
        _drop_empty(query, "names", "late")
        for state in query["states"]:
            _drop_empty(state, "kept", "written", "late")
        for source in query["sources"]:
            _drop_empty(source, "late")
    return json.dumps({"layout": entry.pop("layout"), **entry})


def _drop_empty(found: dict[str, Any], *names: str) -> None:
    for name in names:
        if not found[name]:
            del found[name]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse_record(lines: Sequence[str], checkpoint: str) -> CheckpointRecord | None:
    """Return the record with these ``lines`` of text, or None if there are none.

    Raise RunError if this hintplan cannot read it, or if a line was changed or lost.
    """
    records = {record.run: record for line in lines if line.strip() for record in [_parse(line, checkpoint)]}
    if lost := set(range(1, max(records, default=0))) - set(records):
        raise RunError(
            f"{record_path(checkpoint)} has lost the entry of the plan that ran as number {min(lost)}",
            hint=_FROM_BACKUP,
        )
    in_order = [records[run] for run in sorted(records)]
    for before, record in pairwise([None, *in_order]):
        assert record is not None
        if record.layout == LAYOUT:
            follows = record.after == (before.checksum if before else None)
        else:
            follows = before is None or before.layout == record.layout
        if not follows:
            raise RunError(
                f"{record_path(checkpoint)} was changed: its entry number {record.run} does not follow the previous "
                f"entry",
                hint=_FROM_BACKUP,
            )
    return in_order[-1] if in_order else None


def last_line(record: CheckpointRecord) -> str:
    """Return the text of the file ``LAST`` while ``record`` is the last entry of its checkpoint."""
    return f"{record.run} {record.checksum}\n"


def is_local_path(checkpoint: str) -> bool:
    """Return True if the name of a checkpoint looks local; Spark may resolve a plain path to another file system."""
    return "://" not in checkpoint or checkpoint.startswith("file://")


def absolute(checkpoint: str) -> str:
    """Return a local path as an absolute path, and a URL unchanged."""
    return checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())


def local_record(checkpoint: str) -> CheckpointRecord | None:
    """Return the record of a local checkpoint, or None if there is none; raise RunError if it cannot be read."""
    folder = Path(record_path(checkpoint.removeprefix("file://")))
    if (link := link_to_nowhere(folder.parent)) is not None:
        raise RunError(f"there can be no checkpoint: {link}", hint="mount what it leads to, or give another directory")
    try:
        files = sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
        texts = {path: path.read_text(encoding="utf-8") for path in files}
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is not text"
        place = (error.filename if isinstance(error, OSError) else None) or folder
        raise RunError(
            f"{place} cannot be read: {problem}", hint="give the directory that --checkpoint of the run names"
        ) from error
    record = parse_record([line for text in texts.values() for line in text.splitlines()], checkpoint)
    for path, text in texts.items():
        if text and not text.endswith("\n"):
            raise RunError(
                f"{path} was not written by hintplan: it is cut off",
                hint="restore it, or the whole checkpoint, from a backup, then run again",
            )
    return record


def recorded_plan(record: CheckpointRecord) -> Plan | None:
    """Return the plan that last ran on the checkpoint, or None if this version of hintplan can no longer read it."""
    try:
        return loads(record.document, file="<checkpoint>", allow_fact_edits=True, check_meaning=False)
    except PlanError:
        return None


def document_of(plan: Plan) -> str:
    """Return the text of ``plan`` on one line."""
    return json.dumps(json.loads(dumps(plan)))


def _state(found: dict[str, Any]) -> StateRecord:
    return StateRecord(**{**found, "sources": tuple(found["sources"]), "kept": tuple(found.get("kept", ()))})


def _parse(line: str, checkpoint: str) -> CheckpointRecord:
    try:
        entry: dict[str, Any] = json.loads(line)
        layout = entry["layout"]
        if layout not in (LAYOUT, _WITHOUT_CHECKSUMS):
            raise RunError(
                f"checkpoint {checkpoint} has layout {layout}, this version of hintplan reads layout {LAYOUT}",
                hint="run the plan with the version of hintplan that wrote it, or use a new checkpoint directory",
            )
        if layout == LAYOUT:
            text, _, checksum = line.strip().rpartition(_CHECKSUM)
            if _checksum(text + "}") != checksum.removesuffix('"}'):
                raise RunError(
                    f"{record_path(checkpoint)} was changed: an entry does not have its checksum", hint=_FROM_BACKUP
                )
            del entry["checksum"]
        elif not entry.keys().isdisjoint(("after", "checksum")):
            raise ValueError(f"an entry of layout {layout} has a checksum")
        document = entry.pop("document")
        queries = tuple(
            QueryRecord(
                **{**query, "sinks": tuple(query["sinks"]), "names": tuple(query.get("names", ()))}
                | {"late": tuple(query.get("late", ()))}
                | {"sources": tuple(SourceRecord(**source) for source in query["sources"])}
                | {"order": tuple((operator, number) for operator, number in query["order"])}
                | {"states": tuple(_state(state) for state in query["states"])}
                | {"scales": tuple((partitions, first) for partitions, first in query["scales"])}
                | {"files": tuple((sink, directory) for sink, directory in query["files"])}
            )
            for query in entry.pop("queries")
        )
        since = tuple((query, batch) for query, batch in entry.pop("since", ()))
        return CheckpointRecord(**{**entry, "queries": queries, "document": json.dumps(document), "since": since})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"{record_path(checkpoint)} was not written by hintplan: {error}",
            hint="use a new checkpoint directory, or restore this file from a backup",
        ) from error
