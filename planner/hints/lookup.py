"""Parses LOOKUP and OPTIONS hints, and checks their options one by one and in combination.

This module reports all errors in names and values of ``/*+ LOOKUP('table'='rates', ...) */`` after SELECT (FLIP-234)
and of ``/*+ OPTIONS('lookup.cache'='PARTIAL', ...) */`` after a table. :mod:`hintplan.planner.query.hint_scope`
finds the lookup that a LOOKUP hint applies to. Unlike in Flink, an unknown option is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.planner.hints.options import HintOption, last_ones, option_value, read_arguments
from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.source import Diagnostics
from hintplan.plans.model.config import KEYS
from hintplan.plans.settings.lookup import GROUPS, SETTINGS
from hintplan.plans.settings.setting import Setting, Value
from hintplan.plans.settings.watermark import WATERMARK
from hintplan.plans.text.names import did_you_mean

LOOKUP = "LOOKUP"
OPTIONS = "OPTIONS"
_TABLE, _SHUFFLE = "table", "shuffle"
_FORMS = {
    LOOKUP: "write /*+ LOOKUP('table'='<table or alias>', 'async'='true', ...) */",
    OPTIONS: "write <table> /*+ OPTIONS('key'='value', ...) */",
}
_BY_OPTION: Mapping[str, tuple[str, Setting]] = {
    spec.hint: (group, spec) for group in GROUPS for spec in SETTINGS[group].values() if spec.hint is not None
}
_RETRY = tuple(spec.hint for spec in SETTINGS["retry"].values() if spec.hint is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupHint:
    """The settings of one hint, by group and setting. ``places`` has the offsets of the options by group and setting.

    - ``table`` is None in an OPTIONS hint, which follows its table.
    - ``overridden`` maps the offset of an option to the offset of a later option with the same key.
    - ``idle`` has the offsets of options that never have an effect, with the reason.
    """

    name: str
    table: str | None
    offset: int
    options: tuple[HintOption, ...]
    overridden: Mapping[int, int]
    idle: Mapping[int, str]
    settings: Mapping[str, Mapping[str, Value]]
    places: Mapping[tuple[str, str], int]


def read_lookup(tokens: HintTokens, offset: int, report: Diagnostics) -> LookupHint:
    """Read the LOOKUP hint after its name. Raise SqlError for an unknown, wrong or missing option."""
    source = tokens.source
    written = read_arguments(tokens, LOOKUP, _FORMS[LOOKUP], offset)
    options, overridden = last_ones(written, LOOKUP, report)
    names = (_TABLE, *_BY_OPTION)
    settings: dict[str, dict[str, Value]] = {}
    places: dict[tuple[str, str], int] = {}
    idle: dict[int, str] = {}
    for option in options:
        if option.key == _SHUFFLE:
            idle[option.offset] = "rows are looked up where they are"
            message = f"LOOKUP option 'shuffle' has no effect: {idle[option.offset]}"
            report.warn_of_hint(message, option.offset, "remove it")
        elif option.key in _BY_OPTION:
            group, spec = _BY_OPTION[option.key]
            settings.setdefault(group, {})[spec.name] = option_value(report, LOOKUP, spec, option)
            places[group, spec.name] = option.offset
        elif option.key != _TABLE:
            advice = did_you_mean(option.key, names, what="known options")
            raise source.error(f"unknown LOOKUP option '{option.key}'", option.offset, advice)
    table = next((o for o in options if o.key == _TABLE), None)
    if table is None:
        raise source.error("LOOKUP needs the option 'table'", offset, _FORMS[LOOKUP])
    if not table.value.strip():
        raise source.error("LOOKUP option 'table' is empty", table.value_offset, "name the table or its alias")
    missing = [name for name in _RETRY if not any(o.key == name for o in options)]
    if missing and len(missing) < len(_RETRY):
        listed = ", ".join(f"'{name}'" for name in missing)
        first = next(o for o in options if o.key in _RETRY)
        raise source.error(f"LOOKUP sets some retry options, but not {listed}", first.offset, "set all four, or none")
    return LookupHint(
        name=LOOKUP,
        table=table.value,
        offset=offset,
        options=written,
        overridden=overridden,
        idle=idle,
        settings=settings,
        places=places,
    )


def read_options_hint(tokens: HintTokens, offset: int, report: Diagnostics) -> LookupHint:
    """Read the OPTIONS hint after its name. Only the options of a lookup's cache become its ``settings``.

    :mod:`hintplan.planner.query.sources.scans` checks the other options against the table.
    """
    source = tokens.source
    written = read_arguments(tokens, OPTIONS, _FORMS[OPTIONS], offset)
    options, overridden = last_ones(written, OPTIONS, report, SETTINGS["cache"].__contains__)
    specs = SETTINGS["cache"]
    values: dict[str, Value] = {}
    places: dict[tuple[str, str], int] = {}
    for option in options:
        if option.key in specs:
            values[option.key] = option_value(report, OPTIONS, specs[option.key], option)
            places["cache", option.key] = option.offset
        elif option.key in KEYS:
            raise source.error(f"'{option.key}' belongs to the job", option.offset, f"write SET '{option.key}' = '...'")
    return LookupHint(
        name=OPTIONS,
        table=None,
        offset=offset,
        options=written,
        overridden=overridden,
        idle={},
        settings={"cache": values},
        places=places,
    )


def watermark_options(hint: LookupHint) -> Mapping[str, HintOption]:
    """Return the options of an OPTIONS hint that are settings of the table's watermark, by setting."""
    heeded = {option.key: option for option in hint.options if option.offset not in hint.overridden}
    names = {setting.option: name for name, setting in WATERMARK.settings.items()}
    return {names[key]: option for key, option in heeded.items() if key in names}
