"""The settings of a lookup join in their three groups, ``async``, ``retry`` and ``cache``, as data.

A setting has one name in plan, config, WITH and hints: Flink's name (FLIP-221, FLIP-234). The only exception is
``enabled``, which the LOOKUP hint calls ``async``. :mod:`hintplan.plans.settings.lookup_layers` decides which settings
are compatible.

>>> SETTINGS["async"]["capacity"].default
100
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.settings.effects import ATTEMPTS, IN_FLIGHT, RELOAD, restarts
from hintplan.plans.settings.effects import CACHE as EMPTY_CACHE
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.layers import Specs
from hintplan.plans.settings.setting import MAX_LONG, Setting

CACHE = "lookup.cache"
PARTIAL = "lookup.partial-cache."
FULL = "lookup.full-cache."

ASYNC = Group(
    name="async",
    schema="lookup-async",
    description="How lookups wait.",
    layers=("default", "config", "hint"),
    settings=specs(
        Setting(
            name="enabled",
            kind="bool",
            description="true: up to 'capacity' lookups run concurrently; false: one after the other.",
            effect=IN_FLIGHT,
            hint="async",
        ),
        Setting(
            name="output-mode",
            kind="choice",
            choices=("ordered", "allow_unordered"),
            default="ordered",
            description="ordered keeps the order of the input.",
            effect=restarts("rows of a batch may come out in another order", live="at once"),
            config="table.exec.async-lookup.output-mode",
            hint="output-mode",
        ),
        Setting(
            name="capacity",
            kind="int",
            minimum=1,
            maximum=100_000,
            default=100,
            description="The number of lookups in flight.",
            effect=IN_FLIGHT,
            config="table.exec.async-lookup.buffer-capacity",
            hint="capacity",
        ),
        Setting(
            name="timeout",
            kind="duration",
            default="5 min",
            description="The time limit for all attempts of a row together; 0 ms waits forever.",
            effect=IN_FLIGHT,
            config="table.exec.async-lookup.timeout",
            hint="timeout",
        ),
    ),
)

RETRY = Group(
    name="retry",
    schema="lookup-retry",
    description="The strategy for rows without a match.",
    layers=("default", "hint"),
    absent="null",
    settings=specs(
        Setting(
            name="retry-predicate",
            kind="choice",
            choices=("lookup_miss",),
            description="The condition for a retry.",
            effect=ATTEMPTS,
            hint="retry-predicate",
        ),
        Setting(
            name="retry-strategy",
            kind="choice",
            choices=("fixed_delay",),
            description="The strategy for the delay between attempts.",
            effect=ATTEMPTS,
            hint="retry-strategy",
        ),
        Setting(
            name="fixed-delay",
            kind="duration",
            description="The pause before each further attempt.",
            effect=ATTEMPTS,
            hint="fixed-delay",
        ),
        Setting(
            name="max-attempts",
            kind="int",
            minimum=1,
            maximum=10_000,
            description="The number of attempts after the first.",
            effect=ATTEMPTS,
            hint="max-attempts",
        ),
        Setting(
            name="mode",
            kind="choice",
            choices=("inline", "deferred"),
            description="The place in which a row waits: in the batch, or in state.",
            effect=ATTEMPTS,
        ),
    ),
)


def _partial(name: str, **more: object) -> Setting:
    return _cache(f"{PARTIAL}{name}", effect=EMPTY_CACHE, **more)


def _full(name: str, **more: object) -> Setting:
    return _cache(f"{FULL}{name}", effect=RELOAD, **more)


def _cache(name: str, **more: object) -> Setting:
    return Setting(name=name, config=name, option=name, **more)  # type: ignore[arg-type]


CACHING = Group(
    name="cache",
    schema="lookup-cache",
    description="The cache for fetched rows.",
    layers=("default", "config", "table", "hint"),
    required=(CACHE, "lookup.max-retries"),
    settings=specs(
        _cache(
            CACHE,
            kind="choice",
            choices=("NONE", "PARTIAL", "FULL"),
            default="NONE",
            description="The caching strategy.",
            effect=EMPTY_CACHE,
        ),
        _partial("max-rows", kind="int", maximum=MAX_LONG, description="The largest number of keys kept."),
        _partial(
            "expire-after-access", kind="duration", description="The time for which a key is kept after its last use."
        ),
        _partial(
            "expire-after-write", kind="duration", description="The time for which a key is kept after it was loaded."
        ),
        _partial(
            "cache-missing-key", kind="bool", default=True, description="true: keys without a match are cached, too."
        ),
        _partial("class", kind="class", description="A cache of your own, as package.module.Class."),
        _full(
            "reload-strategy",
            kind="choice",
            choices=("PERIODIC", "TIMED", "CUSTOM"),
            default="PERIODIC",
            description="The strategy for reloads of the whole table.",
        ),
        _full("periodic-reload.interval", kind="duration", minimum=1, description="The time between two loads."),
        _full(
            "periodic-reload.schedule-mode",
            kind="choice",
            choices=("FIXED_DELAY", "FIXED_RATE"),
            default="FIXED_DELAY",
            description="The start of the interval: the end, or the start, of a load.",
        ),
        _full("timed-reload.iso-time", kind="time", description="The time of day of the load, with or without zone."),
        _full(
            "timed-reload.interval-in-days", kind="int", minimum=1, default=1, description="The days between two loads."
        ),
        _full(
            "custom-reload.class", kind="class", description="A reload trigger of your own, as package.module.Class."
        ),
        _cache(
            "lookup.max-retries",
            kind="int",
            maximum=1_000,
            default=3,
            description="The number of retries of a failed lookup.",
            effect=restarts("it counts the attempts of failed calls", live="at once"),
        ),
    ),
)

LOOKUP_GROUPS = (ASYNC, RETRY, CACHING)
GROUPS = tuple(group.name for group in LOOKUP_GROUPS)

SETTINGS: Mapping[str, Specs] = {group.name: group.settings for group in LOOKUP_GROUPS}
"""The settings of each group by name, in the order in which a plan lists them."""
