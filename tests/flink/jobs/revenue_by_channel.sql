-- Revenue by hour and channel, the best hours of a sliding half day, and the order value of each quarter of a day.
SET 'pipeline.name' = 'revenue-by-channel';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '2 s';
SET 'table.exec.mini-batch.size' = '5000';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  channel STRING,
  currency STRING,
  amount DECIMAL(12, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE revenue_per_hour (
  channel STRING,
  hour_start TIMESTAMP(3),
  hour_end TIMESTAMP(3),
  orders BIGINT,
  customers BIGINT,
  revenue DECIMAL(38, 2),
  largest DECIMAL(12, 2),
  PRIMARY KEY (channel, hour_start) NOT ENFORCED
) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:shop.db', 'table-name' = 'revenue_per_hour');

CREATE TABLE top_channels (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  place BIGINT,
  channel STRING,
  revenue DECIMAL(38, 2)
) WITH ('connector' = 'filesystem', 'path' = 'out/top_channels', 'format' = 'json');

CREATE TABLE revenue_by_level (
  window_start TIMESTAMP(3),
  channel STRING,
  currency STRING,
  level BIGINT,
  revenue DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW valid_orders AS
SELECT order_id, customer_id, COALESCE(UPPER(channel), 'UNKNOWN') AS channel, currency, amount, order_time
FROM orders
WHERE status NOT IN ('CANCELLED', 'FRAUD');

EXECUTE STATEMENT SET BEGIN

INSERT INTO revenue_per_hour
SELECT channel, window_start, window_end, COUNT(*), COUNT(DISTINCT customer_id), SUM(amount), MAX(amount)
FROM TABLE(TUMBLE(TABLE valid_orders, DESCRIPTOR(order_time), INTERVAL '1' HOUR))
GROUP BY channel, window_start, window_end;

INSERT INTO top_channels
SELECT window_start, window_end, place, channel, revenue
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY revenue DESC, channel) AS place
  FROM (
    SELECT window_start, window_end, channel, SUM(amount) AS revenue
    FROM TABLE(HOP(TABLE valid_orders, DESCRIPTOR(order_time), INTERVAL '3' HOURS, INTERVAL '12' HOURS))
    GROUP BY window_start, window_end, channel
  )
)
WHERE place <= 2;

INSERT INTO revenue_by_level
SELECT window_start, channel, currency, GROUPING_ID(channel, currency), SUM(amount)
FROM TABLE(TUMBLE(TABLE valid_orders, DESCRIPTOR(order_time), INTERVAL '6' HOURS))
GROUP BY window_start, window_end, GROUPING SETS ((channel, currency), (channel), ());

END;
