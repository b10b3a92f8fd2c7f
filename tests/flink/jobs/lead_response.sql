-- Who was called within a day after they left their address, and how fast.
SET 'pipeline.name' = 'lead-response';

CREATE TABLE leads (
  lead_id BIGINT,
  company STRING,
  email STRING,
  phone STRING,
  source STRING,
  score INT,
  created_at TIMESTAMP(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/leads.json', 'format' = 'json');

CREATE TABLE touches (
  touch_id BIGINT,
  lead_id BIGINT,
  channel STRING,
  outcome STRING,
  touched_at TIMESTAMP(3),
  WATERMARK FOR touched_at AS touched_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/touches.json', 'format' = 'json');

CREATE TABLE contacted (
  lead_id BIGINT,
  source STRING,
  channel STRING,
  outcome STRING,
  minutes INT
) WITH ('connector' = 'print');

CREATE TABLE forgotten (
  lead_id BIGINT,
  company STRING,
  created_at TIMESTAMP(3)
) WITH ('connector' = 'print');

CREATE TABLE without_lead (
  touch_id BIGINT,
  lead_id BIGINT
) WITH ('connector' = 'print');

CREATE TABLE response_by_source (
  source STRING,
  leads BIGINT,
  fastest INT,
  PRIMARY KEY (source) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW responses AS
SELECT
  l.lead_id, l.source, l.company, l.created_at, t.channel, t.outcome,
  TIMESTAMPDIFF(MINUTE, l.created_at, t.touched_at) AS minutes
FROM leads AS l
LEFT JOIN touches AS t
  ON t.lead_id = l.lead_id
  AND t.touched_at BETWEEN l.created_at AND l.created_at + INTERVAL '1' DAY;

EXECUTE STATEMENT SET BEGIN
INSERT INTO contacted
SELECT lead_id, source, channel, outcome, minutes FROM responses WHERE channel IS NOT NULL;

INSERT INTO forgotten
SELECT lead_id, company, created_at FROM responses WHERE channel IS NULL;

INSERT INTO without_lead
SELECT t.touch_id, t.lead_id
FROM leads AS l
RIGHT JOIN touches AS t
  ON t.lead_id = l.lead_id
  AND l.created_at BETWEEN t.touched_at - INTERVAL '1' DAY AND t.touched_at
WHERE l.lead_id IS NULL;

INSERT INTO response_by_source
SELECT source, COUNT(DISTINCT lead_id), MIN(minutes)
FROM responses
WHERE outcome = 'positive'
GROUP BY source;
END;
