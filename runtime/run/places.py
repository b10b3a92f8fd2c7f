"""Where the states of a query are, and what it pins, and what files of state are to be called in this run.

places = places_of(query, found, checkpoint, run=run_number(files_of(spark, checkpoint), clock()))
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
from hintplan.runtime.storage.names import PINS, parsed
from hintplan.runtime.storage.pins import PinPlace, heeded_pins
from hintplan.runtime.storage.place import Place, Scale


def run_number(files: CheckpointFiles, now: int) -> int:
    """A number for a run that begins at ``now`` (ms), higher than those of all that have written to the checkpoint.

    Processes of a run before this one may be left, and their files must never count for ours.
    """
    found = (parsed(path.rpartition("/")[2]) for path in files.sizes if f"/{STATE}/" in path or f"/{PINS}/" in path)
    return max([now, *(name.run + 1 for name in found if name is not None)])


def places_of(query: Query, found: Continuation, location: str, *, run: int, batch_key: str = "") -> dict[str, Place]:
    """The state of each operator of ``query`` that keeps any, by its id; ``location`` is the checkpoint to a worker.

    ``batch_key`` is under which name the query tells tasks its batch where Spark does not.
    """
    (record,) = (record for record in found.records if record.id == query.id)
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
    """Where each operator of ``query`` pins its answers that must, by its id; ``files`` and ``location`` are those of
    the checkpoint.

    Runs of the same ``division`` divide the rows of a batch alike; ``batches`` are the last ones that began and ended.
    ``batch_key`` is as in :func:`places_of`. The place has the name of what is asked, and not that of the operator,
    which another plan may call otherwise.
    """
    wanted = pinned_operators(plan, query.sinks)
    if not wanted:
        return {}
    lineages = state_lineages(plan)
    began, ended = batches
    replayed = began if began > ended else -1
    same: Counter[str] = Counter()
    found = {}
    for operator in plan.operators:
        if operator.id in wanted:
            lineage = lineages[operator.id]
            number = f".{same[lineage]}" if same[lineage] else ""
            same[lineage] += 1
            folder = f"{lineage}{number}"
            found[operator.id] = PinPlace(
                root=f"{location.rstrip('/')}/{query.id}/{PINS}",
                folder=folder,
                operator=operator.id,
                run=run,
                replayed=replayed,
                division=division,
                batch_key=batch_key,
                heeded=_heeded(files, f"{query.id}/{PINS}/{folder}", replayed),
            )
    return found


def _heeded(files: CheckpointFiles, folder: str, batch: int) -> tuple[str, ...]:
    def read(name: str) -> bytes:
        return files.read([f"{folder}/{name}"])[f"{folder}/{name}"]

    try:
        return heeded_pins(files.names(folder), batch, read)
    except DamagedFile as error:
        raise RunError(f"the checkpoint is damaged: {folder}/{error.diagnostics[0].message}", hint=RESTORE) from error
