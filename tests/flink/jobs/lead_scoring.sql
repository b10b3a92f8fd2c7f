-- CRM: leads with their touches, a score and its band; the pipeline of opportunities by owner.
SET 'pipeline.name' = 'lead-scoring';
SET 'table.exec.state.ttl' = '180 d';

CREATE TABLE leads (
  lead_id BIGINT,
  company STRING,
  email STRING,
  phone STRING,
  source STRING,
  score INT,
  created_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/leads.json', 'format' = 'json');

CREATE TABLE touches (
  touch_id BIGINT,
  lead_id BIGINT,
  channel STRING,
  outcome STRING,
  touched_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/touches.json', 'format' = 'json');

CREATE TABLE opportunities (
  opportunity_id BIGINT,
  lead_id BIGINT,
  stage STRING,
  value_eur DECIMAL(12, 2),
  owner STRING,
  updated_at TIMESTAMP(3),
  PRIMARY KEY (opportunity_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/opportunities.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE scored_leads (
  lead_id BIGINT,
  company STRING,
  score INT,
  band STRING,
  channels STRING,
  next_step STRING
) WITH ('connector' = 'print');

CREATE TABLE owner_pipeline (
  owner STRING,
  stage STRING,
  deals BIGINT,
  `value` DECIMAL(38, 2),
  weighted DECIMAL(38, 2),
  PRIMARY KEY (owner, stage) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE untouched_leads (
  lead_id BIGINT,
  source STRING
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW touch_summary AS
SELECT
  lead_id,
  LISTAGG(channel, ' > ') AS channels,
  SUM(CASE outcome WHEN 'positive' THEN 10 WHEN 'negative' THEN -10 ELSE 1 END) AS points
FROM touches
GROUP BY lead_id;

EXECUTE STATEMENT SET BEGIN
INSERT INTO scored_leads
SELECT
  lead_id, company, total,
  CASE WHEN total >= 80 THEN 'A' WHEN total >= 40 THEN 'B' ELSE 'C' END,
  channels,
  IF(email IS NULL AND phone IS NULL, 'find contact', IF(phone IS NULL, 'write', 'call'))
FROM (
  SELECT l.*, t.channels, COALESCE(l.score, 0) + COALESCE(t.points, 0) AS total
  FROM leads AS l
  LEFT JOIN touch_summary AS t ON l.lead_id = t.lead_id
)
WHERE total > 0;

INSERT INTO owner_pipeline
SELECT
  owner, stage, COUNT(*), SUM(value_eur),
  SUM(CAST(value_eur * CASE stage WHEN 'won' THEN 1.0 WHEN 'propose' THEN 0.5 WHEN 'qualify' THEN 0.1 ELSE 0.0 END
    AS DECIMAL(14, 2)))
FROM opportunities
GROUP BY owner, stage;

INSERT INTO untouched_leads
SELECT lead_id, source FROM leads
WHERE lead_id NOT IN (SELECT lead_id FROM touches WHERE lead_id IS NOT NULL) AND lead_id IS NOT NULL;
END;
