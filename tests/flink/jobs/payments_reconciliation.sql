-- Finance: compare what was ordered with what was captured and refunded, order by order,
-- and list payments and refunds that belong to no order.
SET 'pipeline.name' = 'payments-reconciliation';
SET 'table.exec.state.ttl' = '45 d';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE payments (
  payment_id STRING,
  order_id BIGINT,
  `method` STRING,
  amount DECIMAL(10, 2),
  state STRING,
  paid_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/payments.json', 'format' = 'json');

CREATE TABLE refunds (
  refund_id BIGINT,
  order_id BIGINT,
  amount DECIMAL(10, 2),
  reason STRING,
  refunded_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/refunds.json', 'format' = 'json');

CREATE TABLE reconciliation (
  order_id BIGINT,
  ordered DECIMAL(10, 2),
  captured DECIMAL(38, 2),
  refunded DECIMAL(38, 2),
  difference DECIMAL(38, 2),
  verdict STRING
) WITH ('connector' = 'print');

CREATE TABLE orphans (
  kind STRING,
  id STRING,
  order_id BIGINT,
  amount DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW deduplicated_orders AS
SELECT order_id, status, amount
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY order_time DESC) AS rn
  FROM orders
) WHERE rn = 1;

-- The gateway repeats messages: a payment counts once.
CREATE TEMPORARY VIEW captured AS
SELECT order_id, SUM(amount) AS amount
FROM (SELECT DISTINCT payment_id, order_id, amount, state FROM payments)
WHERE state = 'captured'
GROUP BY order_id;

CREATE TEMPORARY VIEW refunded AS
SELECT order_id, SUM(amount) AS amount FROM refunds GROUP BY order_id;

BEGIN STATEMENT SET;

INSERT INTO reconciliation
SELECT
  o.order_id,
  o.amount,
  COALESCE(p.amount, 0),
  COALESCE(r.amount, 0),
  COALESCE(p.amount, 0) - COALESCE(r.amount, 0) - COALESCE(o.amount, 0),
  CASE
    WHEN o.status = 'CANCELLED' AND p.amount IS NULL THEN 'ok'
    WHEN p.amount IS NULL THEN 'unpaid'
    WHEN p.amount < o.amount THEN 'underpaid'
    WHEN p.amount > o.amount THEN 'overpaid'
    ELSE 'ok'
  END
FROM deduplicated_orders AS o
LEFT JOIN captured AS p ON p.order_id = o.order_id
LEFT JOIN refunded AS r ON r.order_id = o.order_id;

INSERT INTO orphans
SELECT 'payment', payment_id, order_id, amount
FROM payments AS p
WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.order_id = p.order_id)
UNION ALL
SELECT 'refund', CAST(refund_id AS STRING), order_id, amount
FROM refunds AS r
WHERE r.order_id NOT IN (SELECT order_id FROM orders WHERE order_id IS NOT NULL);

END;
