"""The options of a hint, ``('key'='value', ...)``: their grammar, and the precedence of equal keys.

:mod:`hintplan.planner.hints.lookup` and :mod:`hintplan.planner.hints.cached` define the options of their hints.

>>> from hintplan.planner.syntax.lexer import scan_text
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="SELECT /*+ CACHED('storage-level'='DISK_ONLY') */ 1")
>>> tokens = HintTokens(source, scan_text(source).hints[0])
>>> tokens.index += 1
>>> read_arguments(tokens, "CACHED", "", 0)[0].value
'DISK_ONLY'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hintplan.planner.hints.tokens import HintTokens
from hintplan.planner.syntax.source import Diagnostics
from hintplan.plans.settings.setting import Setting, SettingError, Value, parse_value


@dataclass(frozen=True, slots=True, kw_only=True)
class HintOption:
    """A pair ``'key'='value'`` of a hint."""

    key: str
    offset: int
    value: str
    value_offset: int


def read_arguments(tokens: HintTokens, name: str, form: str, offset: int) -> tuple[HintOption, ...]:
    """Read the options of the hint ``name`` at ``offset``. ``form`` is the advice for a syntax error."""
    if not tokens.take("("):
        if tokens.kind in ("end", "mark"):
            raise tokens.source.error(f"{name} needs at least one key and value", offset, form)
        raise tokens.fail("'('", form)
    if tokens.take(")"):
        raise tokens.source.error(f"{name} needs at least one key and value", offset, form)
    options = [_option(tokens, name, form)]
    while tokens.take(","):
        options.append(_option(tokens, name, form))
    if not tokens.take(")"):
        raise tokens.fail("',' or ')'", form)
    return tuple(options)


def _option(tokens: HintTokens, name: str, form: str) -> HintOption:
    offset = tokens.offset
    key = tokens.key()
    if key is None:
        raise tokens.fail("an option", form)
    if not tokens.take("="):
        if tokens.kind == "mark":
            raise tokens.source.error(f"{name} takes keys with values, not a list", offset, form)
        raise tokens.fail("'='", form)
    place = tokens.offset
    value = tokens.string()
    if value is None:
        raise tokens.fail("a value in quotes", f"write '{key}'='{tokens.text if tokens.kind != 'end' else '...'}'")
    return HintOption(key=key, offset=offset, value=value, value_offset=place)


def last_ones(
    options: tuple[HintOption, ...], name: str, report: Diagnostics, shows: Callable[[str], bool] | None = None
) -> tuple[tuple[HintOption, ...], dict[int, int]]:
    """Return the last option of each key, which wins as in Flink, and the overridden options. Warn of these.

    The warning repeats the overridden value if ``shows`` is None or true for the key.
    """
    chosen: dict[str, HintOption] = {}
    overridden: dict[int, int] = {}
    for option in options:
        before = chosen.pop(option.key, None)
        if before is not None:
            overridden[before.offset] = option.offset
            if before.value != option.value:
                place = report.source.where(option.offset)
                # The value of an unknown option may be a secret.
                shown = f"'{before.value}'" if shows is None or shows(option.key) else "the first"
                message = f"{name} option '{option.key}' is given twice: {shown} is overridden at {place}"
                report.warn_of_hint(message, before.offset, "remove one of them")
        chosen[option.key] = option
    return tuple(chosen.values()), overridden


def option_value(report: Diagnostics, name: str, spec: Setting, option: HintOption) -> Value:
    """Return the value of ``option`` in canonical form. Raise SqlError, with its position, for a wrong value."""
    if spec.kind == "duration":
        report.note_bare(option.value, option.value_offset)
    try:
        return parse_value(spec, option.value)
    except SettingError as error:
        raise report.source.error(f"{name} option '{option.key}': {error}", option.value_offset, error.hint) from None
