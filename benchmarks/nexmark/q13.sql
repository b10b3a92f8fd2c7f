-- Query 13, bounded side input join: enrich bids with a table that does not change.

CREATE TABLE nexmark_q13 (
  auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` STRING
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q13
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM bid AS B
JOIN side_input AS S ON MOD(B.auction, 10000) = S.`key`;
