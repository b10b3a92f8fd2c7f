"""The hint ``CACHED`` as written: ``/*+ CACHED */`` or ``/*+ CACHED('storage-level'='DISK_ONLY') */`` after SELECT.

Which operator it means is decided where the block is compiled, by :mod:`hintplan.planner.caching`. Unlike Spark's
hints, an unknown option is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.planner.hints.options import HintOption, last_ones, read_arguments, value_of
from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.source import Report
from hintplan.plans.settings.cached import CACHED as CACHED_GROUP
from hintplan.plans.settings.cached import ENABLED, STORAGE_LEVEL
from hintplan.plans.settings.setting import Value
from hintplan.plans.text.names import did_you_mean

CACHED = "CACHED"
_FORM = "write /*+ CACHED */, or /*+ CACHED('storage-level'='DISK_ONLY') */"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedHint:
    """What the hint asks for, by setting; ``options`` are all it says, the bare name as 'enabled'.

    ``places`` are the offsets of what said each setting, ``overridden`` those of options that are given again later.
    """

    offset: int
    options: tuple[HintOption, ...]
    overridden: Mapping[int, int]
    settings: Mapping[str, Value]
    places: Mapping[str, int]


def read_cached_hint(tokens: HintTokens, offset: int, report: Report) -> CachedHint:
    """The CACHED hint whose name was just read; SqlError at what is unknown or wrong."""
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
        settings[option.key] = value_of(report, CACHED, CACHED_GROUP.settings[option.key], option)
        places[option.key] = option.offset
    name = HintOption(key=ENABLED, offset=offset, value="true", value_offset=offset)
    return CachedHint(offset=offset, options=(name, *written), overridden=overridden, settings=settings, places=places)
