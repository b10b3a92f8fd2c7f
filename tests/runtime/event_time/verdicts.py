"""Recorded programs whose output does not equal Flink's, each with its reason. All other programs must equal it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Defect:
    """Rows that Flink lost; without any, Flink delayed rows to the end of the input."""

    reason: str
    lost: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference that our documentation names: rows come after other ``steps``; ``only_ours`` only come in ours."""

    reason: str
    steps: tuple[int, ...]
    only_ours: tuple[tuple[str, ...], ...] = ()
    only_flinks: tuple[tuple[str, ...], ...] = ()


_DAY = ("a", "2024-03-31T00:00", "2024-04-01T00:00", "2024-03-31T15:59:59.999Z", "4", "10")
_HOUR = ("a", "2024-03-31T04:00", "2024-03-31T05:00", "1", "1")
_ZONES = (
    "FLINK-38075: rows are lost if the watermark stops between the end of a window and a multiple of its size in UTC"
)
FLINKS_DEFECTS = {
    "tumble, before the epoch": Defect(reason="the watermark begins at 1970, so earlier windows close at the end"),
    "LTZ, days in Shanghai": Defect(reason=_ZONES, lost=(_DAY,)),
    "LTZ, days in Shanghai, one phase": Defect(reason=_ZONES, lost=(_DAY,)),
    "LTZ, hours in Kolkata, watermark between": Defect(reason=_ZONES, lost=(_HOUR,)),
    "LTZ, hours in Kolkata, watermark between, one phase": Defect(reason=_ZONES, lost=(_HOUR,)),
}
OURS = {
    "two parallel sources, one without rows": Difference(
        reason="a partition counts from its first row, so an empty one holds nothing back", steps=(1, 2)
    ),
    "two parallel sources, one idle": Difference(
        reason="rows of an idle subtask wait in its local aggregate, and are late when they come out of it",
        steps=(3, 10),
        only_ours=(
            ("a", "2024-01-01T00:00:20", "2024-01-01T00:00:25", "2", "12"),
            ("b", "2024-01-01T00:00", "2024-01-01T00:00:05", "1", "2"),
        ),
        only_flinks=(("a", "2024-01-01T00:00:20", "2024-01-01T00:00:25", "1", "3"),),
    ),
}


@dataclass(frozen=True, kw_only=True)
class LateRows:
    """The late rows of a program, where Flink counts another number: ``ours`` are rows."""

    reason: str
    ours: int


_TWO_PHASES = "late rows of one key and window are one, in two phases"
COUNTED_OTHERWISE = {
    "tumble, boundaries": LateRows(reason=_TWO_PHASES, ours=2),
    "tumble over the last rows of keys": LateRows(reason=_TWO_PHASES, ours=4),
    **{
        f"window join, {kind}": LateRows(reason="a join of windows counts none", ours=2)
        for kind in ("inner", "left", "right", "full", "semi", "with a condition")
    },
    "sort by rowtime": LateRows(reason="a sort counts none", ours=1),
    "deduplicate, first by rowtime": LateRows(reason="none is counted of a key that has its first row", ours=1),
}
"""Programs whose late rows Flink counts otherwise."""

OF_PROCESSING_TIME = (
    "idle, the only table",
    "tumble, state TTL",
    "union, one table is idle",
)
"""Programs with pauses: their output depends on the time of each batch."""

_IN_A_STREAM = "not supported in a stream"
_NO_ROWTIME = "TUMBLE needs a rowtime"
_PROCESSING_TIME = "processing time"
REFUSED = {
    "hop, size is no multiple of the slide": "multiple",
    "hop, slide larger than size": "multiple",
    "tumble of a sub-query": "found a query",
    "tumble of a column that is no time attribute": _NO_ROWTIME,
    "rowtime with microseconds": "TIMESTAMP(6)",
    "tumble over a GROUP BY": _NO_ROWTIME,
    "window top-n over changes": "rows that are only added",
    "tumble, early fire": "table.exec.emit.early-fire",
    "tumble, late fire": "table.exec.emit.late-fire",
    "window deduplicate, processing time": _PROCESSING_TIME,
    "window top-n, processing time": _PROCESSING_TIME,
    "window rank by RANK": "Flink takes the first rows of a window by ROW_NUMBER() only",
    "window join over changes": "rows that are only added",
    "window join, processing time": _PROCESSING_TIME,
    "group window, late fire, without a state TTL or lateness": "table.exec.emit.late-fire",
    **{
        f"temporal join, {name}": "processing time"
        for name in (
            "key is not the primary key",
            "no primary key",
            "primary key without a watermark",
            "TIMESTAMP and TIMESTAMP_LTZ",
        )
    },
    "temporal join, right join": "RIGHT JOIN",
    "temporal join, processing time, of a versioned view": "looked up",
    "over, two windows": _IN_A_STREAM,
    "over, LEAD": _IN_A_STREAM,
    "over, FOLLOWING": _IN_A_STREAM,
    "over, descending": _IN_A_STREAM,
    "over changes": f"{_IN_A_STREAM}, by Flink neither: the rows can change",
    "sort by rowtime, descending": "ORDER BY",
    "on conflict do error": "ON CONFLICT",
    "current watermark, of a column that is no time attribute": "CURRENT_WATERMARK",
    "window above a regular join": _NO_ROWTIME,
    "window above a regular aggregate's key": _NO_ROWTIME,
    "rowtime that is computed anew": _NO_ROWTIME,
}
"""Programs that Flink and our compiler refuse, with words of our message."""

FAILS = ("tumble, NULL time",)
"""Programs that fail when they run, in Flink and in ours."""

TAKEN = {"rowtime cast": "a cast to the type of the column changes nothing"}
"""Programs that Flink refuses, and that our compiler takes, with the reason."""

WARNED = {"tumble, STATE_TTL hint": "watermark"}
"""Programs that Flink refuses, and that our compiler warns of."""

REFUSED_BY_OURS = {
    **{f"session over changes{more}": "SESSION" for more in ("", ", the first row goes", ", the bridge goes")},
    "watermarks pushed into the source, on event": "on-event",
    "watermarks not pushed down, on event": "on-event",
    "OPTIONS hint with scan.watermark": "scan.watermark.emit.strategy",
    "over, by a column that is no time": _IN_A_STREAM,
    "over, by a column that is no time, rows unbounded": _IN_A_STREAM,
    "over, by a column that is no time, over changes": _IN_A_STREAM,
    "on conflict do nothing": "ON CONFLICT",
    "match recognize": "MATCH_RECOGNIZE",
    "match recognize, within": "MATCH_RECOGNIZE",
    "current watermark": "CURRENT_WATERMARK",
    "current watermark, above an aggregate": "CURRENT_WATERMARK",
    "lookup of rows that are late": "CURRENT_WATERMARK",
}
"""Programs that Flink takes, and that are left out."""

NOT_BUILT = {
    **{f"{kind}, processing time": _PROCESSING_TIME for kind in ("tumble", "hop", "cumulate")},
    "group window, tumble": "TUMBLE in GROUP BY",
    "group window, hop with a size that is no multiple": "HOP in GROUP BY",
    "group window, session": "SESSION in GROUP BY",
    "group window over changes": "TUMBLE in GROUP BY",
    "group window, session over changes": "SESSION in GROUP BY",
    "group window, early and late fire": "table.exec.emit.",
    "group window, early fire, delay": "table.exec.emit.",
    "group window, late fire": "table.exec.emit.",
    "group window, allowed lateness only": "TUMBLE in GROUP BY",
    "interval join, how much the watermark is held back": "it has passed a join",
    **{
        f"temporal join, {name}": "time"
        for name in (
            *("inner", "left", "left side changes", "state TTL"),
            *("versioned view", "equal times of versions"),
        )
    },
    **{
        f"over, {name}": _IN_A_STREAM
        for name in (
            *("range unbounded", "rows unbounded", "range bounded", "rows bounded", "without a frame"),
            *("several calls of one window", "LAG", "RANK", "FIRST_VALUE"),
            *("processing time, range unbounded", "processing time, rows unbounded"),
            *("processing time, range bounded", "processing time, rows bounded"),
        )
    },
    "over, ROW_NUMBER": "ROW_NUMBER()",
    "deduplicate by rowtime below a window": "it has passed ROW_NUMBER()",
    "sort by rowtime": "ORDER BY",
    "sort by rowtime and a column": "ORDER BY",
}
"""Programs that Flink takes, and whose operators are not built."""

NETTED = ("session, grouped by more than its key",)
"""Programs with a regular aggregate above windows: of the changes of a batch, ours are what is left."""

SAME_IN_THE_END = (
    "tumble, grouped by window_start only",
    "aggregate of tumble's columns",
    "deduplicate, last by rowtime",
    "deduplicate, last by rowtime, late rows",
    "deduplicate, first by processing time",
    "top-n by rowtime",
    "sort by rowtime, limit",
    "on conflict do deduplicate",
    "WATERMARK of an upsert source, regular aggregate",
)
"""Programs that do not go by the watermark, in Flink and in ours: the rows that are left are the same."""

_REGULAR = "a regular join, which keeps all rows"
WITHOUT_TIME = {
    **{
        f"interval join, {name}": _REGULAR
        for name in (
            *("inner", "left", "right", "full", "with a condition", "one side only moves", "open bounds"),
            *("one bound only", "without an equality", "an impossible interval", "semi", "semi, run"),
            *("state TTL", "processing time, inner", "processing time, left", "processing time, full"),
        )
    },
    "interval join over changes": _REGULAR,
    "window join, only window_start is compared": _REGULAR,
    "window join, different windows": _REGULAR,
    "two rowtimes into a sink": _REGULAR,
    "deduplicate, first by rowtime": "rows at once, which are taken back when an earlier row comes",
    "deduplicate, first by rowtime, late rows": "rows at once, which are taken back when an earlier row comes",
}
"""Programs that compile to operators that do not go by the watermark, though Flink's may."""

COMPILED = {
    "nexmark q5": {"watermark-assigner", "window-aggregate", "window-join"},
    "nexmark q7": {"watermark-assigner", "window-aggregate", "join"},
}
"""Programs that Flink only compiled, with operators of our plan."""
