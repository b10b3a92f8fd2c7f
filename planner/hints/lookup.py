"""LOOKUP and OPTIONS hints as written: their options, checked one by one and in their combination.

Owns every complaint about a name or value in ``/*+ LOOKUP('table'='rates', ...) */`` after SELECT (FLIP-234) and
``/*+ OPTIONS('lookup.cache'='PARTIAL', ...) */`` after a table. Which lookup a LOOKUP hint means is decided by
:mod:`hintplan.planner.query.hint_scope.lookup`. Unlike in Flink, an unknown option is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hintplan.planner.hints.options import HintOption, last_ones, read_arguments, value_of
from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.source import Report
from hintplan.plans.model.config import KEYS
from hintplan.plans.settings.lookup import GROUPS, SETTINGS
from hintplan.plans.settings.setting import Setting, Value
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
    """What one hint asks for, by group and setting; ``places`` are the offsets of the options by group and setting.

    ``table`` is None in an OPTIONS hint, which stands at its table. ``overridden`` are the offsets of options that are
    given again later in the hint, with where that is; ``idle`` are options that never have an effect, with the reason.
    """

    name: str
    table: str | None
    offset: int
    options: tuple[HintOption, ...]
    overridden: Mapping[int, int]
    idle: Mapping[int, str]
    settings: Mapping[str, Mapping[str, Value]]
    places: Mapping[tuple[str, str], int]


def read_lookup(tokens: HintTokens, offset: int, report: Report) -> LookupHint:
    """The LOOKUP hint whose name was just read; SqlError at what is unknown, wrong or missing."""
    source = tokens.source
    written = read_arguments(tokens, LOOKUP, _FORMS[LOOKUP], offset)
    options, overridden = last_ones(written, LOOKUP, report)
    known = (_TABLE, *_BY_OPTION)
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
            settings.setdefault(group, {})[spec.name] = value_of(report, LOOKUP, spec, option)
            places[group, spec.name] = option.offset
        elif option.key != _TABLE:
            advice = did_you_mean(option.key, known, what="known options")
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


def read_options(tokens: HintTokens, offset: int, report: Report) -> LookupHint:
    """The OPTIONS hint whose name was just read; only those of a lookup's cache are its ``settings``.

    Whether the table takes the others is decided by :mod:`hintplan.planner.query.sources.dynamic`.
    """
    source = tokens.source
    written = read_arguments(tokens, OPTIONS, _FORMS[OPTIONS], offset)
    options, overridden = last_ones(written, OPTIONS, report, SETTINGS["cache"].__contains__)
    specs = SETTINGS["cache"]
    values: dict[str, Value] = {}
    places: dict[tuple[str, str], int] = {}
    for option in options:
        if option.key in specs:
            values[option.key] = value_of(report, OPTIONS, specs[option.key], option)
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
