"""The settings of a watermark: its lag behind the latest row, the time of silent sources, and the table of late rows.

The delay is the ``- INTERVAL`` in the WATERMARK clause of the table. Every ``watermark-assigner`` has the group.

>>> WATERMARK.resolved({"table": {DELAY: "4 s"}}).values
{'delay': '4 s', 'idle-timeout': '0 ms'}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.plans.settings.effects import OPTION, restarts
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.setting import Setting, SettingError

DELAY = "delay"
IDLE_TIMEOUT = "idle-timeout"
LATE_ROWS = "late-rows.target"
NO_TARGET = "none"
"""The value of ``late-rows.target`` that overrides a table of a weaker layer: late rows are only counted."""


def _target(text: str) -> str:
    name = text.strip()
    if not name:
        expected = f"the name of a table, or '{NO_TARGET}'"
        raise SettingError(f"expected {expected}", hint=f"write '{NO_TARGET}' to only count them", expected=expected)
    return NO_TARGET if name.lower() == NO_TARGET else name


WATERMARK = Group(
    name="watermark",
    schema="watermark",
    description="The lag of the watermark behind the latest row, and the treatment of silent sources and late rows.",
    layers=("default", "config", "table", "hint"),
    required=(DELAY, IDLE_TIMEOUT),
    settings=specs(
        Setting(
            name=DELAY,
            kind="duration",
            default="0 ms",
            description="The time by which the watermark lags behind the latest row.",
            effect=restarts(
                "the watermark stands still until the rows have caught up with it",
                text="windows close {value} after their end, and are kept so long; nothing closed reopens",
                for_any="with a longer delay, windows close later and are kept so long, and nothing closed reopens. "
                "With a shorter one, the next batch closes more, and drops rows that come later.",
            ),
            shortened=restarts(
                "the watermark jumps ahead, and the next batch closes the windows that it passes",
                text="rows more than {value} late are dropped",
            ),
        ),
        Setting(
            name=IDLE_TIMEOUT,
            kind="duration",
            default="0 ms",
            description="The time without rows after which a source no longer holds the watermark back; 0 ms is never.",
            effect=restarts("a silent source holds the watermark back for longer"),
            shortened=restarts(
                "a source that is silent for this long no longer holds the watermark back; its rows may then be late"
            ),
            zero="never",
            config="table.exec.source.idle-timeout",
            option="scan.watermark.idle-timeout",
        ),
        Setting(
            name=LATE_ROWS,
            kind="text",
            description="The table to which rows go that come behind the watermark; none only counts them.",
            effect=restarts(
                "the query of the operators that drop late rows also writes them",
                text="for the late rows of later batches",
            ),
            option="late-rows.target",
            check=_target,
        ),
    ),
)


ONE_WATERMARK = "a micro-batch has one watermark, which moves after its rows"
"""The reason why other options and keys of Flink for watermarks have no effect."""
_PERIODIC = "on-periodic"


def _strategy(text: str) -> str:
    if text.strip().lower() == _PERIODIC:
        return _PERIODIC
    expected = f"'{_PERIODIC}': {ONE_WATERMARK}"
    raise SettingError(f"expected {expected}, found '{text}'", hint="remove it", expected=expected)


EMIT_STRATEGY = Setting(
    name="scan.watermark.emit.strategy",
    option="scan.watermark.emit.strategy",
    kind="choice",
    choices=(_PERIODIC,),
    default=_PERIODIC,
    description="The moment in which the watermark moves: after the rows of each micro-batch.",
    effect=OPTION,
    check=_strategy,
)
_OF_TABLES = (setting for setting in WATERMARK.settings.values() if setting.option is not None)
WATERMARK_OPTIONS: Mapping[str, Setting] = specs(
    *(replace(setting, name=setting.option or "") for setting in _OF_TABLES), EMIT_STRATEGY
)
"""The options of any table that is read for the watermark of its rows, by name."""
