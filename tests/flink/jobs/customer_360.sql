-- One row a customer for the service desk: profile, orders, payments, tickets. Four streams, each with a TTL of its own.
SET 'pipeline.name' = 'customer-360';
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  email STRING,
  country STRING,
  segment STRING,
  created_at TIMESTAMP(3),
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/customers.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/orders_cdc.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE payments (
  payment_id STRING,
  order_id BIGINT,
  `method` STRING,
  amount DECIMAL(10, 2),
  state STRING,
  paid_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/payments.json', 'format' = 'json');

CREATE TABLE tickets (
  ticket_id BIGINT,
  customer_id BIGINT,
  priority STRING,
  status STRING,
  PRIMARY KEY (ticket_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/tickets.json', 'format' = 'json', 'source.changelog' = 'upsert'
);

CREATE TABLE customer_360 (
  customer_id BIGINT,
  display_name STRING,
  domain STRING,
  open_orders BIGINT,
  spent DECIMAL(38, 2),
  paid DECIMAL(38, 2),
  open_tickets BIGINT,
  flag STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH ('connector' = 'print');

INSERT INTO customer_360
WITH order_totals AS (
  SELECT
    customer_id,
    COUNT(*) FILTER (WHERE status IN ('NEW', 'PAID')) AS open_orders,
    SUM(amount) FILTER (WHERE status <> 'CANCELLED') AS spent
  FROM orders
  GROUP BY customer_id
),
paid_totals AS (
  SELECT o.customer_id, SUM(p.amount) AS paid
  FROM payments AS p
  JOIN orders AS o ON p.order_id = o.order_id
  WHERE p.state = 'captured'
  GROUP BY o.customer_id
),
ticket_totals AS (
  SELECT customer_id, COUNT(*) AS open_tickets, MIN(priority) AS top_priority
  FROM tickets
  WHERE status <> 'solved'
  GROUP BY customer_id
)
SELECT /*+ STATE_TTL('c' = '3650 d', 'o' = '90 d', 'p' = '90 d', 't' = '30 d') */
  c.customer_id,
  c.name || COALESCE(' (' || c.country || ')', ''),
  SUBSTRING(c.email, POSITION('@' IN c.email) + 1),
  COALESCE(o.open_orders, 0),
  o.spent,
  COALESCE(p.paid, 0),
  COALESCE(t.open_tickets, 0),
  CASE
    WHEN t.top_priority = 'P1' THEN 'urgent'
    WHEN p.paid < o.spent THEN 'owes'
    WHEN c.segment = 'vip' THEN 'vip'
  END
FROM customers AS c
LEFT JOIN order_totals AS o ON c.customer_id = o.customer_id
LEFT JOIN paid_totals AS p ON c.customer_id = p.customer_id
LEFT JOIN ticket_totals AS t ON c.customer_id = t.customer_id;
