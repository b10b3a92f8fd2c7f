-- Query 9, winning bids: the bid that won each auction.
-- Original: ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) <= 1.
-- Here: the bids of the highest price, found by MAX and a join; bids that tie for it are all put out.

CREATE TABLE nexmark_q9 (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3),
  expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING,
  auction BIGINT, bidder BIGINT, price BIGINT, bid_dateTime TIMESTAMP(3), bid_extra STRING
) WITH ('connector' = 'blackhole');

CREATE VIEW placed AS
SELECT
  A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra
FROM auction AS A
JOIN bid AS B ON A.id = B.auction
WHERE B.`dateTime` BETWEEN A.`dateTime` AND A.expires;

INSERT INTO nexmark_q9
SELECT
  P.id, P.itemName, P.description, P.initialBid, P.reserve, P.`dateTime`, P.expires, P.seller, P.category, P.extra,
  P.auction, P.bidder, P.price, P.bid_dateTime, P.bid_extra
FROM placed AS P
JOIN (SELECT id, MAX(price) AS price FROM placed GROUP BY id) AS W ON P.id = W.id AND P.price = W.price;
