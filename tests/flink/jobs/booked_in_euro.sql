-- Amounts in euro by the rate at the time of booking, which a later rate does not change.
SET 'pipeline.name' = 'booked-in-euro';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3),
  WATERMARK FOR booked_at AS booked_at
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE fx_rates (
  currency STRING,
  rate_to_eur DECIMAL(12, 6),
  valid_from TIMESTAMP(3),
  WATERMARK FOR valid_from AS valid_from - INTERVAL '10' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/fx_rates.json', 'format' = 'json');

CREATE TABLE booked (
  tx_id BIGINT,
  account_id STRING,
  amount DECIMAL(12, 2),
  currency STRING,
  rate DECIMAL(12, 6),
  amount_eur DECIMAL(14, 2)
) WITH ('connector' = 'print');

CREATE TABLE turnover_eur (
  window_start TIMESTAMP(3),
  currency STRING,
  bookings BIGINT,
  without_rate BIGINT,
  turnover DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW rates AS
SELECT currency, rate_to_eur, valid_from
FROM (
  SELECT currency, rate_to_eur, valid_from,
    ROW_NUMBER() OVER (PARTITION BY currency ORDER BY valid_from DESC) AS n
  FROM fx_rates
)
WHERE n = 1;

CREATE TEMPORARY VIEW converted AS
SELECT
  t.tx_id, t.account_id, t.amount, t.currency, r.rate_to_eur AS rate,
  CAST(t.amount * r.rate_to_eur AS DECIMAL(14, 2)) AS amount_eur,
  t.booked_at
FROM transactions AS t
LEFT JOIN rates FOR SYSTEM_TIME AS OF t.booked_at AS r ON t.currency = r.currency;

EXECUTE STATEMENT SET BEGIN
INSERT INTO booked
SELECT tx_id, account_id, amount, currency, rate, amount_eur FROM converted;

INSERT INTO turnover_eur
SELECT window_start, currency, COUNT(*), COUNT(*) FILTER (WHERE rate IS NULL), SUM(amount_eur)
FROM TABLE(TUMBLE(TABLE converted, DESCRIPTOR(booked_at), INTERVAL '4' HOUR))
GROUP BY window_start, window_end, currency;
END;
