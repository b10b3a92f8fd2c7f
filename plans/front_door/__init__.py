"""hintplan for Python programs and notebooks: compile hinted SQL to a plan; read, edit, compare and run the plan.

    import hintplan

    plan = hintplan.compile_sql(sql)
    edited = hintplan.set(plan, "join_o_c.state.leftState.ttl", "2 d", reason="late payments")
    print(hintplan.diff(plan, edited))
    hintplan.execute(edited, checkpoint="state", once=True).await_termination()

Each function works like the command of the same name, on :class:`Plan` values instead of files. Its result prints the
output of the command, and renders itself in a notebook. Every part loads at its first use: importing the package takes
a millisecond, and only functions that run plans wait for PySpark, which ``hintplan[spark]`` installs. Nothing in
``hintplan.plans``, ``hintplan.planner`` and ``hintplan.runtime`` uses the names offered here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hintplan import functions
    from hintplan.planner.compile import compile_sql
    from hintplan.plans.api.difference import Diff, diff
    from hintplan.plans.api.drawing import Drawing, show
    from hintplan.plans.api.editing import set
    from hintplan.plans.api.explanation import Explanation, explain
    from hintplan.plans.api.linting import LintResult, lint
    from hintplan.plans.api.origins import Origin, why
    from hintplan.plans.api.rebasing import RebaseResult, rebase
    from hintplan.plans.api.validation import validate
    from hintplan.plans.compare.change import Change
    from hintplan.plans.connectors.policy import Policy
    from hintplan.plans.errors import Diagnostic, HintplanError, PlanError, RunError, SqlError
    from hintplan.plans.files.codec import dump, dumps, load, loads
    from hintplan.plans.model.plan import Plan
    from hintplan.runtime.batch.cache import CachedResult
    from hintplan.runtime.batch.execution import BatchExecution
    from hintplan.runtime.batch.session import Session
    from hintplan.runtime.inspect.checked import CheckResult, check
    from hintplan.runtime.inspect.compact import Compaction, compact_state
    from hintplan.runtime.inspect.contents import CheckpointState
    from hintplan.runtime.inspect.read import read_state
    from hintplan.runtime.inspect.snapshot import Snapshot, take_snapshot
    from hintplan.runtime.inspect.visible import state_rows
    from hintplan.runtime.metrics.metrics import Metrics, open_metrics
    from hintplan.runtime.page.live_page import LivePage, open_page
    from hintplan.runtime.rehearsal.program import PlanTest, test
    from hintplan.runtime.run.execute import execute
    from hintplan.runtime.run.execution import Execution

__all__ = [
    "BatchExecution",
    "CachedResult",
    "Change",
    "CheckResult",
    "CheckpointState",
    "Compaction",
    "Diagnostic",
    "Diff",
    "Drawing",
    "Execution",
    "Explanation",
    "HintplanError",
    "LintResult",
    "LivePage",
    "Metrics",
    "Origin",
    "Plan",
    "PlanError",
    "PlanTest",
    "Policy",
    "RebaseResult",
    "RunError",
    "Session",
    "Snapshot",
    "SqlError",
    "check",
    "compact_state",
    "compile_sql",
    "diff",
    "dump",
    "dumps",
    "execute",
    "explain",
    "functions",
    "lint",
    "load",
    "loads",
    "open_metrics",
    "open_page",
    "read_state",
    "rebase",
    "set",
    "show",
    "state_rows",
    "take_snapshot",
    "test",
    "validate",
    "why",
]

_NAMES_IN = {
    "hintplan.plans.api.difference": ("Diff", "diff"),
    "hintplan.plans.api.drawing": ("Drawing", "show"),
    "hintplan.plans.api.editing": ("set",),
    "hintplan.plans.api.explanation": ("Explanation", "explain"),
    "hintplan.plans.api.linting": ("LintResult", "lint"),
    "hintplan.plans.api.origins": ("Origin", "why"),
    "hintplan.plans.api.rebasing": ("RebaseResult", "rebase"),
    "hintplan.plans.api.validation": ("validate",),
    "hintplan.planner.compile": ("compile_sql",),
    "hintplan.plans.compare.change": ("Change",),
    "hintplan.plans.connectors.policy": ("Policy",),
    "hintplan.plans.errors": ("Diagnostic", "HintplanError", "PlanError", "RunError", "SqlError"),
    "hintplan.plans.files.codec": ("dump", "dumps", "load", "loads"),
    "hintplan.plans.model.plan": ("Plan",),
    "hintplan.runtime.batch.cache": ("CachedResult",),
    "hintplan.runtime.batch.execution": ("BatchExecution",),
    "hintplan.runtime.batch.session": ("Session",),
    "hintplan.runtime.inspect.compact": ("Compaction", "compact_state"),
    "hintplan.runtime.inspect.contents": ("CheckpointState",),
    "hintplan.runtime.inspect.read": ("read_state",),
    "hintplan.runtime.inspect.snapshot": ("Snapshot", "take_snapshot"),
    "hintplan.runtime.inspect.visible": ("state_rows",),
    "hintplan.runtime.metrics.metrics": ("Metrics", "open_metrics"),
    "hintplan.runtime.page.live_page": ("LivePage", "open_page"),
    "hintplan.runtime.inspect.checked": ("CheckResult", "check"),
    "hintplan.runtime.rehearsal.program": ("PlanTest", "test"),
    "hintplan.runtime.run.execute": ("execute",),
    "hintplan.runtime.run.execution": ("Execution",),
}
if __name__ != "hintplan":  # imported from a checkout, where its folder is below plans/
    raise ImportError("this package is called hintplan: import hintplan")

_EXTRA_OF = {"inspect": "state", "rehearsal": "test"}
_HOMES = {name: home for home, names in _NAMES_IN.items() for name in names}


if not TYPE_CHECKING:  # a type checker would accept any misspelt name

    def __getattr__(name):
        if name == "functions":
            return import_module("hintplan.functions")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = _HOMES[name]
        try:
            return getattr(import_module(home), name)
        except ModuleNotFoundError:
            from hintplan.plans.extras import require

            require(_EXTRA_OF.get(home.split(".")[2], "spark"))
            raise


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])
