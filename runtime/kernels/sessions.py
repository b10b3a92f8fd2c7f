"""Session windows on arrays: intervals of a key that overlap or touch are one session.

One sort by key and start, and a running maximum of the ends, merge the intervals of all keys at once. Times are int64
ms. Knows no rows, no state and no watermark.

>>> keys, starts = np.array([0, 0, 1, 0]), np.array([0, 20, 0, 5])
>>> sessions = merged_sessions(keys, starts, starts + 10)
>>> sessions.number.tolist(), sessions.starts.tolist(), sessions.ends.tolist(), sessions.keys.tolist()
([0, 1, 2, 0], [0, 20, 0], [15, 30, 10], [0, 0, 1])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hintplan.runtime.state.layout import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """The sessions of some intervals: ``number`` is the session of each interval; the rest is per session.

    Sessions are in the order of their keys and starts.
    """

    number: Int64s
    keys: Int64s
    starts: Int64s
    ends: Int64s


def merged_sessions(keys: Int64s, starts: Int64s, ends: Int64s) -> Sessions:
    """Merge intervals, given by the number of the key, the start and the end, in any order."""
    if not len(keys):
        none = np.empty(0, np.int64)
        return Sessions(number=none, keys=none, starts=none, ends=none)
    base = int(starts.min())
    bits = (int(ends.max()) - base).bit_length()
    if bits + int(keys.max()).bit_length() > 62:
        times, ranks = np.unique(np.concatenate((starts, ends)), return_inverse=True)
        ranked = merged_sessions(keys, ranks[: len(starts)], ranks[len(starts) :])
        return Sessions(number=ranked.number, keys=ranked.keys, starts=times[ranked.starts], ends=times[ranked.ends])
    begin, end = (keys << bits) + (starts - base), (keys << bits) + (ends - base)
    order = np.argsort(begin)
    begin = begin[order]
    reach = np.maximum.accumulate(end[order])  # keys ascend, so a maximum never comes from another key
    is_first = np.concatenate(([True], begin[1:] > reach[:-1]))
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(keys)) - 1
    number = np.empty(len(keys), np.int64)
    number[order] = np.cumsum(is_first) - 1
    of_time = np.int64((1 << bits) - 1)
    return Sessions(
        number=number,
        keys=begin[first] >> bits,
        starts=(begin[first] & of_time) + base,
        ends=(reach[last] & of_time) + base,
    )
