-- Orders and their payments of the next six hours: what is open, what is paid twice, what nobody ordered.
SET 'pipeline.name' = 'unpaid-orders';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  channel STRING,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE payments (
  payment_id STRING,
  order_id BIGINT,
  `method` STRING,
  amount DECIMAL(10, 2),
  state STRING,
  paid_at TIMESTAMP(3),
  WATERMARK FOR paid_at AS paid_at - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/payments.json', 'format' = 'json');

CREATE TABLE settled (
  order_id BIGINT,
  payment_id STRING,
  difference DECIMAL(12, 2),
  minutes INT
) WITH ('connector' = 'print');

CREATE TABLE open_orders (
  order_id BIGINT,
  customer_id BIGINT,
  amount DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TABLE both_sides (
  order_id BIGINT,
  payment_id STRING,
  ordered DECIMAL(10, 2),
  paid DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TABLE paid_twice (
  order_id BIGINT,
  payments BIGINT,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE channel_days (
  channel STRING,
  window_start TIMESTAMP(3),
  orders BIGINT,
  amount DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW matched AS
SELECT
  o.order_id, o.customer_id, o.amount AS ordered, o.order_time, p.payment_id, p.amount AS paid, p.paid_at
FROM orders AS o
LEFT JOIN payments AS p
  ON o.order_id = p.order_id
  AND p.state = 'captured'
  AND p.paid_at BETWEEN o.order_time AND o.order_time + INTERVAL '6' HOUR;

EXECUTE STATEMENT SET BEGIN
INSERT INTO settled
SELECT order_id, payment_id, ordered - paid, TIMESTAMPDIFF(MINUTE, order_time, paid_at)
FROM matched
WHERE payment_id IS NOT NULL;

INSERT INTO open_orders
SELECT order_id, customer_id, ordered FROM matched WHERE payment_id IS NULL;

INSERT INTO both_sides
SELECT o.order_id, p.payment_id, o.amount, p.amount
FROM orders AS o
FULL JOIN payments AS p
  ON o.order_id = p.order_id
  AND p.paid_at >= o.order_time - INTERVAL '1' HOUR
  AND p.paid_at <= o.order_time + INTERVAL '3' HOUR;

INSERT INTO paid_twice
SELECT order_id, COUNT(*) FROM matched WHERE payment_id IS NOT NULL GROUP BY order_id HAVING COUNT(*) > 1;

INSERT INTO channel_days
SELECT channel, window_start, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' DAY))
GROUP BY channel, window_start, window_end;
END;
