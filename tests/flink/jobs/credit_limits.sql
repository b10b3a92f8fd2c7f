-- Use of the credit limit by account, over accounts that change and are closed.
SET 'pipeline.name' = 'credit-limits';

CREATE TABLE accounts (
  account_id STRING,
  owner STRING,
  kind STRING,
  limit_amount DECIMAL(12, 2),
  country STRING,
  blocked BOOLEAN,
  PRIMARY KEY (account_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/accounts.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  booked_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE utilisation (
  account_id STRING,
  kind STRING,
  booked DECIMAL(38, 2),
  available DECIMAL(38, 2),
  `usage` STRING,
  PRIMARY KEY (account_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE country_risk (
  country STRING,
  accounts BIGINT,
  blocked BIGINT,
  limits DECIMAL(38, 2),
  foreign_share DECIMAL(10, 3),
  PRIMARY KEY (country) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE largest_bookings (
  account_id STRING,
  tx_id BIGINT,
  amount DECIMAL(12, 2),
  place BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW booked AS
SELECT account_id, SUM(amount) AS amount, COUNT(*) AS transactions FROM transactions GROUP BY account_id;

EXECUTE STATEMENT SET BEGIN
INSERT INTO utilisation
SELECT /*+ STATE_TTL('a' = '0 s', 'b' = '60 d') */
  a.account_id,
  UPPER(a.kind),
  COALESCE(b.amount, 0),
  a.limit_amount - COALESCE(b.amount, 0),
  CASE
    WHEN a.blocked THEN 'blocked'
    WHEN b.amount IS NULL THEN 'unused'
    WHEN b.amount > a.limit_amount THEN 'exceeded'
    WHEN b.amount > a.limit_amount * 0.8 THEN 'high'
    ELSE 'normal'
  END
FROM accounts AS a
LEFT JOIN booked AS b ON a.account_id = b.account_id;

INSERT INTO country_risk
SELECT
  a.country, COUNT(DISTINCT a.account_id), COUNT(DISTINCT a.account_id) FILTER (WHERE a.blocked), MAX(a.limit_amount),
  CAST(CAST(COUNT(*) FILTER (WHERE t.country <> a.country) AS DECIMAL(10, 3)) / COUNT(*) AS DECIMAL(10, 3))
FROM accounts AS a
JOIN transactions AS t ON t.account_id = a.account_id
GROUP BY a.country;

INSERT INTO largest_bookings
SELECT account_id, tx_id, amount, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY ABS(amount) DESC, tx_id) AS place FROM transactions
)
WHERE place <= 2 AND amount > 100;
END;
