"""The groups of settings that operators of a plan carry: what runs, and what each layer asked for.

All of it is free to edit. Durations are text in canonical spelling (:mod:`plans.declarations.durations`). Knows no
operators.

>>> StateEntry(index=0, name="leftState", input="o", ttl="3 d", origin={"hint": "1 d"}).ttl
'3 d'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AsyncSettings",
    "CacheSettings",
    "CachedSettings",
    "CallRetry",
    "CallSettings",
    "Layers",
    "OutputMode",
    "PhaseSettings",
    "PhaseStrategy",
    "RetryMode",
    "RetrySettings",
    "StateEntry",
    "Value",
]

OutputMode = Literal["ordered", "allow_unordered"]
RetryMode = Literal["inline", "deferred"]
PhaseStrategy = Literal["AUTO", "ONE_PHASE", "TWO_PHASE"]
Value = str | int | bool
Layers = Mapping[str, Mapping[str, Value]]
"""What each layer (default, config, table, hint) said of a group of settings: values by the name of the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """One state of a stateful operator (FLIP-292): ``ttl`` runs, ``origin`` says what each layer asked for.

    ``ttl`` and the values of ``origin`` are durations in canonical spelling (``3 d``; ``0 ms`` never expires).
    ``origin`` has the keys ``default``, ``config`` and ``hint``, as far as that layer spoke; a ``ttl`` that differs
    from the topmost of them is a plan edit. ``input`` names the input as the query does.
    """

    index: int
    name: str
    input: str
    ttl: str
    origin: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSettings:
    """Whether the output of an operator is kept for later readers, and at which of Spark's storage levels (FLIP-205).

    Batch only. It is created with the first job that computes it, and dropped with the session at the latest.
    """

    enabled: bool
    storage_level: str
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSettings:
    """Whether a lookup waits for one row after the other, or for up to ``capacity`` at once (FLIP-234).

    ``timeout`` is a duration that covers all attempts of a row; ``0 ms`` waits forever.
    """

    enabled: bool
    output_mode: OutputMode
    capacity: int
    timeout: str
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """How a row that found nothing is looked up again: up to ``max_attempts`` more times, ``fixed_delay`` apart.

    ``mode`` says where it waits: ``inline`` holds up the rows behind it, ``deferred`` parks it in state.
    """

    predicate: Literal["lookup_miss"]
    strategy: Literal["fixed_delay"]
    fixed_delay: str
    max_attempts: int
    mode: RetryMode
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """The ``lookup.*`` options that run (FLIP-221), by name: those of the chosen ``lookup.cache``, and no others."""

    values: Mapping[str, Value]
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How many calls of an asynchronous function may wait at once, and how long each may take (FLIP-498).

    ``timeout`` is a duration that covers all attempts of a call; ``0 ms`` waits forever.
    """

    buffer_capacity: int
    timeout: str
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetry:
    """How a call that failed is made again: up to ``max_attempts`` more times, ``fixed_delay`` apart.

    With the strategy ``no_retry`` it is not, and the other settings have no effect.
    """

    strategy: Literal["fixed_delay", "no_retry"]
    fixed_delay: str
    max_attempts: int
    origin: Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSettings:
    """Whether an aggregate sums the rows of a micro-batch up per key before they are shuffled.

    ``TWO_PHASE`` does where it can, ``ONE_PHASE`` does not, ``AUTO`` does where it makes rows fewer. Streaming only.
    """

    strategy: PhaseStrategy
    origin: Layers
