"""Checks the pinned answers of a query that are still needed (:mod:`hintplan.runtime.storage.pins`).

    <query>/pins/<lineage>/<batch>.<run>.<token>.pin

Only a batch that has begun and not ended runs again and uses its pins. A missing pin cannot be detected: a run may have
died before it wrote the pin.
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.extras import require
from hintplan.runtime.checkpoint.files import CheckpointFiles, Damage
from hintplan.runtime.storage.manifest import DamagedFile
from hintplan.runtime.storage.names import PINS, batch_of


def pin_damages(files: CheckpointFiles, query: QueryRecord, *, began: int, ended: int) -> Iterator[Damage]:
    """Yield the damaged pins of ``query``; ``began`` and ``ended`` are its last batches that began and that ended."""
    batches = {
        path: batch
        for path in sorted(files.sizes)
        if path.startswith(f"{query.id}/{PINS}/") and (batch := batch_of(path.rpartition("/")[2])) is not None
    }
    late = [path for path, batch in batches.items() if batch > max(began, ended)]
    if late:
        yield Damage(
            part=f"{query.logs}/offsets/{max(began, ended) + 1}", what=f"is missing, though there is {late[0]}"
        )
    needed = [path for path, batch in batches.items() if ended < batch == began]
    if not needed:
        return
    require("state")
    from hintplan.runtime.storage.pins import decode_pin  # with pyarrow, which takes a while to load

    for path, content in files.read(needed).items():
        try:
            decode_pin(content, path)
        except DamagedFile as error:
            yield Damage(part=path, what=error.what)
