-- Dunning: what is overdue on the key date, in buckets of days, and what to send.
SET 'pipeline.name' = 'invoice-dunning';

CREATE TABLE invoices (
  invoice_id BIGINT,
  subscription_id STRING,
  `period` STRING,
  net DECIMAL(10, 2),
  tax_rate DECIMAL(4, 2),
  paid BOOLEAN,
  due_on DATE,
  gross AS CAST(net * (1 + tax_rate) AS DECIMAL(12, 2))
) WITH ('connector' = 'filesystem', 'path' = 'rows/invoices.json', 'format' = 'json');

CREATE TABLE subscriptions (
  subscription_id STRING,
  customer_id BIGINT,
  plan_code STRING,
  state STRING,
  PRIMARY KEY (subscription_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/subscriptions.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  email STRING,
  country STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/customers_snapshot.json', 'format' = 'json');

CREATE TABLE letters (
  invoice_id BIGINT,
  recipient STRING,
  subject STRING,
  gross DECIMAL(12, 2),
  days_overdue INT
) WITH ('connector' = 'print');

CREATE TABLE aging (
  bucket STRING,
  invoices BIGINT,
  net DECIMAL(38, 2),
  tax DECIMAL(38, 2),
  PRIMARY KEY (bucket) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE invoices_without_subscription LIKE letters;

CREATE TEMPORARY VIEW overdue AS
SELECT
  i.*,
  TIMESTAMPDIFF(DAY, CAST(i.due_on AS TIMESTAMP(3)), TIMESTAMP '2026-03-20 00:00:00') AS days
FROM invoices AS i
WHERE i.paid IS NOT TRUE AND i.due_on < DATE '2026-03-20';

EXECUTE STATEMENT SET BEGIN
INSERT INTO letters
SELECT
  o.invoice_id,
  COALESCE(c.email, 'post: ' || c.name),
  CASE WHEN o.days > 30 THEN 'Last reminder' ELSE 'Reminder' END || ' for ' || o.`period`,
  o.gross,
  o.days
FROM overdue AS o
JOIN subscriptions AS s ON o.subscription_id = s.subscription_id
JOIN customers AS c ON s.customer_id = c.customer_id
WHERE s.state <> 'cancelled';

INSERT INTO aging
SELECT bucket, COUNT(*), SUM(net), SUM(gross - net)
FROM (
  SELECT
    CASE WHEN days <= 10 THEN '01-10' WHEN days <= 20 THEN '11-20' WHEN days <= 30 THEN '21-30' ELSE '31+' END AS bucket,
    net,
    gross
  FROM overdue
)
GROUP BY bucket;

INSERT INTO invoices_without_subscription
SELECT invoice_id, subscription_id, CAST(NULL AS STRING), gross, days
FROM overdue AS o
WHERE NOT EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.subscription_id = o.subscription_id);
END;
