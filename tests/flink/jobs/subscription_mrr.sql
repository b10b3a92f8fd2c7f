-- Monthly recurring revenue of a SaaS company by plan, churn, and customers with more than one subscription.
SET 'pipeline.name' = 'subscription-mrr';

CREATE TABLE subscriptions (
  subscription_id STRING,
  customer_id BIGINT,
  plan_code STRING,
  state STRING,
  seats INT,
  started_on DATE,
  PRIMARY KEY (subscription_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/subscriptions.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE mrr (
  plan_code STRING,
  plan_name STRING,
  subscriptions BIGINT,
  seats INT,
  mrr DECIMAL(20, 2),
  at_risk DECIMAL(20, 2),
  PRIMARY KEY (plan_code) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE churn (
  started_week BIGINT,
  started BIGINT,
  cancelled BIGINT,
  rate DECIMAL(5, 2),
  PRIMARY KEY (started_week) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE heavy_customers (
  customer_id BIGINT,
  plans STRING,
  seats INT,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW plans AS
SELECT plan_code, plan_name, CAST(price AS DECIMAL(8, 2)) AS price
FROM (VALUES ('free', 'Free', 0.0), ('basic', 'Basic', 9.9), ('pro', 'Professional', 29.5), ('max', 'Enterprise', 99.0))
  AS p (plan_code, plan_name, price);

EXECUTE STATEMENT SET BEGIN
INSERT INTO mrr
SELECT
  p.plan_code,
  MAX(p.plan_name),
  COUNT(s.subscription_id),
  COALESCE(SUM(s.seats), 0),
  COALESCE(SUM(CASE WHEN s.state IN ('active', 'past_due') THEN s.seats * p.price ELSE 0 END), 0),
  COALESCE(SUM(s.seats * p.price) FILTER (WHERE s.state = 'past_due'), 0)
FROM plans AS p
LEFT JOIN subscriptions AS s ON s.plan_code = p.plan_code AND s.state <> 'cancelled'
GROUP BY p.plan_code;

INSERT INTO churn
SELECT
  w,
  COUNT(*),
  COUNT(*) FILTER (WHERE state = 'cancelled'),
  CAST(100.0 * COUNT(*) FILTER (WHERE state = 'cancelled') / COUNT(*) AS DECIMAL(5, 2))
FROM (SELECT EXTRACT(WEEK FROM started_on) AS w, state FROM subscriptions)
GROUP BY w;

INSERT INTO heavy_customers
SELECT customer_id, CAST(COUNT(DISTINCT plan_code) AS STRING) || ' of ' || CAST(COUNT(*) AS STRING), SUM(seats)
FROM subscriptions
WHERE state <> 'cancelled'
GROUP BY customer_id
HAVING COUNT(*) > 1 OR SUM(seats) > 5;
END;
