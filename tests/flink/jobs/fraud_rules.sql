-- Rule engine for card transactions: each rule adds points, an account with enough points becomes a case.
SET 'pipeline.name' = 'fraud-rules';
SET 'table.exec.state.ttl' = '3 d';
SET 'parallelism.default' = '4';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency CHAR(3),
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE accounts (
  account_id STRING,
  owner STRING,
  kind STRING,
  limit_amount DECIMAL(12, 2),
  country STRING,
  blocked BOOLEAN,
  PRIMARY KEY (account_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/accounts.json',
  'format' = 'json',
  'source.changelog' = 'true'
);

CREATE TABLE merchants (
  merchant_id INT,
  merchant STRING,
  mcc STRING,
  risk STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/merchants.json', 'format' = 'json');

CREATE TABLE blocklist (
  account_id STRING,
  reason STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/blocklist.json', 'format' = 'json');

CREATE TABLE findings (
  tx_id BIGINT,
  account_id STRING,
  rule STRING,
  points INT,
  amount DECIMAL(12, 2)
) WITH ('connector' = 'print');

CREATE TABLE cases (
  account_id STRING,
  owner STRING,
  points INT,
  findings BIGINT,
  rules BIGINT,
  blocked BOOLEAN,
  severity STRING,
  PRIMARY KEY (account_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW hits AS
-- 1: more than the account's limit
SELECT t.tx_id, t.account_id, 'over-limit' AS rule, 30 AS points, t.amount
FROM transactions AS t
JOIN accounts AS a ON t.account_id = a.account_id
WHERE t.amount > a.limit_amount
UNION ALL
-- 2: risky merchant without a card
SELECT t.tx_id, t.account_id, 'risky-merchant', CASE WHEN t.card_present THEN 5 ELSE 20 END, t.amount
FROM transactions AS t
JOIN merchants AS m ON t.merchant_id = m.merchant_id AND m.risk = 'high'
UNION ALL
-- 3: abroad, card not present
SELECT t.tx_id, t.account_id, 'abroad', 15, t.amount
FROM transactions AS t
JOIN accounts AS a ON t.account_id = a.account_id AND t.country <> a.country
WHERE t.card_present IS FALSE
UNION ALL
-- 4: somebody has reported the account
SELECT t.tx_id, t.account_id, 'blocklist', 100, t.amount
FROM transactions AS t
WHERE t.account_id IN (SELECT b.account_id FROM blocklist AS b WHERE b.reason <> 'test')
UNION ALL
-- 5: no such account
SELECT t.tx_id, t.account_id, 'unknown-account', 50, t.amount
FROM transactions AS t
WHERE NOT EXISTS (SELECT 1 FROM accounts AS a WHERE a.account_id = t.account_id);

EXECUTE STATEMENT SET BEGIN
INSERT INTO findings SELECT tx_id, account_id, rule, points, amount FROM hits WHERE amount > 0;

INSERT INTO cases
SELECT /*+ STATE_TTL('h' = '3 d', 'a' = '365 d') */
  h.account_id,
  a.owner,
  h.points,
  h.findings,
  h.rules,
  a.blocked,
  CASE WHEN h.points >= 200 THEN 'critical' WHEN h.points >= 100 THEN 'high' ELSE 'watch' END
FROM (
  SELECT account_id, SUM(points) AS points, COUNT(*) AS findings, COUNT(DISTINCT rule) AS rules
  FROM hits
  GROUP BY account_id
  HAVING SUM(points) >= 40
) AS h
LEFT JOIN accounts AS a ON h.account_id = a.account_id;
END;
