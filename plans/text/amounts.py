"""Sizes and durations in a readable form.

>>> human_bytes(3_355_443), human_duration(75_000)
('3.2 MiB', '1 min 15 s')
"""

from __future__ import annotations


def human_bytes(size: int) -> str:
    """Return ``size`` in the largest binary unit of which there is at least one."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def human_duration(milliseconds: int) -> str:
    """Return milliseconds below a second, then seconds with a decimal, then minutes and seconds."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1000} s"
