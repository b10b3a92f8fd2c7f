"""What a checkpoint says of the plan that runs on it: one line of JSON for each plan that did, the last one counts.

    {"layout": 3, "run": 1, "plan": "revenue", "partitions": 4, "queries": [...], "document": {...}}

``queries`` decides what carries over (:mod:`plans.compare.carryover`); ``document``, the whole plan, is for telling
why, and for going back to it. Checkpoints of layouts 1 and 2 recorded digests only: a plan with other facts does not
continue them. Lines are added, never changed, so that a run which dies leaves one of them in force. Knows how lines are
read and written as text; files are read here if they are local, and by Spark elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plans.compare.carryover import QueryRecord, StateRecord, parks_rows
from plans.errors import PlanError, RunError
from plans.files.codec import dumps, loads
from plans.format.digest import plan_digests
from plans.model.plan import Plan

LAYOUT = 3
"""Version of everything below a checkpoint that hintplan decides on: this record, and the state the shell keeps."""
DIGESTS_ONLY = (1, 2)
"""Layouts that recorded digests of operators and tables, and of the queries only those with several sinks."""
DEFERRED = "deferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """The last line of a record. ``spark`` is the version of Spark that wrote it; ``digests`` are of layouts 1 and 2.

    ``document`` is the text of the plan, None if it was not recorded.
    """

    plan: str
    partitions: int
    run: int = 1
    spark: str | None = None
    queries: tuple[QueryRecord, ...] = ()
    document: str | None = None
    layout: int = LAYOUT
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def operators(self) -> frozenset[str]:
        """The ids of the operators of the plan that last ran."""
        if self.document is None:
            return frozenset(self.digests.get("operators", ()))
        return frozenset(operator["id"] for operator in json.loads(self.document)["operators"])


def record_path(checkpoint: str) -> str:
    """The directory in which a checkpoint keeps its record."""
    return f"{checkpoint.rstrip('/')}/hintplan"


def record_line(record: CheckpointRecord) -> str:
    """One line of JSON without the line break."""
    found = asdict(record)
    found["document"] = None if record.document is None else json.loads(record.document)
    del found["digests"]
    return json.dumps({"layout": found.pop("layout"), **found})


def parse_record(lines: Sequence[str], checkpoint: str) -> CheckpointRecord | None:
    """The record whose text has ``lines``, None if there are none; RunError if this hintplan cannot read it."""
    records = [_parse(line, checkpoint) for line in lines if line.strip()]
    runs = {record.run for record in records}
    if lost := set(range(1, max(runs, default=0))) - runs:
        raise RunError(
            f"{record_path(checkpoint)} has lost an entry: that of the plan that ran as number {min(lost)}",
            hint="restore it, or the whole checkpoint, from a backup, then run again",
        )
    return max(records, key=lambda record: record.run, default=None)


def is_local_path(checkpoint: str) -> bool:
    """Whether a checkpoint is on this machine, as far as its name says; Spark may take a plain path for another."""
    return "://" not in checkpoint or checkpoint.startswith("file://")


def absolute(checkpoint: str) -> str:
    """A local path from where the user stands; a URL as it is."""
    return checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())


def local_record(checkpoint: str) -> CheckpointRecord | None:
    """The record of a checkpoint on this machine, None if there is none; RunError if it cannot be read."""
    folder = Path(record_path(checkpoint.removeprefix("file://")))
    try:
        files = sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
        texts = {path: path.read_text(encoding="utf-8") for path in files}
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RunError(
            f"{folder} cannot be read: {reason}", hint="give the directory that --checkpoint of the run names"
        ) from error
    record = parse_record([line for text in texts.values() for line in text.splitlines()], checkpoint)
    for path, text in texts.items():
        if text and not text.endswith("\n"):
            raise RunError(
                f"{path} is not what hintplan writes there: it is cut off",
                hint="restore it, or the whole checkpoint, from a backup, then run again",
            )
    return record


def recorded_plan(record: CheckpointRecord) -> Plan | None:
    """The plan that last ran on the checkpoint, None if this version of hintplan does not know it any more."""
    if record.document is None:
        return None
    try:
        return loads(record.document, file="<checkpoint>", allow_fact_edits=True, check_meaning=False)
    except PlanError:
        return None


def document_of(plan: Plan) -> str:
    """The text of ``plan`` on one line."""
    return json.dumps(json.loads(dumps(plan)))


def refused_by_digests(record: CheckpointRecord, plan: Plan) -> list[str]:
    """In what ``plan`` differs from the one that wrote a checkpoint of which only digests are known."""
    digests = plan_digests(plan)
    before, after = record.digests["operators"], _with_parking(plan, digests["operators"])
    return [
        *_retry_modes(before, after),
        *_changes("operator", _plain(before), _plain(after)),
        *_changes("table", record.digests["tables"], digests["tables"]),
    ]


def _parse(line: str, checkpoint: str) -> CheckpointRecord:
    try:
        found: dict[str, Any] = json.loads(line)
        layout = found["layout"]
        if layout not in (*DIGESTS_ONLY, LAYOUT):
            raise RunError(
                f"checkpoint {checkpoint} has layout {layout}, this version of hintplan reads layouts up to {LAYOUT}",
                hint="run the plan with the version of hintplan that wrote it, or use a new checkpoint directory",
            )
        if layout in DIGESTS_ONLY:
            shared = found.get("queries", {})
            return CheckpointRecord(
                plan=found["plan"],
                partitions=int(found["partitions"]),
                run=0,
                layout=layout,
                queries=tuple(
                    QueryRecord(id=name, sinks=tuple(sinks), sources=(), states=()) for name, sinks in shared.items()
                ),
                digests={"operators": dict(found["operators"]), "tables": dict(found["tables"])},
            )
        document = found.pop("document")
        queries = tuple(
            QueryRecord(
                **{**query, "sinks": tuple(query["sinks"]), "sources": tuple(query["sources"])}
                | {"states": tuple(StateRecord(**state) for state in query["states"])}
            )
            for query in found.pop("queries")
        )
        text = None if document is None else json.dumps(document)
        return CheckpointRecord(**{**found, "queries": queries, "document": text})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"{record_path(checkpoint)} is not what hintplan writes there: {error}",
            hint="use a new checkpoint directory, or restore this file from a backup",
        ) from error


def _with_parking(plan: Plan, digests: Mapping[str, str]) -> dict[str, str]:
    parking = {operator.id for operator in plan.operators if parks_rows(operator)}
    return {name: f"{digest}-{DEFERRED}" if name in parking else digest for name, digest in digests.items()}


def _plain(digests: Mapping[str, str]) -> dict[str, str]:
    return {name: digest.removesuffix(f"-{DEFERRED}") for name, digest in digests.items()}


def _retry_modes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Lookups that were or are deferred, and differ in nothing else."""
    found = []
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if old != new and old.removesuffix(f"-{DEFERRED}") == new.removesuffix(f"-{DEFERRED}"):
            now = "deferred" if new.endswith(DEFERRED) else "no longer deferred"
            found.append(f"retries of {name} are {now} (its retry mode says whether it keeps state)")
    return found


def _changes(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    found = {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    }
    return [f"{what} {', '.join(names)} {verb}" for verb, names in found.items() if names]
