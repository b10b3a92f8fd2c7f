"""How long validate and diff take for a plan of many operators, as a person waits for them: in a process of their own.

python benchmarks/review.py [OPERATORS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import hintplan
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.format.compiled import with_record
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Join, JoinColumn, JoinKey, Operator, Scan, SelectItem, Sink
from hintplan.plans.settings.state import StateEntry, ttl_settings

ROUNDS = 3


def block(number: int) -> tuple[Operator, ...]:
    """Two scans, a calc, a join and a sink."""
    left = Scan(id=f"scan_a{number}", table="t", columns=("c0", "c1", "c2"))
    right = Scan(id=f"scan_b{number}", table="t", columns=("c0", "c3"))
    item = SelectItem(name="c2", type="BIGINT", expression=f"c2 + {number}")
    calc = Calc(id=f"calc_{number}", inputs=(left.id,), select=(SelectItem(name="c0"), item), filter="c1 > 0")
    states = tuple(
        StateEntry(index=i, name=name, input="t", settings=ttl_settings(config="1 h", hint="1 d"))
        for i, name in enumerate(("leftState", "rightState"))
    )
    join = Join(
        id=f"join_{number}",
        inputs=(calc.id, right.id),
        join_type="inner",
        keys=(JoinKey(left="c0", right="c0"),),
        condition=None,
        state=states,
        output=(
            JoinColumn(name="c0", type="BIGINT", side="left", column="c0"),
            JoinColumn(name="c3", type="BIGINT", side="right", column="c3"),
        ),
        changelog=("+I",),
    )
    return left, right, calc, join, Sink(id=f"sink_{number}", inputs=(join.id,), table="s")


def plan_of(operators: int) -> Plan:
    columns = tuple(TableColumn(name=f"c{i}", type="BIGINT") for i in range(4))
    tables = {
        "t": Table(columns=columns, options={"connector": "datagen"}),
        "s": Table(columns=(columns[0], columns[3]), options={"connector": "print"}),
    }
    found = tuple(operator for number in range(operators // 5) for operator in block(number))
    return with_record(Plan(name="large", config={"table.exec.state.ttl": "1 h"}, tables=tables, operators=found))


def edited(operator: Operator) -> Operator:
    if not isinstance(operator, Join):
        return operator
    return replace(operator, state=(replace(operator.state[0], ttl="2 d"), operator.state[1]))


def seconds(*arguments: str) -> tuple[float, float]:
    """Time on the clock and of the processor, each the best of some rounds."""
    clock, processor = [], []
    for _ in range(ROUNDS):
        started, used = time.perf_counter(), _used()
        subprocess.run([sys.executable, "-m", "hintplan", *arguments], check=True, capture_output=True)
        clock.append(time.perf_counter() - started)
        processor.append(_used() - used)
    return min(clock), min(processor)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    operators = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    plan = plan_of(operators)
    with tempfile.TemporaryDirectory() as folder:
        a, b, c = (str(Path(folder) / f"{name}.json") for name in "abc")
        hintplan.dump(plan, a)
        hintplan.dump(replace(plan, operators=tuple(map(edited, plan.operators))), b)
        text = Path(a).read_text().replace('"join_', '"joined_').replace('"calc_', '"filtered_')
        hintplan.dump(hintplan.loads(text, allow_fact_edits=True, check_meaning=False), c)
        print(f"{len(plan.operators):,} operators, {Path(a).stat().st_size / 1e6:.1f} MB")
        for what, arguments in {
            "validate": ("validate", a),
            "diff, the same": ("diff", a, a),
            "diff, a TTL of every join": ("diff", a, b),
            "diff, every join and calc renamed": ("diff", a, c),
            "diff --format markdown": ("diff", a, b, "--format", "markdown"),
            "diff --format github": ("diff", a, b, "--format", "github"),
        }.items():
            clock, processor = seconds(*arguments)
            print(f"{what:<36}{clock:6.2f} s, {processor:5.2f} s of the processor")


if __name__ == "__main__":
    main()
