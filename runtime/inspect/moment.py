"""Reads the time that a command is given with ``--at``."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import click


def moment(text: str | None, time_zone: str) -> int | None:
    """Return an ISO 8601 time in ms since 1970; without an offset, it is in ``time_zone``.

    >>> moment("1970-01-01T01:00", "Europe/Paris")
    0
    """
    if text is None:
        return None
    zone = ZoneInfo(time_zone)
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write a time such as 2026-11-20T12:00:00Z") from error
    return int((given if given.tzinfo else given.replace(tzinfo=zone)).timestamp() * 1000)
