-- The figures of the day for the shop's dashboard, one row each, and the same by channel.
SET 'pipeline.name' = 'shop-kpis';
SET 'table.exec.state.ttl' = '3 d';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  channel STRING,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  order_day AS DATE_FORMAT(order_time, 'yyyy-MM-dd')
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE daily (
  order_day STRING,
  orders BIGINT,
  customers BIGINT,
  web_share DOUBLE,
  revenue DECIMAL(38, 2),
  biggest DECIMAL(10, 2),
  PRIMARY KEY (order_day) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE by_channel (
  channel STRING,
  currency STRING,
  is_total BIGINT,
  orders BIGINT,
  revenue DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE returning_customers (
  customer_id BIGINT,
  orders BIGINT,
  days BIGINT,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO daily
SELECT
  order_day,
  COUNT(DISTINCT order_id),
  COUNT(DISTINCT customer_id),
  ROUND(CAST(COUNT(*) FILTER (WHERE channel = 'web') AS DOUBLE) / COUNT(*), 3),
  SUM(amount) FILTER (WHERE status NOT IN ('CANCELLED')),
  MAX(amount)
FROM orders
GROUP BY order_day;

INSERT INTO by_channel
SELECT COALESCE(channel, 'n/a'), currency, GROUPING(currency), COUNT(*), SUM(amount)
FROM orders
WHERE status <> 'CANCELLED'
GROUP BY GROUPING SETS ((COALESCE(channel, 'n/a'), currency), (COALESCE(channel, 'n/a')));

INSERT INTO returning_customers
SELECT customer_id, COUNT(*), COUNT(DISTINCT order_day)
FROM (SELECT DISTINCT order_id, customer_id, order_day FROM orders)
WHERE customer_id IS NOT NULL
GROUP BY customer_id
HAVING COUNT(*) BETWEEN 2 AND 10;
END;
