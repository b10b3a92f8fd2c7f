-- Query 18, last bid: of each bidder on each auction.
-- Original: ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) <= 1.
-- Here: the last value of each column, in the order in which bids arrive.

CREATE TABLE nexmark_q18 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q18
SELECT /*+ STATE_TTL('bid' = '2 d') */
  auction, bidder,
  LAST_VALUE(price), LAST_VALUE(channel), LAST_VALUE(url), LAST_VALUE(`dateTime`), LAST_VALUE(extra)
FROM bid
GROUP BY auction, bidder;
