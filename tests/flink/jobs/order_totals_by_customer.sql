-- Revenue per customer, kept up to date while the customer master (CDC of the shop database) changes.
-- Read by the CRM dashboard; late duplicates of orders are removed by their order number.
SET 'pipeline.name' = 'order-totals-by-customer';
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE orders (
  order_id BIGINT COMMENT 'number of the order',
  customer_id BIGINT,
  status STRING,
  channel STRING,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) COMMENT 'orders as the web shop sends them, at least once'
WITH (
  'connector' = 'filesystem',
  'path' = 'rows/orders.json',
  'format' = 'json'
);

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  email STRING,
  country STRING,
  segment STRING,
  created_at TIMESTAMP(3),
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/customers.json',
  'format' = 'json',
  'source.changelog' = 'true'
);

CREATE TABLE customer_totals (
  customer_id BIGINT,
  customer STRING,
  segment STRING,
  orders BIGINT,
  cancelled BIGINT,
  revenue DECIMAL(38, 2),
  last_order TIMESTAMP(3),
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'print'
);

-- The newest version of each order counts.
CREATE TEMPORARY VIEW latest_orders AS
SELECT order_id, customer_id, status, amount, order_time
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY order_time DESC) AS row_num
  FROM orders
)
WHERE row_num = 1;

CREATE TEMPORARY VIEW totals AS
SELECT
  customer_id,
  COUNT(*) AS orders,
  COUNT(*) FILTER (WHERE status = 'CANCELLED') AS cancelled,
  SUM(CASE WHEN status <> 'CANCELLED' THEN amount ELSE 0 END) AS revenue,
  MAX(order_time) AS last_order
FROM latest_orders
WHERE customer_id IS NOT NULL
GROUP BY customer_id;

INSERT INTO customer_totals
SELECT /*+ STATE_TTL('t' = '30 d', 'c' = '365 d') */
  c.customer_id,
  UPPER(c.name) || ' <' || LOWER(COALESCE(c.email, '?')) || '>',
  c.segment,
  COALESCE(t.orders, 0),
  COALESCE(t.cancelled, 0),
  COALESCE(t.revenue, 0),
  t.last_order
FROM customers AS c
LEFT JOIN totals AS t ON c.customer_id = t.customer_id;
