"""The effect of a change on a running job: one verdict per setting, with its reason.

    none < restart < ttl < rebuild < expire < drop < incompatible

The verdicts apply to a run on an existing checkpoint. A change is ``incompatible`` if and only if ``hintplan run``
refuses to continue. It is ``drop`` if and only if the run continues without some state, and only with consent. Every
setting declares its own verdict (:class:`hintplan.plans.settings.setting.Setting`). The effect of a fact depends on the
operators above it (:mod:`hintplan.plans.compare.consequences`). Knows no plan and no layout.

>>> TTL.level
'ttl'
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import joined_with_and

Live = Literal["at start", "next batch", "at once"]
"""The moment from which a run that watches its plan uses a change; see :class:`Effect`."""

Level = Literal["none", "restart", "ttl", "rebuild", "expire", "drop", "incompatible"]
LEVELS: tuple[Level, ...] = ("none", "restart", "ttl", "rebuild", "expire", "drop", "incompatible")
"""All levels, from the mildest to the gravest."""

MEANING: Mapping[Level, str] = {
    "none": "nothing changes in a running job",
    "restart": "applies when the job is started again; state is kept",
    "ttl": "state is kept, and the new TTL holds from the next start, also for rows already kept",
    "rebuild": "data that an operator keeps outside of the checkpoint is rebuilt",
    "expire": "a shorter TTL hides older rows of state from the next start, and deletes them soon after",
    "drop": "some state is no longer used, and a run needs a flag to continue without it",
    "incompatible": "the plan cannot continue the checkpoint of the old one",
}


@frozen
class Effect:
    """A verdict: ``text`` in a few words, and ``because``, the reason in a sentence.

    ``stateless`` is true if there is no running state to keep or to lose. ``emptied`` are the operators whose state
    starts empty, of ``states`` in the newer plan; ``may_be_kept`` is true if all of these may be kept by consent.
    ``{value}`` in the text stands for the new value. Such a text, and a text that is true for longer values only, has
    ``for_any``, which is true for all values.

    ``live`` is the moment from which a run that watches its plan uses the change. ``at start`` means that the change
    needs a new start. ``next batch`` means that a batch which has begun, and is repeated after a failure, uses the
    earlier value: the setting decides what the batch computes. ``at once`` means that a repeated batch uses the new
    value, too.
    """

    level: Level
    text: str
    because: str
    stateless: bool = False
    emptied: frozenset[str] = frozenset()
    states: int = 0
    may_be_kept: bool = False
    for_any: str = ""
    live: Live = "at start"


_AT_START = "state kept, applies at the next start"
_EMPTY_CACHE = "applies at the next start, with an empty cache"
_RECALLED = "settings are read when a job starts; "

NO_EFFECT = Effect(
    level="none",
    text="no effect",
    because="the value in force is the same; only the values of other layers have changed",
    live="at once",
)
SCRIPT = Effect(
    level="none",
    text="no effect",
    because="it only names the script that ci, rebase and readers compare the plan with",
    live="at once",
)
NO_NOTE = Effect(level="none", text="no effect", because="a reason is a note for readers", live="at once")
INCOMPATIBLE = Effect(
    level="incompatible",
    text="plan incompatible with running state",
    because="its query cannot continue where it stopped; a run refuses the checkpoint",
)
UNREADABLE = Effect(
    level="incompatible",
    text="running state cannot be read",
    because="its query cannot continue where it stopped; a run refuses the checkpoint",
)
PARKS = Effect(
    level="restart",
    text=_AT_START,
    because="a deferred retry keeps the rows that wait, and nothing waits yet",
)
PARKS_NO_MORE = Effect(
    level="drop",
    text="rows that wait are left behind",
    because="only a deferred retry keeps rows that wait; a run leaves them only with --allow-state-drop",
)

UNAFFECTED = Effect(
    level="restart",
    text="state kept, applies at the next start",
    because="no state depends on the change; rows that were written stay unchanged",
)
BEGUN = Effect(
    level="restart",
    text="begins with the next start",
    because="its query has not run yet, keeps no state, and reads its sources from the beginning",
)
LEFT_BEHIND = Effect(
    level="drop",
    text="state left behind",
    because="its query stays in the checkpoint, and continues when its sink is back in the plan; "
    "a run leaves it only with --allow-state-drop",
)
DROPPED = Effect(
    level="drop",
    text="left behind",
    because="its query continues without it; if it comes back, it is read from the beginning; a run leaves it only "
    "with --allow-state-drop",
)


def emptied(operators: Collection[str], keepable: Collection[str], states: int) -> Effect:
    """Return the verdict on a change after which the plan would have computed other states of ``operators``.

    A user may keep the existing rows of states in ``keepable``. ``states`` is the number of states of the plan.
    """
    may_be_kept = set(operators) <= set(keepable)
    several = len(operators) > 1
    kept = " ".join(f"--keep-state {name}" for name in sorted(operators))
    return Effect(
        level="drop",
        text=f"the {'states' if several else 'state'} of {joined_with_and(sorted(operators))} "
        f"{'start' if several else 'starts'} empty"
        + (f", unless {'they are' if several else 'it is'} kept" if may_be_kept else ""),
        because="it was computed by another query; a run continues without it only with --allow-state-drop"
        + (f", or keeps its rows with {kept}" if may_be_kept else ""),
        emptied=frozenset(operators),
        states=states,
        may_be_kept=may_be_kept,
    )


def abandoned(operators: Collection[str]) -> Effect:
    """Return the verdict on a change that leaves the states of ``operators`` behind although their query continues."""
    return Effect(
        level="drop",
        text=f"the {'states' if len(operators) > 1 else 'state'} of {joined_with_and(sorted(operators))} "
        f"{'are' if len(operators) > 1 else 'is'} left behind",
        because="no operator of the plan continues with it; a run continues without it only with --allow-state-drop",
    )


TTL = Effect(
    level="ttl",
    text="from the next start, for existing rows too",
    because="each row of state keeps the time of its last write, so the new TTL applies to existing rows",
    for_any="a longer TTL holds from the next start, also for rows that are kept. A shorter one hides older rows from "
    "the next start, and soon deletes them.",
    live="next batch",
)
SHORTER_TTL = Effect(
    level="expire",
    text="older rows expire, from the next start",
    because="rows of state that were last written longer ago than the new TTL are hidden from the first micro-batch "
    "on, and deleted about a quarter of the TTL later; hintplan check counts them",
    live="next batch",
)


def restarts(because: str, *, text: str = _AT_START, for_any: str = "", live: Live = "at start") -> Effect:
    """Return the verdict on a setting that is read when a job starts, or ``live`` by a run that watches its plan."""
    return Effect(level="restart", text=text, because=_RECALLED + because, for_any=for_any, live=live)


def _rebuild(because: str) -> Effect:
    return Effect(level="rebuild", text=_EMPTY_CACHE, because=because, live="at once")


def in_batch(effect: Effect) -> Effect:
    """Return the effect on a batch job, which starts from nothing, of a change with ``effect`` on a stream."""
    if effect.text == NO_EFFECT.text or effect is KEPT:
        return replace(effect, stateless=True)
    if effect.level == "incompatible":
        text, because = "another result, from the next job on", "a batch job computes its whole result every time"
    else:
        text, because = "applies to the next job", _RECALLED + "a batch job keeps no state"
    return Effect(level="restart", text=text, because=because, stateless=True)


FUNCTION = Effect(
    level="restart",
    text=_AT_START,
    because="the next run calls the current version of the function; state keeps its earlier results",
)
KEPT = Effect(
    level="rebuild",
    text="same result, applies to the next job",
    because="a cached result is recomputed by the next job that reads it, or by each job if it is no longer cached",
)
CACHE = _rebuild("the cache of a lookup lives in the workers, and starts empty under its new settings")
RELOAD = _rebuild("a full cache is loaded when the job starts, and from then on by the new schedule")
IN_FLIGHT = restarts("calls in flight are made again by the next run", live="at once")
ATTEMPTS = restarts("rows that wait for another attempt wait by the new rule", live="at once")
FOLLOWED = restarts("the affected operators are listed, each with the effect on it", live="at once")

UNKNOWN_KEY = Effect(level="incompatible", text="not a configuration key", because="a run refuses unknown keys")

FILES_ELSEWHERE = Effect(
    level="incompatible",
    text="needs a new checkpoint",
    because="Spark records the files of each batch next to them, and must find all batches of a job in one directory",
)
OPTION = restarts("a connector reads its options at the start; rows that were read or written stay")


def worst(levels: tuple[Level, ...]) -> Level:
    """Return the gravest of ``levels``, or ``none`` if there are none."""
    return max(levels, key=LEVELS.index, default="none")
