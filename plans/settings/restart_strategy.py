"""The restart strategy of a failed run, as a script sets it: the keys ``restart-strategy.*`` of Flink 2.3.

Without a strategy, a run is not restarted. Omitted keys of a strategy have Flink's defaults. A plan holds the keys in
its config; the options of ``hintplan run`` override them.

>>> strategy_type("FixedDelay"), backoff_multiplier("2")
('fixed-delay', '2.0')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.settings.effects import restarts
from hintplan.plans.settings.setting import Setting

TYPE = "restart-strategy.type"
FIXED, RATE, EXPONENTIAL = "fixed-delay", "failure-rate", "exponential-delay"
SYNONYMS: Mapping[str, str] = {"restart-strategy": TYPE}

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "none": ("none", "off", "disable"),
    FIXED: (FIXED, "fixeddelay"),
    RATE: (RATE, "failurerate"),
    EXPONENTIAL: (EXPONENTIAL, "exponentialdelay"),
}
_EFFECT = restarts("a run reads it when it starts")


def strategy_type(text: str) -> str:
    """Return the canonical name of a strategy; raise ValueError for an unknown name."""
    for name, spellings in _SPELLINGS.items():
        if text.strip().lower() in spellings:
            return name
    raise ValueError(f"expected {', '.join(list(_SPELLINGS)[:-1])} or {EXPONENTIAL}, found '{text}'")


def backoff_multiplier(text: str) -> str:
    """Return the factor by which a pause grows; raise ValueError unless it is a number of at least 1."""
    return _number(text, lambda number: number >= 1, "a number of at least 1")


def _fraction(text: str) -> str:
    return _number(text, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def _number(text: str, fits: Callable[[float], bool], expected: str) -> str:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and fits(number)):
        raise ValueError(f"expected {expected}, found '{text}'")
    return str(number)


def _some_time(text: str) -> str:
    milliseconds = parse_duration(text)
    if not milliseconds:
        raise ValueError(f"expected more than zero, found '{text}'")
    return format_duration(milliseconds)


def _setting(strategy: str, name: str, kind: str, default: str | int, description: str, **more: object) -> Setting:
    key = f"restart-strategy.{strategy}.{name}"
    facts = {"kind": kind, "default": default, "description": f"With {strategy}: {description}", **more}
    return Setting(name=key, config=key, effect=_EFFECT, **facts)  # type: ignore[arg-type]


def _any_time(text: str) -> str:
    return format_duration(parse_duration(text))


RESTART_SETTINGS: tuple[Setting, ...] = (
    Setting(
        name=TYPE,
        config=TYPE,
        kind="text",
        description="The strategy for restarts of a run with a checkpoint after temporary failures: none, fixed-delay, "
        "failure-rate or exponential-delay.",
        check=strategy_type,
        effect=_EFFECT,
        examples=tuple(_SPELLINGS),
    ),
    _setting(FIXED, "attempts", "int", 1, "how often in all.", minimum=1),
    _setting(FIXED, "delay", "duration", "1 s", "the pause before each start.", check=_any_time),
    _setting(RATE, "max-failures-per-interval", "int", 1, "how many failures are taken in the interval.", minimum=1),
    _setting(RATE, "failure-rate-interval", "duration", "1 min", "the interval.", check=_some_time),
    _setting(RATE, "delay", "duration", "1 s", "the pause before each start.", check=_any_time),
    _setting(EXPONENTIAL, "initial-backoff", "duration", "1 s", "the first pause.", check=_some_time),
    _setting(EXPONENTIAL, "max-backoff", "duration", "1 min", "the longest pause.", check=_some_time),
    _setting(
        EXPONENTIAL, "backoff-multiplier", "text", "1.5", "how much longer each pause is.", check=backoff_multiplier
    ),
    _setting(EXPONENTIAL, "jitter-factor", "text", "0.1", "up to which part of it a pause differs.", check=_fraction),
    _setting(
        EXPONENTIAL,
        "reset-backoff-threshold",
        "duration",
        "1 h",
        "the time without a failure after which delays and attempts are reset.",
        check=_some_time,
    ),
    _setting(EXPONENTIAL, "attempts-before-reset-backoff", "int", 2**31 - 1, "how often in a row.", minimum=1),
)


def restart_strategy(config: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Return the strategy in a plan's ``config``, and its values by the last part of their keys, including defaults."""
    strategy = config.get(TYPE, "none")
    start = f"restart-strategy.{strategy}."
    own = (setting for setting in RESTART_SETTINGS if setting.name.startswith(start))
    return strategy, {key.name.removeprefix(start): config.get(key.name, str(key.default)) for key in own}
