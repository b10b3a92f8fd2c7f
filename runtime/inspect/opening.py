"""Opens a checkpoint to read the state of a plan in it, also while a run is active there.

    checkpoint = open_checkpoint(plan, "/data/checkpoints/revenue")
    at_last_batches(checkpoint, lambda batches: [stored(checkpoint, state, batches) for state in checkpoint.states])

A run removes files of older batches. So a failed read is repeated at a newer batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.checkpoint.record import CheckpointRecord, absolute, recorded_plan
from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.batches import (
    Batch,
    committed_batches,
    last_numbers,
    parsed_record,
    record_at,
    record_files,
    state_in_force,
)
from hintplan.runtime.inspect.state_owner import OwnedState, owned_states
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.manifest import DamagedFile, Manifest
from hintplan.runtime.storage.read import read_manifest_file

_ATTEMPTS = 5

Batches = Mapping[str, Batch | None]
"""The last committed batch of each query, or None for a query without one."""

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCheckpoint:
    """An open checkpoint at ``root``: its ``files``, its record, and its states, assigned to operators of a plan."""

    root: str
    files: Files
    record: CheckpointRecord
    states: tuple[OwnedState, ...]

    def query(self, state: OwnedState) -> QueryRecord:
        """Return the query that keeps ``state``."""
        return next(query for query in self.record.queries if query.id == state.query)


def open_checkpoint(plan: Plan, checkpoint: str) -> OpenCheckpoint:
    """Open ``checkpoint``, a path or a URL, for ``plan``.

    PlanError if the plan is invalid; RunError if it keeps no state, or if there is no checkpoint that is related to it.
    """
    problems = plan_problems(plan)
    if problems:
        raise PlanError(diagnostics=problems)
    if plan.mode == "batch":
        raise RunError(f"{plan.name} is a batch plan: it keeps no state")
    root = absolute(checkpoint).rstrip("/")
    files = files_at(root)
    record = record_at(checkpoint, files)
    if record is None:
        raise no_checkpoint(checkpoint)
    meanings = {state.lineage for query in record.queries for state in query.states}
    strange = record.operators.isdisjoint(operator.id for operator in plan.operators)
    if strange and meanings.isdisjoint(state_lineages(plan).values()):
        raise RunError(
            f"checkpoint {checkpoint} was written by plan {record.plan}, which has no operator in common with "
            f"{plan.name}",
            hint="give the plan it was written by",
        )
    return OpenCheckpoint(root=root, files=files, record=record, states=owned_states(plan, record))


def last_plan(checkpoint: str) -> Plan:
    """Return the plan that last ran on ``checkpoint``; RunError if there is none, or if it cannot be read here."""
    record = parsed_record(record_files(files_at(absolute(checkpoint).rstrip("/"))), checkpoint)
    if record is None:
        raise no_checkpoint(checkpoint)
    plan = recorded_plan(record)
    if plan is None:
        raise RunError(
            f"the plan that last ran on {checkpoint} was compiled by another version of hintplan",
            hint="use the version that ran it, or run it once with this one",
        )
    return plan


def no_checkpoint(checkpoint: str) -> RunError:
    """Return the error for a missing checkpoint."""
    return RunError(f"there is no checkpoint in {checkpoint}", hint="use the directory of 'hintplan run --checkpoint'")


def stored(checkpoint: OpenCheckpoint, state: OwnedState, batches: Batches) -> tuple[Files, dict[int, Manifest]]:
    """Return the files of ``state``, and the manifest of each partition after the last committed batch.

    There are no manifests before the first commit.
    """
    files, batch = files_at(f"{checkpoint.root}/{state.place}"), batches[state.query]
    if batch is None:
        return files, {}
    there = state_in_force(checkpoint.files, checkpoint.query(state), files, batch.number)
    paths = () if there is None else there.paths
    return files, {partition: read_manifest_file(files, path) for partition, path in enumerate(paths)}


def at_last_batches(checkpoint: OpenCheckpoint, read: Callable[[Batches], _Read]) -> _Read:
    """Return the result of ``read`` on the last committed batches; retry at newer ones if a run is active and it fails.

    RunError if a part of the checkpoint cannot be read, or if the run commits faster than ``read`` finishes.
    """
    queries = checkpoint.record.queries
    failure: RunError | OSError | None = None
    failed_at: Mapping[str, int | None] | None = None
    for _ in range(_ATTEMPTS):
        numbers = last_numbers(checkpoint.files, queries)
        try:
            return read(committed_batches(checkpoint.files, queries, numbers))
        except (RunError, OSError) as error:
            failure, before, failed_at = error, failed_at, numbers
            # A single failure may be due to a compaction, which replaces files of the same batch.
            if before == numbers == last_numbers(checkpoint.files, queries):
                break
    else:
        raise RunError(
            f"a run is active in {checkpoint.root}, and removes files before they are read",
            hint="try again, read less with --entry, or read a snapshot (hintplan state DIR --snapshot)",
        ) from failure
    if isinstance(failure, FileNotFoundError):
        raise DamagedFile(str(failure.filename or checkpoint.root), "is missing") from failure
    if isinstance(failure, OSError):
        raise RunError(
            f"{failure.filename or checkpoint.root} cannot be read: {failure.strerror or failure}",
            hint="whoever looks at a checkpoint needs the right to read it",
        ) from failure
    raise failure
