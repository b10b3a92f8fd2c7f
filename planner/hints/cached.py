"""The syntax of the hint ``CACHED``: ``/*+ CACHED */`` or ``/*+ CACHED('storage-level'='DISK_ONLY') */`` after SELECT.

:mod:`hintplan.planner.query.cached_results` finds the operator that it applies to. Unlike in Spark, an unknown option
is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.planner.hints.options import HintOption, last_ones, option_value, read_arguments
from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.source import Diagnostics
from hintplan.plans.settings.cached import CACHED as CACHED_GROUP
from hintplan.plans.settings.cached import ENABLED, STORAGE_LEVEL
from hintplan.plans.settings.setting import Value
from hintplan.plans.text.names import did_you_mean

CACHED = "CACHED"
_FORM = "write /*+ CACHED */, or /*+ CACHED('storage-level'='DISK_ONLY') */"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedHint:
    """The settings of the hint. ``options`` has all its options, and 'enabled' for the bare name.

    ``places`` has the offset of each setting. ``overridden`` maps an option's offset to the later option with the same
    key.
    """

    offset: int
    options: tuple[HintOption, ...]
    overridden: Mapping[int, int]
    settings: Mapping[str, Value]
    places: Mapping[str, int]


def read_cached_hint(tokens: HintTokens, offset: int, report: Diagnostics) -> CachedHint:
    """Read the CACHED hint after its name. Raise SqlError for an unknown or wrong option."""
    written: tuple[HintOption, ...] = ()
    if tokens.kind == "mark" and tokens.text == "(":
        written = read_arguments(tokens, CACHED, _FORM, offset)
    options, overridden = last_ones(written, CACHED, report)
    settings: dict[str, Value] = {ENABLED: True}
    places = {ENABLED: offset}
    for option in options:
        if option.key != STORAGE_LEVEL:
            advice = did_you_mean(option.key, (STORAGE_LEVEL,), what="known options")
            raise tokens.source.error(f"unknown {CACHED} option '{option.key}'", option.offset, advice)
        settings[option.key] = option_value(report, CACHED, CACHED_GROUP.settings[option.key], option)
        places[option.key] = option.offset
    name = HintOption(key=ENABLED, offset=offset, value="true", value_offset=offset)
    return CachedHint(offset=offset, options=(name, *written), overridden=overridden, settings=settings, places=places)
