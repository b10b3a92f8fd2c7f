-- Refunds that stand out: more than usual for their reason, or of an order that was never paid.
SET 'pipeline.name' = 'refund-watch';

CREATE TABLE refunds (
  refund_id BIGINT,
  order_id BIGINT,
  amount DECIMAL(10, 2),
  reason STRING,
  refunded_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/refunds.json', 'format' = 'json');

CREATE TABLE payments (
  payment_id STRING,
  order_id BIGINT,
  `method` STRING,
  amount DECIMAL(10, 2),
  state STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/payments.json', 'format' = 'json');

CREATE TABLE suspicious (
  refund_id BIGINT,
  order_id BIGINT,
  amount DECIMAL(10, 2),
  why STRING
) WITH ('connector' = 'print');

CREATE TABLE refund_share (
  `method` STRING,
  paid DECIMAL(38, 2),
  refunded DECIMAL(38, 2),
  share DECIMAL(10, 3),
  PRIMARY KEY (`method`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE reasons (
  reason STRING,
  refunds BIGINT,
  total DECIMAL(38, 2),
  average_amount DECIMAL(38, 6)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO suspicious
SELECT refund_id, order_id, amount, 'above average'
FROM refunds AS r
WHERE amount > (SELECT AVG(x.amount) FROM refunds AS x WHERE x.reason = r.reason)
UNION ALL
SELECT refund_id, order_id, amount, 'never paid'
FROM refunds AS r
WHERE NOT EXISTS (SELECT 1 FROM payments AS p WHERE p.order_id = r.order_id AND p.state = 'captured');

INSERT INTO refund_share
SELECT p.`method`, SUM(p.amount), COALESCE(SUM(r.amount), 0),
  CAST(COALESCE(SUM(r.amount), 0) / SUM(p.amount) AS DECIMAL(10, 3))
FROM (SELECT DISTINCT payment_id, order_id, `method`, amount FROM payments WHERE state = 'captured') AS p
LEFT JOIN (SELECT order_id, SUM(amount) AS amount FROM refunds GROUP BY order_id) AS r ON r.order_id = p.order_id
GROUP BY p.`method`;

INSERT INTO reasons
SELECT COALESCE(reason, 'unknown'), COUNT(*), SUM(amount), AVG(amount)
FROM refunds
GROUP BY CUBE (COALESCE(reason, 'unknown'));
END;
