-- Cards that are used too often, for too much, or in two countries within two hours.
SET 'pipeline.name' = 'fraud-velocity';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3),
  WATERMARK FOR booked_at AS booked_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE blocklist (
  account_id STRING,
  reason STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/blocklist.json', 'format' = 'json');

CREATE TABLE bursts (
  tx_id BIGINT,
  account_id STRING,
  booked_at TIMESTAMP(3),
  payments BIGINT,
  spent DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE impossible_travel (
  account_id STRING,
  first_tx BIGINT,
  first_country STRING,
  second_tx BIGINT,
  second_country STRING,
  minutes INT
) WITH ('connector' = 'print');

CREATE TABLE hourly_alerts (
  window_start TIMESTAMP(3),
  accounts BIGINT,
  blocked BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW with_velocity AS
SELECT
  tx_id, account_id, booked_at, amount,
  COUNT(*) OVER w AS payments,
  SUM(amount) OVER w AS spent
FROM transactions
WHERE amount > 0
WINDOW w AS (
  PARTITION BY account_id ORDER BY booked_at RANGE BETWEEN INTERVAL '90' MINUTE PRECEDING AND CURRENT ROW
);

EXECUTE STATEMENT SET BEGIN
INSERT INTO bursts
SELECT tx_id, account_id, booked_at, payments, spent FROM with_velocity WHERE payments >= 3 OR spent > 900;

INSERT INTO impossible_travel
SELECT
  a.account_id, a.tx_id, a.country, b.tx_id, b.country, TIMESTAMPDIFF(MINUTE, a.booked_at, b.booked_at)
FROM transactions AS a
JOIN transactions AS b
  ON a.account_id = b.account_id
  AND b.booked_at > a.booked_at
  AND b.booked_at <= a.booked_at + INTERVAL '2' HOUR
  AND a.country <> b.country
  AND a.card_present AND b.card_present;

INSERT INTO hourly_alerts
SELECT v.window_start, COUNT(DISTINCT v.account_id), COUNT(DISTINCT b.account_id)
FROM TABLE(TUMBLE(TABLE with_velocity, DESCRIPTOR(booked_at), INTERVAL '2' HOUR)) AS v
LEFT JOIN (SELECT DISTINCT account_id FROM blocklist) AS b ON b.account_id = v.account_id
WHERE v.payments >= 2
GROUP BY v.window_start, v.window_end;
END;
