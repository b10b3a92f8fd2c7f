"""Early and late fire of windows in GROUP BY, as the configuration sets them with ``table.exec.emit.*``.

Flink takes them for TUMBLE and HOP in GROUP BY only, and the compiler refuses them for other windows.
"""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.relations import Fire
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.windows import Window
from hintplan.plans.settings.emit import EARLY_DELAY, EARLY_ENABLED, EMIT, LATE_DELAY, LATE_ENABLED, LATENESS
from hintplan.plans.settings.state import STATE_TTL


def group_window_fire(context: Context, window: Window, place: int) -> Fire:
    """Return the fire of a window in GROUP BY at ``place``; raise SqlError if the window or a setting forbids it."""
    enabled = [] if context.batch else enabled_keys(context)
    if not enabled:
        return Fire(early=False, late=False)
    if window.type == "session":
        message = f"SESSION has no early and late results, in Flink neither, but '{enabled[0]}' is true"
        raise context.source.error(message, place, "leave the key out, and compile this query as a script of its own")
    if window.processing_time:  # no row of such a window is late, so late fire has no effect, as in Flink
        enabled = [key for key in enabled if key == EARLY_ENABLED]
    for enabling, delay in ((EARLY_ENABLED, EARLY_DELAY), (LATE_ENABLED, LATE_DELAY)):
        key = EMIT.settings[delay].config
        if enabling in enabled and key not in context.config:
            raise context.source.error(f"'{enabling}' needs '{key}'", place, f"SET '{key}' = '0 ms', or a longer time")
    lateness = EMIT.settings[LATENESS].config
    if LATE_ENABLED in enabled and not parse_duration(context.config.get(lateness or "", "0 ms")):
        message = f"'{LATE_ENABLED}' needs '{lateness}', or '{STATE_TTL}'"
        raise context.source.error(message, place, f"SET '{lateness}' = '1 min', the time for which rows may be late")
    return Fire(early=EARLY_ENABLED in enabled, late=LATE_ENABLED in enabled)


def enabled_keys(context: Context) -> list[str]:
    """Return the keys for early and late fire that are true."""
    return [key for key in (EARLY_ENABLED, LATE_ENABLED) if context.compiler.get(key) == "true"]
