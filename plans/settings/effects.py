"""What a change of a plan does to a running job: one verdict per setting, with its reason.

    none < restart < ttl < rebuild < drop < incompatible

The verdicts are those of a run on an existing checkpoint: what ``hintplan run`` refuses to continue is ``incompatible``
here, what it continues only without some state, and only if told to, is ``drop``, and nothing else is. Every setting is
classified by name, so that a new one cannot go by unnoticed; a test compares the table with all settings that there
are. What facts do depends on what they lead to (:mod:`plans.compare.consequences`). Knows no plan and no layout.

>>> effect_of("state", "leftState").level
'ttl'
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "BEGUN",
    "CLASSIFIED",
    "FILES_ELSEWHERE",
    "FUNCTION",
    "INCOMPATIBLE",
    "LEFT_BEHIND",
    "LEVELS",
    "MEANING",
    "NO_EFFECT",
    "NO_NOTE",
    "PARKING",
    "UNAFFECTED",
    "UNKNOWN_KEY",
    "UNREADABLE",
    "Effect",
    "Level",
    "effect_of",
    "emptied",
    "in_batch",
    "worst",
]

Level = Literal["none", "restart", "ttl", "rebuild", "drop", "incompatible"]
LEVELS: tuple[Level, ...] = ("none", "restart", "ttl", "rebuild", "drop", "incompatible")
"""From the mildest to the gravest."""

MEANING: Mapping[Level, str] = {
    "none": "nothing changes in a running job",
    "restart": "applies when the job is started again; state is kept",
    "ttl": "state is kept, and the new TTL applies to it at once",
    "rebuild": "what one operator keeps besides the checkpoint is built anew",
    "drop": "some state is not used any more, and a run must be told to go on without it",
    "incompatible": "the plan cannot continue the checkpoint of the old one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """``text`` is the verdict in a few words, ``because`` the reason in a sentence.

    ``stateless`` says that there is no running state to keep or to lose.
    """

    level: Level
    text: str
    because: str
    stateless: bool = False


_AT_START = "state kept, applies at the next start"
_EMPTY_CACHE = "applies at the next start, with an empty cache"
_RECALLED = "settings are read when a job starts; "

NO_EFFECT = Effect(
    level="none", text="no effect", because="the value that runs is the same; only who else asked for what has changed"
)
NO_NOTE = Effect(level="none", text="no effect", because="a reason is a note for readers")
INCOMPATIBLE = Effect(
    level="incompatible",
    text="plan incompatible with running state",
    because="Spark finds sources and states by their number, so a query goes on with as many of them, in this order",
)
UNREADABLE = Effect(
    level="incompatible",
    text="running state cannot be read",
    because="its query cannot go on where it stopped; a run refuses the checkpoint",
)
PARKING = Effect(
    level="incompatible",
    text="running state cannot be read",
    because="a deferred retry parks rows in state and an inline one keeps none; a run refuses the checkpoint",
)

UNAFFECTED = Effect(
    level="restart",
    text="state kept, applies at the next start",
    because="no state was computed by what has changed; rows that were written stay as they are",
)
BEGUN = Effect(
    level="restart",
    text="begins with the next start",
    because="its query has not run yet, keeps no state, and reads its sources from the beginning",
)
LEFT_BEHIND = Effect(
    level="drop",
    text="state left behind",
    because="its query stays in the checkpoint as it is, and goes on when its sink is back in the plan; "
    "a run leaves it only with --allow-state-drop",
)


def emptied(operators: Collection[str]) -> Effect:
    """The verdict on a change by which the states of ``operators`` are not those that the plan would have computed."""
    return Effect(
        level="drop",
        text=f"state of {' and '.join(sorted(operators))} starts empty",
        because="it was computed by another query; a run goes on without it only with --allow-state-drop",
    )


_TTL = Effect(
    level="ttl",
    text="state kept, applies at once",
    because="each row of state keeps the time of its last write, so the new TTL holds for rows that are there",
)


def _restart(because: str) -> Effect:
    return Effect(level="restart", text=_AT_START, because=_RECALLED + because)


def _rebuild(because: str) -> Effect:
    return Effect(level="rebuild", text=_EMPTY_CACHE, because=because)


def in_batch(effect: Effect) -> Effect:
    """What a change with ``effect`` on a stream does to a batch job, which starts from nothing every time."""
    if effect.text == NO_EFFECT.text or effect is _KEPT:
        return replace(effect, stateless=True)
    if effect.level == "incompatible":
        text, because = "another result, from the next job on", "a batch job computes its whole result every time"
    else:
        text, because = "applies to the next job", _RECALLED + "a batch job keeps no state"
    return Effect(level="restart", text=text, because=because, stateless=True)


FUNCTION = Effect(
    level="restart",
    text=_AT_START,
    because="the next run calls the function as it is then; state keeps what it returned",
)
_KEPT = Effect(
    level="rebuild",
    text="same result, applies to the next job",
    because="a cached result is computed anew by the next job that reads it, or by each if it is cached no more",
)
_CACHE = _rebuild("the cache of a lookup lives in the workers, and starts empty under its new settings")
_RELOAD = _rebuild("a full cache is loaded when the job starts, and from then on by the new schedule")
_IN_FLIGHT = _restart("calls in flight are made again by the next run")
_ATTEMPTS = _restart("rows that wait for another attempt wait by the new rule")
_FOLLOWED = "operators that follow it are listed with what becomes of each"

CLASSIFIED: Mapping[tuple[str, str], Effect] = {
    ("name", "name"): _restart("the name is what Spark and reports call the job"),
    ("config", "table.exec.state.ttl"): replace(
        _TTL, because="it is the TTL of states for which no hint or edit says otherwise; those are listed"
    ),
    ("config", "parallelism.default"): Effect(
        level="none",
        text="state kept, a checkpoint keeps its partitions",
        because="state is routed by the number of partitions; only a new checkpoint takes another number",
    ),
    ("config", "table.optimizer.agg-phase-strategy"): _restart(_FOLLOWED),
    ("config", "table.local-time-zone"): _restart("expressions on times may give other results from then on"),
    ("config", "table.exec.async-lookup.buffer-capacity"): _restart(_FOLLOWED),
    ("config", "table.exec.async-lookup.output-mode"): _restart(_FOLLOWED),
    ("config", "table.exec.async-lookup.timeout"): _restart(_FOLLOWED),
    ("config", "table.exec.cached-results.enabled"): _KEPT,
    ("config", "table.exec.cached-results.storage-level"): _KEPT,
    ("config", "table.exec.async-table.buffer-capacity"): _restart(_FOLLOWED),
    ("config", "table.exec.async-table.timeout"): _restart(_FOLLOWED),
    ("config", "table.exec.async-table.retry-strategy"): _restart(_FOLLOWED),
    ("config", "table.exec.async-table.fixed-delay"): _restart(_FOLLOWED),
    ("config", "table.exec.async-table.max-attempts"): _restart(_FOLLOWED),
    ("config", "table.exec.async-scalar.buffer-capacity"): _restart(_FOLLOWED),
    ("config", "table.exec.async-scalar.timeout"): _restart(_FOLLOWED),
    ("config", "table.exec.async-scalar.retry-strategy"): _restart(_FOLLOWED),
    ("config", "table.exec.async-scalar.fixed-delay"): _restart(_FOLLOWED),
    ("config", "table.exec.async-scalar.max-attempts"): _restart(_FOLLOWED),
    ("state", "ttl"): _TTL,
    ("phases", "agg-phase-strategy"): _restart("one phase and two keep the same state, each reads the other's"),
    ("cached", "enabled"): _KEPT,
    ("cached", "storage-level"): _KEPT,
    ("async", "enabled"): _IN_FLIGHT,
    ("async", "output-mode"): _restart("rows of a batch may come out in another order"),
    ("async", "capacity"): _IN_FLIGHT,
    ("async", "buffer-capacity"): _IN_FLIGHT,
    ("async", "timeout"): _IN_FLIGHT,
    ("retry", "retry-predicate"): _ATTEMPTS,
    ("retry", "retry-strategy"): _ATTEMPTS,
    ("retry", "fixed-delay"): _ATTEMPTS,
    ("retry", "max-attempts"): _ATTEMPTS,
    ("retry", "mode"): _ATTEMPTS,
    ("cache", "lookup.cache"): _CACHE,
    ("cache", "lookup.partial-cache.max-rows"): _CACHE,
    ("cache", "lookup.partial-cache.expire-after-access"): _CACHE,
    ("cache", "lookup.partial-cache.expire-after-write"): _CACHE,
    ("cache", "lookup.partial-cache.cache-missing-key"): _CACHE,
    ("cache", "lookup.partial-cache.class"): _CACHE,
    ("cache", "lookup.full-cache.reload-strategy"): _RELOAD,
    ("cache", "lookup.full-cache.periodic-reload.interval"): _RELOAD,
    ("cache", "lookup.full-cache.periodic-reload.schedule-mode"): _RELOAD,
    ("cache", "lookup.full-cache.timed-reload.iso-time"): _RELOAD,
    ("cache", "lookup.full-cache.timed-reload.interval-in-days"): _RELOAD,
    ("cache", "lookup.full-cache.custom-reload.class"): _RELOAD,
    ("cache", "lookup.max-retries"): _restart("it counts the attempts of failed calls"),
}
"""The verdict on a change of each setting, by group and name; states by ``ttl``. Options of tables are not listed."""

UNKNOWN_KEY = Effect(
    level="incompatible", text="not a configuration key", because="a run refuses keys that it does not know"
)

FILES_ELSEWHERE = Effect(
    level="incompatible",
    text="needs a new checkpoint",
    because="Spark notes the files of each batch beside them, and must find all batches of a job in one directory",
)
_OPTION = _restart("a connector reads its options then; what was read and written stays")


def effect_of(group: str, name: str) -> Effect:
    """The verdict on another value of a setting; KeyError for one that is not classified."""
    if group == "state":
        return CLASSIFIED["state", "ttl"]
    if group == "options":
        return CLASSIFIED.get(("cache", name), _OPTION)
    if group == "config" and name.startswith("lookup."):
        return CLASSIFIED["cache", name]
    return CLASSIFIED[group, name]


def worst(levels: tuple[Level, ...]) -> Level:
    """The gravest of ``levels``; none if there are none."""
    return max(levels, key=LEVELS.index, default="none")
