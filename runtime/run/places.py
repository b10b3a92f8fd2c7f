"""The directories of a query's state and pins, and the run number in the names of their files.

places = state_places(query, continued, checkpoint, run=run_number(checkpoint_files(spark, checkpoint), clock()))
"""

from __future__ import annotations

from collections import Counter

from hintplan.plans.analysis.pinned import pinned_operators
from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.continuation import Continuation
from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.state_parts import STATE
from hintplan.runtime.storage.manifest import RESTORE, DamagedFile
from hintplan.runtime.storage.names import PINS, parse_name
from hintplan.runtime.storage.pins import PinPlace, heeded_pins
from hintplan.runtime.storage.place import Place, Scale


def run_number(files: CheckpointFiles, now: int) -> int:
    """Return a number for a run that begins at ``now`` (ms), higher than the numbers of all earlier runs.

    Processes of an earlier run may still write to the checkpoint, and their files must never count for this run.
    """
    file_names = (
        parse_name(path.rpartition("/")[2]) for path in files.sizes if f"/{STATE}/" in path or f"/{PINS}/" in path
    )
    return max([now, *(name.run + 1 for name in file_names if name is not None)])


def state_places(
    query: Query, continued: Continuation, location: str, *, run: int, batch_key: str = ""
) -> dict[str, Place]:
    """Return the place of each state of ``query`` by operator id; ``location`` is the checkpoint as workers reach it.

    Where Spark does not pass the batch number to tasks, the query passes it under the name ``batch_key``.
    """
    (record,) = (record for record in continued.records if record.id == query.id)
    return {
        state.operator: Place(
            root=f"{location.rstrip('/')}/{query.id}/{STATE}/{state.place}",
            operator=state.operator,
            lineage=state.stored,
            run=run,
            scales=tuple(Scale(partitions, first) for partitions, first in record.scales),
            begun=state.begun,
            batch_key=batch_key,
        )
        for state in record.states
    }


def pins_of(
    query: Query,
    plan: Plan,
    files: CheckpointFiles,
    location: str,
    *,
    run: int,
    division: str,
    batches: tuple[int, int],
    batch_key: str = "",
) -> dict[str, PinPlace]:
    """Return the place of the pins of each operator of ``query`` that must pin its answers, by operator id.

    ``files`` and ``location`` belong to the checkpoint. Runs with the same ``division`` distribute the rows of a batch
    in the same way. ``batches`` are the last batches that began and that ended. ``batch_key`` is as in
    :func:`state_places`. The directory is named after the lineage of the operator and not after its id, which may
    change with the plan.
    """
    wanted = pinned_operators(plan, query.sinks)
    if not wanted:
        return {}
    lineages = state_lineages(plan)
    began, ended = batches
    replayed = began if began > ended else -1
    seen: Counter[str] = Counter()
    pin_places = {}
    for operator in plan.operators:
        if operator.id in wanted:
            lineage = lineages[operator.id]
            number = f".{seen[lineage]}" if seen[lineage] else ""
            seen[lineage] += 1
            folder = f"{lineage}{number}"
            pin_places[operator.id] = PinPlace(
                root=f"{location.rstrip('/')}/{query.id}/{PINS}",
                folder=folder,
                operator=operator.id,
                run=run,
                replayed=replayed,
                division=division,
                batch_key=batch_key,
                heeded=_heeded(files, f"{query.id}/{PINS}/{folder}", replayed),
            )
    return pin_places


def _heeded(files: CheckpointFiles, folder: str, batch: int) -> tuple[str, ...]:
    def read(name: str) -> bytes:
        return files.read([f"{folder}/{name}"])[f"{folder}/{name}"]

    try:
        return heeded_pins(files.names(folder), batch, read)
    except DamagedFile as error:
        raise RunError(f"the checkpoint is damaged: {folder}/{error.diagnostics[0].message}", hint=RESTORE) from error
