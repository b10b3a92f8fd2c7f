"""Queries of Nexmark whose plans are compared."""

from __future__ import annotations

from .tables import Program

NEXMARK: dict[str, Program] = {
    "nexmark q5": Program(
        about="hot items",
        tables={
            "bid": "auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND"
        },
        is_run=False,
        with_plan=True,
        query="""SELECT AuctionBids.auction, AuctionBids.num FROM (
 SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end
) AS AuctionBids JOIN (
 SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM (
  SELECT count(*) AS num, window_start AS starttime, window_end AS endtime FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end
 ) AS CountBids GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime AND AuctionBids.num >= MaxBids.maxn""",
    ),
    "nexmark q7": Program(
        about="highest bid",
        tables={
            "bid": "auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND"
        },
        is_run=False,
        with_plan=True,
        query="""SELECT B.auction, B.price, B.bidder, B.ts FROM bid B JOIN (
 SELECT MAX(price) AS maxprice, window_end AS ts FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
) B1 ON B.price = B1.maxprice WHERE B.ts BETWEEN B1.ts - INTERVAL '10' SECOND AND B1.ts""",
    ),
}
