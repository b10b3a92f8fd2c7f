"""A run that is written down: its plan, its batches, and clocks that a test moves. No Spark takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace

from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.metrics.followed import Followed
from hintplan.runtime.metrics.metrics import Metrics
from hintplan.runtime.page.live_page import LivePage
from hintplan.runtime.progress import BatchProgress, EventTimeProgress, OperatorProgress
from hintplan.runtime.sources import SourceProgress

SCRIPT = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (id BIGINT, customer INT, total INT, plane INT, ts TIMESTAMP(3), proc AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE payments (order_id BIGINT, method INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '60' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'payments', 'format' = 'json');
CREATE TABLE planes (id INT, name STRING)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:planes.db', 'table-name' = 'planes', 'lookup.cache' = 'PARTIAL',
  'lookup.partial-cache.max-rows' = '50');
CREATE TABLE paid (id BIGINT, total INT, method INT) WITH ('connector' = 'filesystem', 'path' = 'p', 'format' = 'json');
CREATE TABLE by_plane (name STRING, orders BIGINT, total BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE minutes (window_end TIMESTAMP(3), orders BIGINT, payments BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'minutes', 'format' = 'json');
INSERT INTO paid SELECT /*+ STATE_TTL('o' = '1 d', 'p' = '3 h') */ o.id, o.total, p.method
FROM orders AS o JOIN payments AS p ON o.id = p.order_id;
INSERT INTO by_plane SELECT p.name, COUNT(*), SUM(o.total)
FROM orders AS o JOIN planes FOR SYSTEM_TIME AS OF o.proc AS p ON o.plane = p.id GROUP BY p.name;
INSERT INTO minutes SELECT o.window_end, o.n, p.n FROM
 (SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
  GROUP BY window_start, window_end) AS o
 JOIN (SELECT window_start, window_end, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end) AS p
 ON o.window_start = p.window_start AND o.window_end = p.window_end;
"""
START = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
QUERIES = {"sink_paid": ("sink_paid",), "sink_by_plane": ("sink_by_plane",), "sink_minutes": ("sink_minutes",)}
NO_LOOKUPS = dict.fromkeys(LookupCounters.reported, 0)


def recorded_plan() -> Plan:
    """The plan of the run."""
    return replace(compile_sql(SCRIPT), name="paid")


@dataclass
class Recorded:
    """A run at a time of its own, and the page that follows it."""

    plan: Plan = field(default_factory=recorded_plan)
    seconds: float = 0.0
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: QUERIES)

    def __post_init__(self) -> None:
        self.metrics = Metrics(now=self.now, clock=lambda: self.seconds)
        self.page = LivePage(metrics=self.metrics, plan=self.plan, now=self.now)

    def now(self) -> float:
        return START + self.seconds

    def begin(self) -> Followed:
        """Start the run, without a thread that follows it."""
        self.followed = self.metrics.begun(self.plan, self.queries)
        return self.followed

    def end(self, failure: str | None = None) -> None:
        """End the run, for the given reason."""
        self.followed._execution = SimpleNamespace(exception=failure)
        self.followed.end()

    def batch(self, sink: str, number: int, **facts: object) -> None:
        """A batch that ends now; facts override those of a batch without rows that takes a second."""
        batch = BatchProgress(
            sink=sink,
            batch=number,
            timestamp=datetime.fromtimestamp(self.now() - 1, UTC).isoformat(),
            rows_in=0,
            rows_out=0,
            duration_ms=1_000,
            operators={},
        )
        self.followed.told(replace(batch, **facts))

    def an_hour(self, *, batches: int = 40) -> None:
        """Batches of all queries, one every five seconds, that show every kind of number."""
        for number in range(batches):
            self.seconds += 5
            slow = number == batches - 1
            self.batch(
                "sink_paid",
                number,
                rows_in=3_500,
                rows_out=1_900,
                duration_ms=14_200 if slow else 1_100 + 37 * (number % 5),
                operators={
                    "join_o_p": OperatorProgress(
                        rows_in=3_500,
                        rows_out=1_900,
                        state_rows=41_000 + number * 18,
                        state_bytes=2_400_000_000 + number * 900,
                        oldest_write=int((self.now() - 80_000) * 1000),
                        counts={"rows_beyond_limit": 0},
                    )
                },
                sources=(
                    SourceProgress(
                        source="FileStreamSource[orders]",
                        operator="scan_orders",
                        rows_in=2_000,
                        metrics={"numFilesOutstanding": str(1_200 + number), "numBytesOutstanding": "91000000"},
                    ),
                    SourceProgress(source="FileStreamSource[p]", operator="scan_payments", rows_in=1_500),
                ),
            )
            self.batch(
                "sink_by_plane",
                number,
                rows_in=2_000,
                rows_out=88,
                duration_ms=700 + 53 * (number % 3),
                operators={
                    "aggregate_by_plane": OperatorProgress(rows_in=2_000, rows_out=88, state_rows=90, state_bytes=5_120)
                },
                lookups={"lookup_p": NO_LOOKUPS | {"lookups": 2_000, "hitCount": 1_980, "missCount": 20}},
            )
            self.batch("sink_minutes", number, rows_in=3_500, rows_out=1, operators=self.windows(late=number % 4 == 0))

    def windows(self, *, late: bool) -> dict[str, OperatorProgress]:
        """The operators of event time: payments hold the join of the windows back."""
        orders, payments = (int((self.now() - lag) * 1000) for lag in (6, 75))
        window = OperatorProgress(rows_in=2_000, rows_out=1, state_rows=2, state_bytes=300)
        return {
            "window_orders": replace(
                window, event_time=EventTimeProgress(watermark=orders, held_by="watermark_orders", waiting_rows=2)
            ),
            "window_payments": replace(
                window,
                event_time=EventTimeProgress(
                    watermark=payments, held_by="watermark_payments", late_rows=3 * late, waiting_rows=2
                ),
            ),
            "join_o_p_in_minutes": replace(
                window,
                rows_in=2,
                event_time=EventTimeProgress(watermark=payments, held_by="window_payments", waiting_rows=2),
            ),
        }
