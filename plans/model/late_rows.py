"""Derives the operators that write late rows: a ``late-rows`` and a sink for each target of a watermark.

A watermark whose setting ``late-rows.target`` names a table has them without being in the plan file: the setting can be
edited like any other, and the digests of the plan stay the same. There is one sink for each target, with the late rows
of all operators that go by a watermark with this target.

>>> from hintplan.plans.operators import Scan
>>> [operator.id for operator in with_late_rows((Scan(id="scan_o", table="o", columns=("a",)),), {})]
['scan_o']
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping

from hintplan.plans.declarations.tables import Table
from hintplan.plans.operators import Calc, LateRows, Operator, Scan, Sink, WatermarkAssigner

Operators = tuple[Operator, ...]


def declared_operators(operators: Operators) -> Operators:
    """Return ``operators`` without the operators that follow from settings."""
    implied = {operator.id for operator in operators if isinstance(operator, LateRows)}
    if not implied:
        return operators
    return tuple(
        operator
        for operator in operators
        if operator.id not in implied and not (isinstance(operator, Sink) and operator.inputs[0] in implied)
    )


def with_late_rows(operators: Operators, tables: Mapping[str, Table]) -> Operators:
    """Return the declared operators of ``operators``, followed by operators that write late rows to ``tables``.

    A target that is not among ``tables`` has none; validation reports it.
    """
    declared = declared_operators(operators)
    targets = {
        operator.id: (scan, operator.late_rows)
        for operator in declared
        if isinstance(operator, WatermarkAssigner) and operator.late_rows in tables
        for scan in [scan_below(operator, declared)]
        if scan is not None
    }
    if not targets:
        return declared
    by_id = {operator.id: operator for operator in declared}
    inputs: dict[str, dict[str, None]] = {}
    scans: dict[str, dict[str, None]] = {}
    for operator in declared:
        if operator.goes_by_time and operator.drops_late_rows and not operator.goes_by_clock:
            for sender in nearest_senders(by_id, operator):
                if sender in targets:
                    scan, target = targets[sender]
                    inputs.setdefault(str(target), {})[operator.id] = None
                    scans.setdefault(str(target), {})[scan.id] = None
    implied: list[Operator] = []
    taken = set(by_id)
    for target, dropping in inputs.items():
        rows = LateRows(id=_free("late_rows", taken), inputs=tuple(dropping), target=target, scans=tuple(scans[target]))
        name = re.sub(r"[^a-z0-9_]", "_", target.lower())
        implied += [rows, Sink(id=_free(f"sink_{name}", taken), inputs=(rows.id,), table=target)]
    return (*declared, *implied)


def late_rows_of(operators: Mapping[str, Operator], sink: str) -> LateRows | None:
    """Return the late rows that ``sink`` writes, or None if it writes rows of a query."""
    below = operators.get(operators[sink].inputs[0]) if sink in operators else None
    return below if isinstance(below, LateRows) else None


def _free(name: str, taken: set[str]) -> str:
    """Return ``name``, with a number if it is among ``taken``, and add it there."""
    names = (name if number == 1 else f"{name}_{number}" for number in itertools.count(1))
    free = next(each for each in names if each not in taken)
    taken.add(free)
    return free


def scan_below(assigner: Operator, operators: Collection[Operator]) -> Scan | None:
    """Return the scan below a watermark, or None if there is more than calcs between the two."""
    by_id = {operator.id: operator for operator in operators}
    below = by_id.get(assigner.inputs[0])
    walked: set[str] = set()
    while isinstance(below, Calc) and below.id not in walked:
        walked.add(below.id)
        below = by_id.get(below.inputs[0])
    return below if isinstance(below, Scan) else None


def nearest_senders(operators: Mapping[str, Operator], operator: Operator) -> Iterator[str]:
    """Yield the nearest operators below ``operator`` that send watermarks, once for each way to them."""
    waiting = [*reversed(operator.inputs)]
    walked: set[str] = set()
    while waiting:
        name = waiting.pop()
        below = operators.get(name)
        if below is None or name in walked:
            continue
        if below.sends_watermark or below.goes_by_time:
            yield name
        elif below.passes_watermark:
            walked.add(name)
            waiting += reversed(below.inputs)
