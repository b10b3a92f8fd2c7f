"""Joins with the version of a row at the time of the other row."""

from __future__ import annotations

from .tables import DELAY, Program

ORDERS_AND_RATES = {
    "o": f"id BIGINT, cur STRING, ts TIMESTAMP(3), {DELAY}",
    "r": f"cur STRING NOT NULL, rate BIGINT, ts TIMESTAMP(3), {DELAY}, PRIMARY KEY (cur) NOT ENFORCED WITH 'changelog' = 'upsert'",
}
TEMPORAL_JOIN = (
    "SELECT o.id, o.cur, o.ts, r.rate, r.ts AS rts FROM o {} JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.cur = r.cur"
)
RATES = """
r +U E 100 00:00:01
o +I 1 E 00:00:02
o +I 2 E 00:00:00      -- before there was a rate
o +I 3 X 00:00:03      -- no rate at all
o +I 4 NULL 00:00:03
r +U E 110 00:00:05
o +I 5 E 00:00:04.999
o +I 6 E 00:00:05      -- the version of this very time
r +U E 105 00:00:03    -- an earlier version that comes out of order
r +U E 120 00:00:12
o +I 7 E 00:00:20      -- watermark of o 18 s; of r 10 s
r -D E 120 00:00:15
r +U E 130 00:00:30    -- of r 28 s: both at 18
o +I 8 E 00:00:16      -- after the deletion; late, below 18
o +I 9 E 00:00:31
r +U E 140 00:00:14    -- late version
r +U Y 1 00:01:00
o +I 10 E 00:01:00
"""
ORDERS_AND_HISTORY = {"o": ORDERS_AND_RATES["o"], "h": f"cur STRING, rate BIGINT, ts TIMESTAMP(3), {DELAY}"}
VERSIONS = "CREATE VIEW r AS SELECT cur, rate, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cur ORDER BY ts DESC) AS n FROM h) WHERE n = 1"
HISTORY = "\n".join(line.replace("r +U", "h +I") for line in RATES.strip().splitlines() if not line.startswith("r -D"))

TEMPORAL_JOINS: dict[str, Program] = {
    **{
        f"temporal join, {kind.lower()}": Program(
            about="a source of upserts with a primary key",
            tables=ORDERS_AND_RATES,
            steps=RATES,
            with_plan=kind == "INNER",
            query=TEMPORAL_JOIN.format(kind),
        )
        for kind in ("INNER", "LEFT")
    },
    "temporal join, versioned view": Program(
        about="last rows of an append-only table, by a deduplicate",
        tables=ORDERS_AND_HISTORY,
        views=(VERSIONS,),
        steps=HISTORY,
        with_plan=True,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, equal times of versions": Program(
        about="the later one wins",
        tables=ORDERS_AND_HISTORY,
        views=(VERSIONS,),
        steps="""
h +I E 1 00:00:05
h +I E 2 00:00:05
o +I 1 E 00:00:05
o +I 2 E 00:00:06
h +I E 3 00:00:20
o +I 3 E 00:00:20
""",
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, key is not the primary key": Program(
        tables={**ORDERS_AND_RATES, "r": ORDERS_AND_RATES["r"].replace("PRIMARY KEY (cur)", "PRIMARY KEY (rate)")},
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, no primary key": Program(
        tables={**ORDERS_AND_RATES, "r": f"cur STRING, rate BIGINT, ts TIMESTAMP(3), {DELAY}"},
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, primary key without a watermark": Program(
        tables={
            **ORDERS_AND_RATES,
            "r": "cur STRING NOT NULL, rate BIGINT, ts TIMESTAMP(3), PRIMARY KEY (cur) NOT ENFORCED WITH 'changelog' = 'upsert'",
        },
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, right join": Program(
        tables=ORDERS_AND_RATES,
        is_run=False,
        query=TEMPORAL_JOIN.format("RIGHT"),
    ),
    "temporal join, left side changes": Program(
        about="rows of o that are retracted",
        tables={**ORDERS_AND_RATES, "o": ORDERS_AND_RATES["o"] + " WITH 'changelog' = 'all'"},
        steps="""
r +U E 100 00:00:01
o +I 1 E 00:00:02
r +U E 110 00:00:05
o -D 1 E 00:00:02
o +I 2 E 00:00:06
r +U E 120 00:00:20
o +I 3 E 00:00:20
o -D 2 E 00:00:06     -- late
""",
        with_plan=True,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, state TTL": Program(
        tables=ORDERS_AND_RATES,
        config={"table.exec.state.ttl": "1 s"},
        with_plan=True,
        steps="""
r +U E 100 00:00:01
o +I 1 E 00:00:02
sleep 1500
r +U E 110 00:00:05
o +I 2 E 00:00:06
r +U F 110 00:00:20
o +I 3 F 00:00:20
""",
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, TIMESTAMP and TIMESTAMP_LTZ": Program(
        tables={**ORDERS_AND_RATES, "r": ORDERS_AND_RATES["r"].replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)")},
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, processing time, of a versioned view": Program(
        tables={"o": "id BIGINT, cur STRING, pt AS PROCTIME()", "h": ORDERS_AND_HISTORY["h"]},
        views=(VERSIONS,),
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT").replace("o.ts,", "").replace("OF o.ts", "OF o.pt"),
    ),
    "temporal join, added rows with a primary key": Program(
        about="each row is a version of its key",
        tables={**ORDERS_AND_RATES, "r": ORDERS_AND_RATES["r"].replace(" WITH 'changelog' = 'upsert'", "")},
        steps=HISTORY.replace("h +I", "r +I"),
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, versions from a changelog": Program(
        about="-U at the time of the old row, at the time of the new one, and a deletion",
        tables={**ORDERS_AND_RATES, "r": ORDERS_AND_RATES["r"].replace("'upsert'", "'all'")},
        with_plan=True,
        steps="""
r +I E 100 00:00:01
r -U E 100 00:00:01
r +U E 110 00:00:05
r +I F 1 00:00:01
r -U F 1 00:00:05
r +U F 2 00:00:05
r -D F 2 00:00:08
o +I 1 E 00:00:03
o +I 2 E 00:00:06
o +I 3 F 00:00:03
o +I 4 F 00:00:06
o +I 5 F 00:00:09
r +I G 3 00:01:00
o +I 6 E 00:01:00
""",
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    **{
        f"temporal join, with a condition, {kind.lower()}": Program(
            about="of the version that is met, and not of earlier ones",
            tables=ORDERS_AND_RATES,
            steps=RATES,
            query=f"{TEMPORAL_JOIN.format(kind)} AND r.rate > 100 AND o.id <> 6",
        )
        for kind in ("INNER", "LEFT")
    },
    "temporal join, with another equality": Program(
        about="Flink partitions by both columns, so a version lasts after the other column has changed",
        tables=ORDERS_AND_RATES,
        steps="""
r +U E 1 00:00:01
r +U E 2 00:00:05
o +I 1 E 00:00:03
o +I 1 E 00:00:06
o +I 2 E 00:00:06
r +U F 1 00:01:00
o +I 7 F 00:01:00
""",
        query=f"{TEMPORAL_JOIN.format('LEFT')} AND o.id = r.rate",
    ),
    "temporal join, versioned view with a filter": Program(
        about="a version that the filter drops",
        tables=ORDERS_AND_HISTORY,
        views=(f"{VERSIONS} AND rate < 110",),
        with_plan=True,
        steps="""
h +I E 100 00:00:01
h +I E 120 00:00:05
h +I E 105 00:00:09
o +I 1 E 00:00:03
o +I 2 E 00:00:06
o +I 3 E 00:00:10
h +I F 1 00:01:00
o +I 7 F 00:01:00
""",
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, view of the last rows by processing time": Program(
        tables={**ORDERS_AND_HISTORY, "h": f"{ORDERS_AND_HISTORY['h']}, pt AS PROCTIME()"},
        views=(VERSIONS.replace("ORDER BY ts", "ORDER BY pt"),),
        with_plan=True,
        steps=HISTORY,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, view of the first rows": Program(
        tables=ORDERS_AND_HISTORY,
        views=(VERSIONS.replace("ts DESC", "ts"),),
        with_plan=True,
        steps=HISTORY,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, view without its time": Program(
        tables=ORDERS_AND_HISTORY,
        views=(VERSIONS.replace("SELECT cur, rate, ts", "SELECT cur, rate, CAST(ts AS STRING) AS ts"),),
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    "temporal join, by a column that is no time attribute": Program(
        tables={**ORDERS_AND_RATES, "o": "id BIGINT, cur STRING, ts TIMESTAMP(3)"},
        is_run=False,
        query=TEMPORAL_JOIN.format("LEFT"),
    ),
    **{
        f"window above a temporal join, by the time of {side}": Program(
            about="the time of the left side stays a rowtime",
            tables=ORDERS_AND_RATES,
            views=(f"CREATE VIEW q AS {TEMPORAL_JOIN.format('LEFT')}",),
            steps=RATES if side == "o" else "",
            is_run=side == "o",
            query=f"SELECT window_start, COUNT(*) AS n, SUM(rate) AS s FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR({time}), INTERVAL '5' SECOND)) GROUP BY window_start, window_end",
        )
        for side, time in (("o", "ts"), ("r", "rts"))
    },
}
