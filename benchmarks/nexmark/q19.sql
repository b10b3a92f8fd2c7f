-- Query 19, auction top 10: the ten highest bids of each auction, with their places.

CREATE TABLE nexmark_q19 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  place BIGINT
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q19
SELECT auction, bidder, price, channel, url, `dateTime`, extra, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
WHERE place <= 10;
