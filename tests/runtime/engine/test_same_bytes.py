"""A plan without event time packs rows and stores state byte for byte as before there was event time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.engine import process
from hintplan.runtime.engine.pack import Packing
from hintplan.runtime.engine.process import NOW, Process
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.engine.this_task import ThisTask
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.storage.place import Place, Scale

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64())])
ROWS = pa.table({"k": [3, 1, 2, None], "v": [0.5, -0.0, None, 7.25]}, schema=SCHEMA)
# Computed with the code of the commit before event time.
PACKED = "105d51ae9190774741f7288d1448ca7a55e790dbad6069903f350817b6400e0a"
MANIFEST = "0889a7dca470ec5adfa6de820395a37275c6190914cfb461c866d24cacb89335"


class Keeping:
    """Keeps its rows in one segment."""

    inputs = (InputSpec(columns=SCHEMA, hashes=(("k",),), changelog=False),) * 2
    output = SCHEMA

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        delta = deltas[1]
        assert delta is not None
        store.write(str(now), delta.select(["__hash0", "k", "v"]).sort_by("__hash0"))
        return Result(
            output=SCHEMA.empty_table(), manifest=str(now).encode(), rows_in=4, state_rows=4, state_bytes=9,
            oldest_write=None,
        )  # fmt: skip

    def inherit(self, store: Inheritance) -> bytes | None:
        raise NotImplementedError


def test_packed_rows_and_stored_state_have_the_same_bytes(tmp_path: Path) -> None:
    packing = Packing(side=1, schema=SCHEMA, route=("k",), buckets=(2, 0))
    packed = pa.Table.from_batches(packing(ROWS.to_batches())).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, packed.schema) as writer:
        writer.write_table(packed)
    assert hashlib.sha256(sink.getvalue()).hexdigest() == PACKED
    place = Place(root=str(tmp_path), operator="op", lineage="ab", run=7, scales=(Scale(2),))
    of_partition = packed.filter(pc.equal(packed["bucket"], 2)).to_batches()
    batches = [batch.append_column(NOW, pa.array(["5"] * batch.num_rows)) for batch in of_partition]
    report = Report()
    with mock.patch.object(process, "this_task", return_value=ThisTask(3, 0)):
        assert list(Process(operator=Keeping(), place=place, buckets=(2, 0))(batches, report)) == []
    assert report.marks == {}
    (manifest,) = tmp_path.rglob("*.manifest")
    assert hashlib.sha256(manifest.read_bytes()).hexdigest() == MANIFEST
