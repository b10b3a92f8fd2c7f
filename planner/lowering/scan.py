"""Scans of tables. A changelog normalization converts upserts to complete changes."""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, lowered, optional_text
from hintplan.planner.relations import Scan, StateInput
from hintplan.plans import operators as model


def lower_scan(builder: Builder, scan: Scan) -> Lowered:
    """Add the scan, and a changelog normalization above it if its source emits upserts."""
    columns = tuple(f.name for f in scan.fields)
    pushed_filter = optional_text(scan.filter, lowered("", scan.fields, columns).printed())
    operator = model.Scan(id="", table=scan.table, columns=columns, filter=pushed_filter)
    scanned = lowered(builder.add(operator, "scan", (scan.declared,), scan.block), scan.fields, columns)
    if not scan.normalized:
        return scanned
    whole = model.ChangelogNormalize(
        id="",
        inputs=(scanned.id,),
        key=scan.normalized,
        state=builder.states(("changelogNormalizeState", StateInput(name=scan.declared), scanned)),
        changelog=(),
    )
    return replace(scanned, id=builder.add(whole, "normalize", (scan.declared,), scan.block))
