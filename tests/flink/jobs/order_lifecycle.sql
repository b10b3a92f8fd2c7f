-- How many orders are in which state, from the change stream of the order table (Debezium).
-- One source, three outputs: totals by state, a daily roll-up, and the open orders themselves.
SET 'pipeline.name' = 'order-lifecycle';
SET 'table.exec.state.ttl' = '30 d';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '2 s';
SET 'table.exec.mini-batch.size' = '5000';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/orders_cdc.json',
  'format' = 'json',
  'source.changelog' = 'true'
);

CREATE TABLE orders_by_status (
  status STRING,
  orders BIGINT,
  customers BIGINT,
  amount DECIMAL(38, 2),
  PRIMARY KEY (status) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE orders_per_day (
  `day` STRING,
  status STRING,
  level BIGINT,
  orders BIGINT,
  amount DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE open_orders (
  order_id BIGINT,
  customer_id BIGINT,
  size_class STRING,
  order_date DATE,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET
BEGIN

INSERT INTO orders_by_status
SELECT status, COUNT(*), COUNT(DISTINCT customer_id), SUM(amount)
FROM orders
GROUP BY status;

INSERT INTO orders_per_day
SELECT
  DATE_FORMAT(order_time, 'yyyy-MM-dd') AS `day`,
  status,
  GROUPING_ID(DATE_FORMAT(order_time, 'yyyy-MM-dd'), status),
  COUNT(*),
  SUM(COALESCE(amount, 0))
FROM orders
GROUP BY ROLLUP (DATE_FORMAT(order_time, 'yyyy-MM-dd'), status);

INSERT INTO open_orders
SELECT
  order_id,
  customer_id,
  CASE
    WHEN amount IS NULL THEN 'unknown'
    WHEN amount < 50 THEN 'small'
    WHEN amount BETWEEN 50 AND 200 THEN 'medium'
    ELSE 'large'
  END,
  CAST(order_time AS DATE)
FROM orders
WHERE status NOT IN ('CANCELLED', 'DELIVERED');

END;
