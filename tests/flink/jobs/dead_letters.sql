-- Validation of incoming orders: what is good continues, what is not goes to a dead letter table with the reason.
SET 'pipeline.name' = 'dead-letters';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  channel STRING,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  problem AS CASE
    WHEN customer_id IS NULL THEN 'no customer'
    WHEN amount IS NULL THEN 'no amount'
    WHEN amount > 390 THEN 'amount too large'
    WHEN currency NOT IN ('EUR', 'USD') THEN 'currency ' || currency
  END
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE valid_orders (
  order_id BIGINT NOT NULL,
  customer_id BIGINT,
  channel VARCHAR(5),
  amount DECIMAL(8, 1),
  order_day DATE
) WITH ('connector' = 'filesystem', 'path' = 'out/valid', 'format' = 'json');

CREATE TABLE dead_letters (
  order_id BIGINT,
  problem STRING,
  original STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/dead_letters', 'format' = 'json');

CREATE TABLE problem_counts (
  problem STRING,
  orders BIGINT,
  distinct_orders BIGINT,
  PRIMARY KEY (problem) NOT ENFORCED
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO valid_orders
SELECT order_id, customer_id, COALESCE(channel, 'other'), amount, CAST(order_time AS DATE)
FROM orders
WHERE problem IS NULL AND order_id IS NOT NULL;

INSERT INTO dead_letters (order_id, original, problem)
SELECT
  order_id,
  CONCAT_WS('|', CAST(customer_id AS STRING), status, channel, currency, CAST(amount AS STRING)),
  problem
FROM orders
WHERE problem IS NOT NULL;

INSERT INTO problem_counts
SELECT COALESCE(problem, 'none'), COUNT(*), COUNT(DISTINCT order_id) FROM orders GROUP BY COALESCE(problem, 'none');
END;
