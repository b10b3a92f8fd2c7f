"""In how many phases an aggregate runs, and who said so: Flink's ``table.optimizer.agg-phase-strategy``, per operator.

In two phases the rows of a micro-batch are summed up per key where they are, and only the sums go over the network to
the operator's state; in one phase the rows go. The result and the stored state are the same, so the setting is free to
edit. An aggregate that must see every row runs in one phase whatever is set. Layers: default < config < plan edit; a
plan records the group ``phases`` only where one of the latter two spoke. Streaming plans only: Spark decides for a
batch job. Edits and checks are in :mod:`plans.edit.phases_edit`.

>>> settings_for({CONFIG_KEY: "TWO_PHASE"}).values
{'agg-phase-strategy': 'TWO_PHASE'}
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from plans.analysis.changelog import ORDERED
from plans.operators import Aggregate
from plans.settings.groups import PhaseSettings, PhaseStrategy, Value
from plans.settings.layers import EDIT, Settings, Specs, edits_of, layered, read_group
from plans.settings.text import marked
from plans.settings.values import SettingError, SettingSpec, parse_value

__all__ = [
    "CONFIG_KEY",
    "PHASES",
    "SPECS",
    "STRATEGY",
    "one_phase_because",
    "phase_groups",
    "phase_words",
    "read_phases",
    "settings_for",
    "strategy_of",
    "with_phase_groups",
]

PHASES = "phases"
STRATEGY = "agg-phase-strategy"
CONFIG_KEY = "table.optimizer.agg-phase-strategy"
AUTO, ONE_PHASE, TWO_PHASE = "AUTO", "ONE_PHASE", "TWO_PHASE"

SPECS: Specs = {
    STRATEGY: SettingSpec(
        name=STRATEGY, kind="choice", choices=(AUTO, ONE_PHASE, TWO_PHASE), default=AUTO, config=CONFIG_KEY
    )
}


def settings_for(config: Mapping[str, str], edits: Mapping[str, Value] | None = None) -> Settings:
    """What default, config and ``edits`` amount to; a wrong value in config says nothing."""
    said: dict[str, Mapping[str, Value]] = {EDIT: edits or {}}
    if CONFIG_KEY in config:
        with suppress(SettingError):  # reported with the config
            said["config"] = {STRATEGY: parse_value(SPECS[STRATEGY], config[CONFIG_KEY])}
    return layered(SPECS, said)


def strategy_of(operator: Aggregate) -> PhaseStrategy:
    """The strategy that runs."""
    return "AUTO" if operator.phases is None else operator.phases.strategy


def phase_groups(operator: Aggregate) -> dict[str, Settings]:
    """The group of settings, if a layer or an edit spoke."""
    if (phases := operator.phases) is None:
        return {}
    return {PHASES: Settings(specs=SPECS, values={STRATEGY: phases.strategy}, origin=phases.origin)}


def with_phase_groups(operator: Aggregate, groups: Mapping[str, Settings]) -> Aggregate:
    """The operator with this group instead of its own; one in which nobody but the default speaks is left out."""
    settings = groups.get(PHASES)
    if settings is None or not (settings.origin.get("config") or edits_of(settings)):
        return replace(operator, phases=None)
    return replace(operator, phases=_typed(settings))


def read_phases(document: Mapping[str, Any] | None) -> PhaseSettings | None:
    """The settings from well-formed JSON values; None if there are none."""
    return None if document is None else _typed(read_group(SPECS, document))


def _typed(settings: Settings) -> PhaseSettings:
    values: Mapping[str, Any] = settings.values
    return PhaseSettings(strategy=values[STRATEGY], origin=settings.origin)


def one_phase_because(operator: Aggregate, *, insert_only: bool, by_arrival: bool = False) -> str | None:
    """Why the aggregate runs in one phase whatever is set; None if it can run in two.

    ``insert_only`` says whether its input carries no row kinds, ``by_arrival`` whether its rows are put in the order of
    their arrival first (:mod:`plans.analysis.row_order`), which sums do not have. Values that must be remembered one by
    one (DISTINCT, and MIN, MAX and what goes by the order of rows, where they may be retracted) are not summed up
    beforehand.
    """
    for call in operator.aggregates:
        extreme = call.function in ("MIN", "MAX")
        if call.distinct and not extreme:
            return f"{call.function} DISTINCT keeps every value"
        if (extreme or call.function in ORDERED) and not insert_only:
            return f"{call.function} of a changing input keeps every value"
    return "changes of a source stay in their order" if by_arrival else None


def phase_words(settings: Settings, because: str | None) -> str:
    """The strategy, who set it, and why the operator cannot follow it if there is a reason."""
    text = marked(settings, STRATEGY, str(settings.values[STRATEGY]))
    if because is not None and settings.values[STRATEGY] != ONE_PHASE:
        text += f" · runs in one phase: {because}"
    return text
