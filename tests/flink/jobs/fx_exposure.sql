-- Turnover of accounts in euro, by the rate that is valid now: a new rate restates all amounts of its currency.
SET 'pipeline.name' = 'fx-exposure';
SET 'table.exec.state.ttl' = '90 d';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3),
  direction AS CASE WHEN amount < 0 THEN 'in' ELSE 'out' END
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE fx_rates (
  currency STRING,
  rate_to_eur DECIMAL(12, 6),
  valid_from TIMESTAMP(3),
  WATERMARK FOR valid_from AS valid_from
) WITH ('connector' = 'filesystem', 'path' = 'rows/fx_rates.json', 'format' = 'json');

CREATE TABLE exposure (
  currency STRING,
  direction STRING,
  transactions BIGINT,
  amount DECIMAL(38, 2),
  amount_eur DECIMAL(38, 2),
  rate DECIMAL(12, 6),
  PRIMARY KEY (currency, direction) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE account_turnover (
  account_id STRING,
  turnover_eur DECIMAL(38, 2),
  biggest_eur DECIMAL(38, 2),
  without_rate BIGINT,
  PRIMARY KEY (account_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE rate_moves (
  currency STRING,
  first_rate DECIMAL(12, 6),
  latest_rate DECIMAL(12, 6),
  change_percent DECIMAL(12, 4),
  PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW latest_rates AS
SELECT currency, rate_to_eur
FROM (
  SELECT currency, rate_to_eur, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY valid_from DESC) AS n FROM fx_rates
)
WHERE n = 1;

CREATE TEMPORARY VIEW in_euro AS
SELECT
  t.tx_id, t.account_id, t.currency, t.direction, t.amount, r.rate_to_eur,
  CAST(t.amount * r.rate_to_eur AS DECIMAL(14, 2)) AS amount_eur
FROM transactions AS t
LEFT JOIN latest_rates AS r ON t.currency = r.currency;

EXECUTE STATEMENT SET BEGIN
INSERT INTO exposure
SELECT currency, direction, COUNT(*), SUM(amount), SUM(amount_eur), MAX(rate_to_eur)
FROM in_euro
GROUP BY currency, direction;

INSERT INTO account_turnover
SELECT account_id, SUM(ABS(amount_eur)), MAX(ABS(amount_eur)), COUNT(*) FILTER (WHERE rate_to_eur IS NULL)
FROM in_euro
GROUP BY account_id;

INSERT INTO rate_moves
SELECT
  f.currency,
  f.rate_to_eur,
  l.rate_to_eur,
  CAST((l.rate_to_eur - f.rate_to_eur) / f.rate_to_eur * 100 AS DECIMAL(12, 4))
FROM (
  SELECT currency, rate_to_eur
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY valid_from) AS n FROM fx_rates)
  WHERE n = 1
) AS f
JOIN latest_rates AS l USING (currency)
WHERE f.currency <> 'EUR';
END;
