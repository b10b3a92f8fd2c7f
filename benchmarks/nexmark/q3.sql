-- Query 3, local item suggestion: who sells in OR, ID or CA in category 10, and for which auctions?

CREATE TABLE nexmark_q3 (name STRING, city STRING, state STRING, id BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q3
SELECT /*+ STATE_TTL('A' = '1 d', 'P' = '30 d') */ P.name, P.city, P.state, A.id
FROM auction AS A
JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
