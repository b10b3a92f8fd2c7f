-- General ledger: balances by account and cost centre, and vouchers whose two sides differ.
SET 'pipeline.name' = 'trial-balance';

CREATE TABLE ledger_entries (
  entry_id BIGINT,
  voucher STRING,
  ledger STRING,
  side CHAR(1),
  amount DECIMAL(14, 2),
  cost_center STRING,
  booked_on DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/ledger_entries.json', 'format' = 'json');

CREATE TABLE balances (
  ledger_class STRING,
  ledger STRING,
  cost_center STRING,
  grouping_level BIGINT,
  debit DECIMAL(38, 2),
  credit DECIMAL(38, 2),
  balance DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE unbalanced_vouchers (
  voucher STRING,
  debit DECIMAL(38, 2),
  credit DECIMAL(38, 2),
  gap DECIMAL(38, 2),
  PRIMARY KEY (voucher) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE monthly (
  `month` STRING,
  ledger STRING,
  entries BIGINT,
  turnover DECIMAL(38, 2)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO balances
WITH signed AS (
  SELECT
    CASE SUBSTRING(ledger FROM 1 FOR 1) WHEN '1' THEN 'assets' WHEN '4' THEN 'revenue' ELSE 'expenses' END AS class,
    ledger,
    COALESCE(cost_center, 'none') AS cost_center,
    IF(side = 'D', amount, 0) AS debit,
    IF(side = 'C', amount, 0) AS credit
  FROM ledger_entries
)
SELECT
  class, ledger, cost_center, GROUPING_ID(class, ledger, cost_center), SUM(debit), SUM(credit), SUM(debit) - SUM(credit)
FROM signed
GROUP BY GROUPING SETS ((class, ledger, cost_center), (class, ledger), (class), ());

INSERT INTO unbalanced_vouchers
SELECT voucher, d, c, d - c
FROM (
  SELECT
    voucher,
    SUM(amount) FILTER (WHERE side = 'D') AS d,
    SUM(amount) FILTER (WHERE side = 'C') AS c
  FROM ledger_entries
  GROUP BY voucher
)
WHERE d <> c OR d IS NULL OR c IS NULL;

INSERT INTO monthly
SELECT CONCAT(CAST(YEAR(booked_on) AS STRING), '-', LPAD(CAST(MONTH(booked_on) AS STRING), 2, '0')) AS `month`, ledger,
  COUNT(*), SUM(amount)
FROM ledger_entries
GROUP BY CONCAT(CAST(YEAR(booked_on) AS STRING), '-', LPAD(CAST(MONTH(booked_on) AS STRING), 2, '0')), ledger;
END;
