"""The names of group windows and their functions, and where a syntax tree calls them.

>>> parts_of(exp.Anonymous(this="hop_start"))
('HOP', 'START')
>>> parts_of(exp.Anonymous(this="session"))
('SESSION', '')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

GROUP_WINDOWS: Mapping[str, tuple[str, ...]] = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}
"""The windows that GROUP BY takes, with the names of their durations in the order of the arguments."""
AUXILIARY = ("START", "END", "ROWTIME", "PROCTIME")
"""The parts of a window that functions such as TUMBLE_START return."""


def parts_of(call: exp.Expr) -> tuple[str, str]:
    """Return the window of a call, and the part that it returns: empty for the window itself, and for other calls."""
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    function, _, part = name.partition("_")
    return (function, part) if function in GROUP_WINDOWS and part in ("", *AUXILIARY) else ("", "")


def is_auxiliary(node: exp.Expr) -> bool:
    """Return True if ``node`` calls a function of a group window, such as TUMBLE_START."""
    return bool(parts_of(node)[1])


def window_calls(roots: Iterable[exp.Expr], *, auxiliary: bool = False) -> Iterator[exp.Expr]:
    """Yield the calls of windows below ``roots``, or of their functions, without those in sub-queries."""
    for node in roots:
        if isinstance(node, exp.Query):
            continue
        function, part = parts_of(node)
        if function and bool(part) == auxiliary:
            yield node
        else:
            yield from window_calls(node.iter_expressions(), auxiliary=auxiliary)
