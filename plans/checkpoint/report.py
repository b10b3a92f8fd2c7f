"""Report what a plan does to a checkpoint: a line per query, a line per state, then all other changes.

This module knows no files. :mod:`hintplan.plans.compare.carryover` decides each verdict.

>>> print(check_text(Continuation(queries=()), None, Plan(name="p")))
p · new checkpoint
every query begins, and reads its sources from the beginning
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from hintplan.plans.checkpoint.continuation import ALLOW_DROP, KEEP, Continuation, cause_text, is_cause
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.carryover import QueryVerdict, SourceVerdict, StateVerdict
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.json_report import changes_json
from hintplan.plans.compare.keeping import kept_text
from hintplan.plans.compare.report import change_values
from hintplan.plans.frozen import frozen
from hintplan.plans.model.config import PARALLELISM, TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.effects import SHORTER_TTL
from hintplan.plans.text.aligned import unpainted
from hintplan.plans.text.counts import count, human_bytes
from hintplan.plans.text.escapes import clean

Verdict = Literal["new", "continues", "drops", "refused"]
Part = Literal["good", "bad", "note"]
Paint = Callable[[str, Part], str]


@frozen
class Expiring:
    """The number of ``rows`` that a shorter TTL hides at the start, ``of`` the rows visible under the old TTL.

    ``bytes`` is an estimate: the share of these rows in the stored bytes. ``first`` and ``last`` are the times (ms) at
    which the first and the last of the other rows pass the new TTL, unless they are written again; None without such
    rows.
    """

    rows: int
    of: int
    bytes: int = 0
    first: int | None = None
    last: int | None = None


@frozen
class Start:
    """The start for which the rows of a checkpoint were counted: ``at`` (ms), which is ``given`` or else now.

    ``expiring`` maps the path of a change to the rows that its shorter TTL hides. ``kept`` is the number of rows in the
    states that are kept by consent, or could be; None if they were not counted.
    """

    at: int
    given: bool = False
    expiring: Mapping[str, Expiring] = field(default_factory=dict)
    kept: int | None = None

    @property
    def is_counted(self) -> bool:
        """True if rows were counted."""
        return bool(self.expiring) or self.kept is not None


_UNCOUNTED = Start(at=0)
_OF_SINK = "the plan no longer writes it; if the plan writes it again, it starts empty"
_FOR_LATE_ROWS = "only to write its late rows, another query writes its results"
_GOOD = ("continues", "carries over", "is kept", "new")
_ON = ("carries over", "is kept")
_WIDTH = 32
_MINUTE = 60_000


def check_text(
    found: Continuation,
    record: CheckpointRecord | None,
    plan: Plan,
    *,
    spark: str | None = None,
    missing: str = "",
    start: Start = _UNCOUNTED,
    paint: Paint = unpainted,
) -> str:
    """Return the report in aligned columns; ``paint`` may colour a text but must not change its width.

    ``missing`` is a note that the checkpoint directory does not exist. ``start`` has the rows that were counted.
    """
    if record is None:
        begins = "every query begins, and reads its sources from the beginning"
        return "\n".join([f"{clean(plan.name)} · new checkpoint", begins, *([clean(missing)] if missing else [])])
    head = [plan.name, f"checkpoint of {record.plan}", f"{record.partitions} partitions"]
    head += [f"Spark {record.spark}"] if record.spark else []
    lines = [clean(" · ".join(head))]
    told: dict[str, str] = {}
    clock = _Clock(start=start, zone=plan.config.get(TIME_ZONE, "UTC"))
    for verdict in found.verdicts:
        lines += ["", _line(verdict.title, verdict.outcome, _of_query(verdict), paint)]
        lines += [_state(state, _because(state, found, told), found, clock, paint) for state in verdict.states]
        lines += [
            _line(f"  {source.operator}", source.outcome, _of_source(source), paint) for source in verdict.sources
        ]
        lines += [_line(f"  {sink}", "left behind", _OF_SINK, paint) for sink in verdict.sinks]
    other_changes = [change for change in found.changes if _is_told_apart(change, found)]
    if other_changes:
        lines += ["", paint("also", "note")]
        lines += [
            _line(f"  {change.kind} {change.path}", change_values(change) or change.note, change.effect.text, unpainted)
            for change in other_changes
        ]
    lines += ["", *(clean(note) for note in checkpoint_notes(record, plan, spark)), _sum(found)]
    return "\n".join([*lines, *(paint(line, "note") for line in _advice(found, plan, start))])


def check_json(
    found: Continuation,
    record: CheckpointRecord | None,
    plan: Plan,
    checkpoint: str,
    *,
    spark: str | None = None,
    missing: str = "",
    start: Start = _UNCOUNTED,
) -> dict[str, Any]:
    """Return the report as JSON values, for scripts."""
    return {
        "plan": plan.name,
        "checkpoint": checkpoint,
        "verdict": verdict_of(found, record),
        "recorded": record
        and {name: getattr(record, name) for name in ("plan", "layout", "run", "partitions", "spark")},
        "queries": [
            {
                "query": one.query,
                "outcome": one.outcome,
                "because": one.because,
                "writes": [{"operator": sink, "was": was} for sink, was in one.writes],
                "states": [
                    {
                        "operator": state.operator,
                        "was": state.was,
                        "outcome": state.outcome,
                        "kept": list(state.kept),
                        "may_be_kept": state.operator in found.keepable,
                        "because": _because(state, found, {}) or _FOR_LATE_ROWS * state.late,
                    }
                    for state in one.states
                ],
                "sources": [
                    {"operator": source.operator, "table": source.table, "outcome": source.outcome}
                    for source in one.sources
                ],
                "sinks": [{"operator": sink, "outcome": "left behind"} for sink in one.sinks],
            }
            for one in found.verdicts
        ],
        "notes": ([missing] if missing else []) if record is None else list(checkpoint_notes(record, plan, spark)),
        "changes": changes_json(found.changes)["changes"],
        "at": _utc(start.at) if start.is_counted else None,
        "expiring": {
            path: {**asdict(one), "first": _utc(one.first), "last": _utc(one.last)}
            for path, one in start.expiring.items()
        },
        "kept_rows": start.kept,
    }


def verdict_of(found: Continuation, record: CheckpointRecord | None) -> Verdict:
    """Return the outcome of a run; on ``drops``, a run continues only with consent."""
    if record is None:
        return "new"
    return "refused" if found.refused else "drops" if found.loses else "continues"


def checkpoint_notes(record: CheckpointRecord, plan: Plan, spark: str | None) -> Iterator[str]:
    """Yield notes about a continued checkpoint that do not concern single states."""
    wanted = plan.config.get(PARALLELISM)
    if wanted is not None and int(wanted) != record.partitions:
        yield (
            f"state goes from {record.partitions} partitions to {wanted}, the value of {PARALLELISM}: nothing is "
            f"rewritten, the first batch finds its rows in the existing files"
        )
    if record.spark is not None and spark is not None and record.spark != spark:
        yield f"Spark {record.spark} wrote the checkpoint, Spark {spark} would continue it"


def _state(state: StateVerdict, because: str, found: Continuation, clock: _Clock, paint: Paint) -> str:
    remarks = []
    if state.was is not None:
        remarks.append(f"was {state.was}")
    if state.kept:
        remarks.append(f"kept by {KEEP} before")
    if state.late:
        remarks.append(_FOR_LATE_ROWS)
    if state.outcome not in _ON:
        remarks.append(because)
    else:
        remarks += [f"it keeps the rows of the previous plan: {because}"] * (state.outcome == "is kept")
        settings = [change for change in found.changes if _is_setting_of(change, state.operator)]
        remarks += [_short(change, state.operator, clock) for change in settings]
    return _line(f"  {state.operator}", state.outcome, ", ".join(remark for remark in remarks if remark), paint)


def _of_query(verdict: QueryVerdict) -> str:
    """Return the reason for the verdict on a query, and the sinks that the plan before called by another id."""
    remarks = [verdict.because] if verdict.because else []
    for sink, was in verdict.writes:
        if was is not None:
            remarks.append(f"was {was}" if sink == verdict.title else f"{sink} was {was}")
    return ", ".join(remarks)


def _of_source(source: SourceVerdict) -> str:
    if source.outcome == "new":
        return f"{source.table} is read from the beginning"
    return f"{source.table} is no longer read, and would be read from the beginning"


def _because(state: StateVerdict, found: Continuation, told: dict[str, str]) -> str:
    """Return the reason for a state's verdict, unless its query's verdict already explains it.

    ``told`` maps each reason that was returned before to its operator, and gets this one.
    """
    text = cause_text(found.causes.get(state.operator, ()))
    first = told.setdefault(text, state.operator)
    return text if first == state.operator or not text else f"for the same change as {first}"


@frozen
class _Clock:
    """The ``start`` of a run, with times in ``zone``."""

    start: Start
    zone: str

    def when(self) -> str:
        """Return the time of the start; "now" if none was given."""
        return f"at {self.time(self.start.at)} {self.zone}" if self.start.given else "now"

    def time(self, moment: int, *, up: bool = False) -> str:
        """Return a time in minutes, rounded ``up`` or down, with its date unless that is the date of the start."""
        minute = (moment + (_MINUTE - 1) * up) // _MINUTE * _MINUTE
        local, start = (datetime.fromtimestamp(ms / 1000, ZoneInfo(self.zone)) for ms in (minute, self.start.at))
        same_day = local.date() == start.date() and not (self.start.given and moment == self.start.at)
        return f"{local:%H:%M}" if same_day else f"{local:%Y-%m-%d %H:%M}"


def _short(change: Change, operator: str, clock: _Clock) -> str:
    path = change.path.removeprefix(f"{operator}.")
    expiring = clock.start.expiring.get(change.path)
    if expiring is None:
        text = f"{path} {change_values(change)}, {change.effect.text.removeprefix('state kept, ')}"
    else:
        text = _counted(change, path, expiring, clock)
    cost = change.cost
    return text if cost is None or not cost.is_known else f"{text}; {cost.matches_text}"


def _counted(change: Change, path: str, expiring: Expiring, clock: _Clock) -> str:
    """Return the number of rows that a shorter TTL hides at the start, and the times at which the others expire."""
    size = f" (about {human_bytes(expiring.bytes)})" if expiring.bytes else ""
    text = f"{path} {change_values(change)}, older rows expire: {expiring.rows:,} of {count(expiring.of, 'row')}{size}"
    text += f" if the run starts {clock.when()}"
    if expiring.first is None or expiring.last is None:
        return text
    first, last = clock.time(expiring.first), clock.time(expiring.last, up=True)
    if first == clock.time(expiring.last):
        return f"{text}, {'the others' if expiring.rows else 'all'} at {first} {clock.zone}"
    return f"{text}, the {'next' if expiring.rows else 'first'} at {first} {clock.zone}, all by {last} {clock.zone}"


def _utc(moment: int | None) -> str | None:
    """Return a time for scripts, such as ``2026-11-20T10:32:02.898Z``."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_setting_of(change: Change, operator: str) -> bool:
    return change.operator == operator and change.subject == "setting" and change.effect.level != "none"


def _is_told_apart(change: Change, found: Continuation) -> bool:
    """Return True if the report lists ``change`` separately from the states.

    It lists settings and functions of operators without kept state, and the causes of a refusal.
    """
    if found.refused and is_cause(change):
        return True
    if change.effect.level == "none" or change.subject not in ("setting", "function"):
        return False
    reported = {state.operator for verdict in found.verdicts for state in verdict.states if state.outcome in _ON}
    return change.operator not in reported


def _line(name: str, outcome: str, because: str, paint: Paint) -> str:
    padded = f"{clean(outcome):<14}"
    line = f"{clean(name):<{_WIDTH}} {paint(padded, 'good' if outcome in _GOOD else 'bad')}"
    return f"{line} {clean(because)}".rstrip() if because else line.rstrip()


def _sum(found: Continuation) -> str:
    counted: Counter[str] = Counter(state.outcome for verdict in found.verdicts for state in verdict.states)
    verbs: Mapping[str, tuple[str, str]] = {
        "carries over": ("carries over", "carry over"),
        "is kept": ("is kept", "are kept"),
        "starts empty": ("starts empty", "start empty"),
        "left behind": ("is left behind", "are left behind"),
        "new": ("is new", "are new"),
        "cannot be read": ("cannot be read", "cannot be read"),
    }
    parts = [f"{counted[key]} {verb[counted[key] > 1]}" for key, verb in verbs.items() if counted[key]]
    total = sum(counted.values())
    noun = "operator with state" if total == 1 else "operators with state"
    return " · ".join([f"{total} {noun}", *parts])


def _advice(found: Continuation, plan: Plan, start: Start) -> Iterator[str]:
    expiring = start.expiring
    if found.refused:
        yield "a run is refused: use the plan that wrote the checkpoint, or a new checkpoint directory"
    elif found.loses:
        yield (
            f"a run is refused without {ALLOW_DROP}; the plan that wrote the checkpoint continues with all state; in "
            f"a new checkpoint directory, the run starts empty"
        )
        if found.keepable:
            options = " ".join(f"{KEEP} {name}" for name in found.keepable)
            yield f"with {options}: {kept_text(plan, found.keepable, start.kept)}"
    elif kept := [s.operator for verdict in found.verdicts for s in verdict.states if s.outcome == "is kept"]:
        yield f"a run continues with all state; kept by {KEEP}: {kept_text(plan, kept, start.kept)}"
    elif rows := sum(hidden.rows for hidden in expiring.values()):
        yield f"a run continues with all state but {count(rows, 'row')} that shorter TTLs hide and soon delete"
    elif any(change.effect is SHORTER_TTL and change.path not in expiring for change in found.changes):
        yield "a run continues with all state but rows that shorter TTLs hide: hintplan state --if counts them"
    elif expiring:
        yield f"a run that starts {'then' if start.given else 'now'} continues with all state"
    else:
        yield "a run continues with all state"
