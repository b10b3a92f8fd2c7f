-- Orders and their payments within the same hours: a join of windows, orders that nobody paid in time, and methods by window.
SET 'pipeline.name' = 'checkout-windows';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  channel STRING,
  amount DECIMAL(12, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE payments (
  payment_id STRING,
  order_id BIGINT,
  `method` STRING,
  amount DECIMAL(12, 2),
  state STRING,
  paid_at TIMESTAMP(3),
  WATERMARK FOR paid_at AS paid_at - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/payments.json', 'format' = 'json');

CREATE TABLE paid_orders (
  window_start TIMESTAMP(3),
  order_id BIGINT,
  payment_id STRING,
  channel STRING,
  open_amount DECIMAL(13, 2)
) WITH ('connector' = 'filesystem', 'path' = 'out/paid_orders', 'format' = 'json');

CREATE TABLE unpaid_orders (
  window_end TIMESTAMP(3),
  order_id BIGINT,
  amount DECIMAL(12, 2)
) WITH ('connector' = 'print');

CREATE TABLE methods (
  window_start TIMESTAMP(3),
  orders BIGINT,
  payments BIGINT,
  order_total DECIMAL(38, 2),
  payment_total DECIMAL(38, 2)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN

INSERT INTO paid_orders
SELECT o.window_start, o.order_id, p.payment_id, o.channel, o.amount - p.amount
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '6' HOUR))) AS o
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid_at), INTERVAL '6' HOUR)) WHERE state <> 'failed') AS p
ON o.order_id = p.order_id AND o.window_start = p.window_start AND o.window_end = p.window_end;

INSERT INTO unpaid_orders
SELECT window_end, order_id, amount
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '6' HOUR))) AS o
WHERE NOT EXISTS (
  SELECT 1 FROM (SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid_at), INTERVAL '6' HOUR))) AS p
  WHERE o.order_id = p.order_id AND o.window_start = p.window_start AND o.window_end = p.window_end
);

INSERT INTO methods
SELECT COALESCE(o.window_start, p.window_start), o.orders, p.payments, o.total, p.total
FROM (
  SELECT window_start, window_end, COUNT(*) AS orders, SUM(amount) AS total
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '3' HOUR))
  GROUP BY window_start, window_end
) AS o
FULL JOIN (
  SELECT window_start, window_end, COUNT(*) AS payments, SUM(amount) AS total
  FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid_at), INTERVAL '3' HOUR))
  GROUP BY window_start, window_end
) AS p
ON o.window_start = p.window_start AND o.window_end = p.window_end;

END;
