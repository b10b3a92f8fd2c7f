-- Tax report: invoices by rate and month, with totals, and what is to be paid to the tax office.
SET 'pipeline.name' = 'tax-report';

CREATE TABLE invoices (
  invoice_id BIGINT,
  subscription_id STRING,
  `period` STRING,
  net DECIMAL(10, 2),
  tax_rate DECIMAL(4, 2),
  paid BOOLEAN,
  due_on DATE,
  tax AS CAST(ROUND(net * tax_rate, 2) AS DECIMAL(10, 2))
) WITH ('connector' = 'filesystem', 'path' = 'rows/invoices.json', 'format' = 'json');

CREATE TABLE report (
  `year` STRING,
  `month` STRING,
  tax_rate DECIMAL(4, 2),
  level BIGINT,
  invoices BIGINT,
  net DECIMAL(38, 2),
  tax DECIMAL(38, 2),
  unpaid DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE payable (
  `period` STRING,
  tax DECIMAL(38, 2),
  rates BIGINT,
  verdict STRING,
  PRIMARY KEY (`period`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE largest (
  invoice_id BIGINT,
  net DECIMAL(10, 2),
  above_average DECIMAL(38, 6)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO report
SELECT
  `year`, `month`, tax_rate, GROUPING_ID(`year`, `month`, tax_rate), COUNT(*), SUM(net), SUM(tax),
  COALESCE(SUM(net + tax) FILTER (WHERE paid IS NOT TRUE), 0)
FROM (SELECT *, SUBSTRING(`period`, 1, 4) AS `year`, SPLIT_INDEX(`period`, '-', 1) AS `month` FROM invoices)
GROUP BY ROLLUP (`year`, `month`, tax_rate);

INSERT INTO payable
SELECT
  `period`, SUM(tax), COUNT(DISTINCT tax_rate),
  CASE WHEN SUM(tax) > 40 THEN 'advance payment' WHEN SUM(tax) > 0 THEN 'with return' ELSE 'none' END
FROM invoices
WHERE paid
GROUP BY `period`;

INSERT INTO largest
SELECT i.invoice_id, i.net, i.net - a.average
FROM invoices AS i
JOIN (SELECT AVG(net) AS average FROM invoices) AS a ON i.net > a.average
ORDER BY net DESC, invoice_id
LIMIT 5;
END;
