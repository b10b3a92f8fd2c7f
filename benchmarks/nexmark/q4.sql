-- Query 4, average price for a category: of the winning bids of all auctions.

CREATE TABLE nexmark_q4 (category BIGINT, average BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q4
SELECT /*+ STATE_TTL('Q' = '30 d') */ Q.category, AVG(Q.final)
FROM (
  SELECT /*+ STATE_TTL('J' = '1 d') */ J.category, MAX(J.price) AS final
  FROM (
    SELECT /*+ STATE_TTL('A' = '1 d', 'B' = '1 h') */ A.id, A.category, B.price
    FROM auction AS A
    JOIN bid AS B ON A.id = B.auction
    WHERE B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  ) AS J
  GROUP BY J.id, J.category
) AS Q
GROUP BY Q.category;
