"""Applies edits of a plan file to the running job: it reads the file when it changes, and switches between two batches.

A running job applies an edit if the effect of each change allows it (:mod:`hintplan.plans.checkpoint.live_edit`). It
refuses any other edit with the words of ``hintplan check``, and continues with its plan. The queries of the run end
after their batch, and start again with the edited plan, in the same process and Spark session.

    edits = watched_file("paid.json")
    execution = execute(edits.plan, checkpoint=where, watch=edits)
    while execution.active:
        for edit in edits.news():
            print(edit.text)

This module owns the file and the decision. :mod:`hintplan.runtime.run.starting` starts the queries.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from hintplan.plans.api.plans import PlanLike, refuse_no_plan
from hintplan.plans.checkpoint.live_edit import changes_texts, needing_start, refusal_text
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.files.codec import fingerprint, loads, read_plan_bytes
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.runtime.running import PlanEdit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hintplan.runtime.run.execution import Execution
    from hintplan.runtime.run.starting import Start

_LOOK_SECONDS = 0.5
"""The time between two looks at the file. An edit must look the same twice, because it may be half written."""
_MOST_UNREAD = 100


@frozen
class _Edit:
    plan: Plan
    changes: tuple[Change, ...]


@dataclass(slots=True, kw_only=True)
class LiveEdits:
    """Watches the file of ``plan``, the plan in force. A run that restarts after a failure continues with it."""

    path: str
    plan: Plan
    allow_fact_edits: bool = False
    clock: Callable[[], float] = time.monotonic
    _start: Start | None = None
    _due: float = 0.0
    _noticed: bytes | str | None = None
    _judged: bytes | str | None = None
    _is_refused: bool = False
    _accepted: _Edit | None = None
    _news: deque[PlanEdit] = field(default_factory=lambda: deque(maxlen=_MOST_UNREAD))

    @property
    def is_pending(self) -> bool:
        """True if an edit was accepted, and its plan has not started yet."""
        return self._accepted is not None

    def news(self) -> list[PlanEdit]:
        """Return the edits that were applied or refused since the last call."""
        return [self._news.popleft() for _ in range(len(self._news))]

    def newest(self) -> Plan:
        """Return the plan with which a run starts again: the plan of the file if a running job could apply it.

        An edit may repair the reason for which the run has failed, so it does not wait for the next batch.
        """
        content = self._content()
        if self._accepted is None and isinstance(content, bytes) and content != self._judged:
            self._judge(content)
        return self.plan if self._accepted is None else self._accepted.plan

    def begin(self, plan: Plan, start: Start) -> None:
        """Prepare for the start of ``plan`` by ``start``."""
        self._start = start
        if self._accepted is None:
            self.plan = plan

    def begun(self, plan: Plan, batches: Mapping[str, int]) -> None:
        """Record that the queries of ``plan`` have started, each with the first of its ``batches``."""
        edit, self._accepted = self._accepted, None
        self.plan = plan
        if edit is not None:
            self._tell(changes=changes_texts(edit.changes), batches=dict(batches))

    def look(self, execution: Execution) -> None:
        """Look at the file if it is time; after an edit, end the batches of ``execution`` and start the new plan."""
        if self._accepted is None:
            now = self.clock()
            if now < self._due:
                return
            self._due = now + _LOOK_SECONDS
            content = self._content()
            before, self._noticed = self._noticed, content
            if content == before and content != self._judged:
                self._judge(content)
        if self._accepted is not None and self._start is not None and execution.end_batches():
            start, plan = self._start, self._accepted.plan
            execution.following = lambda: start.continue_with(execution, plan)

    def _content(self) -> bytes | str:
        """Return the bytes of the file, or the reason why it cannot be read."""
        try:
            return read_plan_bytes(self.path)
        except PlanError as error:
            return str(error)

    def _judge(self, content: bytes | str) -> None:
        """Accept the edit that the file contains, or refuse it."""
        self._judged = content
        if isinstance(content, str):
            self._refuse(content)
            return
        try:
            plan = loads(content, file=self.path, allow_fact_edits=self.allow_fact_edits)
            changes = compare_plans(self.plan, plan)
            refused = needing_start(changes)
            if refused:
                self._refuse(self._refusal(plan, refused))
            elif changes:
                if self._start is not None:
                    self._start.refuse_unbuildable(plan)
                self._accepted, self._is_refused = _Edit(plan=plan, changes=changes), False
            elif self._is_refused:
                self._is_refused = False
                self._tell()
        except (PlanError, RunError, PySparkException) as error:
            self._refuse(str(error))

    def _refusal(self, plan: Plan, refused: Sequence[Change]) -> str:
        record = None if self._start is None else self._start.record()
        if record is None:
            return refused[0].effect.text
        return refusal_text(record, plan, refused)

    def _refuse(self, reason: str) -> None:
        self._is_refused = True
        self._tell(refusal=reason)

    def _tell(
        self, *, changes: tuple[str, ...] = (), batches: Mapping[str, int] | None = None, refusal: str | None = None
    ) -> None:
        digest = fingerprint(self.plan)
        self._news.append(
            PlanEdit(file=self.path, digest=digest, changes=changes, batches=batches or {}, refusal=refusal)
        )


def watched_file(plan: PlanLike, *, allow_fact_edits: bool = False) -> LiveEdits:
    """Read the plan of a file, and return its watcher; RunError for a plan that is not in a file."""
    if isinstance(plan, Plan):
        raise RunError("watch reads the file of the plan again, and this plan has none", hint="give the path of a file")
    refuse_no_plan(plan)
    path = os.fspath(plan)
    refuse_no_file(path)
    loaded = loads(read_plan_bytes(path), file=path, allow_fact_edits=allow_fact_edits)
    return LiveEdits(path=path, plan=loaded, allow_fact_edits=allow_fact_edits)


def refuse_no_file(path: str) -> None:
    """Raise RunError for a plan that is read once, from standard input or from git."""
    if path == "-" or path.startswith("git:"):
        raise RunError(f"{path} is read once, so its edits cannot be watched", hint="give the path of a file")


def refuse_unwatchable(plan: Plan, checkpoint: str | None, *, once: bool) -> None:
    """Raise RunError for a run that cannot apply edits of its plan."""
    if plan.mode == "batch":
        raise RunError(f"{plan.name} is a batch plan: it runs once, so its edits are not watched")
    if once:
        raise RunError("a run that ends with its input applies no edits", hint="leave out watch, or once and drain")
    if checkpoint is None:
        raise RunError("watch records in the checkpoint which plan ran", hint="give a checkpoint directory")
