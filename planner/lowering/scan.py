"""Reads of tables; rows that replace each other by a key become whole changes."""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, lowered, optional_text
from hintplan.planner.relations import Scan, StateInput
from hintplan.plans import operators as model


def lower_scan(builder: Builder, scan: Scan) -> Lowered:
    """The scan, with a changelog normalization above it if its source needs one."""
    columns = tuple(f.name for f in scan.fields)
    asked = optional_text(scan.filter, lowered("", scan.fields, columns).printed())
    operator = model.Scan(id="", table=scan.table, columns=columns, filter=asked)
    found = lowered(builder.add(operator, "scan", (scan.declared,), scan.block), scan.fields, columns)
    if not scan.normalized:
        return found
    whole = model.ChangelogNormalize(
        id="",
        inputs=(found.id,),
        key=scan.normalized,
        state=builder.states(("changelogNormalizeState", StateInput(name=scan.declared), found)),
        changelog=(),
    )
    return replace(found, id=builder.add(whole, "normalize", (scan.declared,), scan.block))
