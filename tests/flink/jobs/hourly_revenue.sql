-- Turnover of each hour and so far today, in the reports of the morning.
SET 'pipeline.name' = 'hourly-revenue';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3),
  WATERMARK FOR booked_at AS booked_at - INTERVAL '5' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE revenue_by_hour (
  hour_start TIMESTAMP(3),
  hour_end TIMESTAMP(3),
  country STRING,
  payments BIGINT,
  accounts BIGINT,
  turnover DECIMAL(38, 2),
  largest DECIMAL(12, 2)
) WITH ('connector' = 'print');

CREATE TABLE revenue_so_far (
  window_end TIMESTAMP(3),
  currency STRING,
  payments BIGINT,
  turnover DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE refund_share (
  window_start TIMESTAMP(3),
  refunds BIGINT,
  payments BIGINT,
  `percent` DECIMAL(10, 1)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO revenue_by_hour
SELECT window_start, window_end, country, COUNT(*), COUNT(DISTINCT account_id), SUM(amount), MAX(amount)
FROM TABLE(TUMBLE(TABLE transactions, DESCRIPTOR(booked_at), INTERVAL '1' HOUR))
WHERE amount > 0
GROUP BY window_start, window_end, country;

INSERT INTO revenue_so_far
SELECT window_end, currency, COUNT(*), SUM(amount)
FROM TABLE(CUMULATE(TABLE transactions, DESCRIPTOR(booked_at), INTERVAL '2' HOUR, INTERVAL '1' DAY))
GROUP BY currency, window_start, window_end;

INSERT INTO refund_share
SELECT
  window_start,
  COUNT(*) FILTER (WHERE amount < 0),
  COUNT(*),
  CAST(100.0 * COUNT(*) FILTER (WHERE amount < 0) / COUNT(*) AS DECIMAL(10, 1))
FROM TABLE(HOP(TABLE transactions, DESCRIPTOR(booked_at), INTERVAL '1' HOUR, INTERVAL '3' HOUR))
GROUP BY window_start, window_end
HAVING COUNT(*) >= 10;
END;
