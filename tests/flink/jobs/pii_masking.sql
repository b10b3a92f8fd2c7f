-- The copy of customers and leads for analysts: nothing that identifies a person leaves this job.
SET 'pipeline.name' = 'pii-masking';

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  email STRING,
  country STRING,
  segment STRING,
  created_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/customers_snapshot.json', 'format' = 'json');

CREATE TABLE leads (
  lead_id BIGINT,
  company STRING,
  email STRING,
  phone STRING,
  source STRING,
  score INT,
  created_at TIMESTAMP(3),
  clean_email AS LOWER(TRIM(email))
) WITH ('connector' = 'filesystem', 'path' = 'rows/leads.json', 'format' = 'json');

CREATE TABLE masked_people (
  kind STRING,
  pseudonym STRING,
  initials STRING,
  email_domain STRING,
  masked_email STRING,
  created_month STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/masked_people', 'format' = 'json');

CREATE TABLE phones (
  lead_id BIGINT,
  digits STRING,
  area STRING,
  length_class STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/phones', 'format' = 'json');

CREATE TABLE domains (
  domain STRING,
  people BIGINT,
  first_seen TIMESTAMP(3),
  PRIMARY KEY (domain) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW people AS
SELECT 'customer' AS kind, CAST(customer_id AS STRING) AS id, name, LOWER(email) AS email, created_at FROM customers
UNION ALL
SELECT 'lead', CAST(lead_id AS STRING), company, clean_email, created_at FROM leads WHERE clean_email IS NOT NULL;

EXECUTE STATEMENT SET BEGIN
INSERT INTO masked_people
SELECT
  kind,
  SUBSTRING(SHA256(kind || ':' || id), 1, 16),
  UPPER(SUBSTRING(name, 1, 1)) || '.',
  SPLIT_INDEX(email, '@', 1),
  REGEXP_REPLACE(email, '^(.).*@', '*****@'),
  DATE_FORMAT(created_at, 'yyyy-MM')
FROM people;

INSERT INTO phones
SELECT
  lead_id,
  REGEXP_REPLACE(phone, '[^0-9]', ''),
  REGEXP_EXTRACT(phone, '^(\+49 [0-9]+|0[0-9]+)', 1),
  CASE WHEN CHAR_LENGTH(phone) > 12 THEN 'long' ELSE 'short' END
FROM leads
WHERE phone IS NOT NULL;

INSERT INTO domains
SELECT SPLIT_INDEX(email, '@', 1), COUNT(*), MIN(created_at) FROM people GROUP BY SPLIT_INDEX(email, '@', 1);
END;
