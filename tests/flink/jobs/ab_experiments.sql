-- Results of A/B tests: users by `variant`, how many were exposed and how many bought, and what they spent.
SET 'pipeline.name' = 'ab-experiments';
SET 'table.exec.state.ttl' = '14 d';

CREATE TABLE assignments (
  user_id BIGINT,
  experiment STRING,
  `variant` STRING,
  assigned_at TIMESTAMP(3),
  PRIMARY KEY (user_id, experiment) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'rows/assignments.json', 'format' = 'json');

CREATE TABLE exposures (
  user_id BIGINT,
  experiment STRING,
  exposed_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/exposures.json', 'format' = 'json');

CREATE TABLE page_events (
  event_id STRING,
  user_id BIGINT,
  session_id STRING,
  event_type STRING,
  url STRING,
  props STRING,
  event_time TIMESTAMP(3),
  purchase_value AS CASE WHEN event_type = 'purchase' THEN CAST(JSON_VALUE(props, '$.value') AS DECIMAL(10, 2)) END
) WITH ('connector' = 'filesystem', 'path' = 'rows/page_events.json', 'format' = 'json');

CREATE TABLE results (
  experiment STRING,
  `variant` STRING,
  users BIGINT,
  exposed BIGINT,
  buyers BIGINT,
  conversion DECIMAL(6, 4),
  revenue DECIMAL(38, 2),
  PRIMARY KEY (experiment, `variant`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE crossed_users (
  user_id BIGINT,
  experiments BIGINT,
  treated BIGINT
) WITH ('connector' = 'print');

CREATE TABLE leaks (
  user_id BIGINT,
  experiment STRING,
  exposures BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW exposed AS
SELECT user_id, experiment, MIN(exposed_at) AS first_exposed, COUNT(*) AS exposures
FROM exposures
GROUP BY user_id, experiment;

CREATE TEMPORARY VIEW bought AS
SELECT user_id, COUNT(*) AS purchases, SUM(purchase_value) AS revenue, MAX(event_time) AS last_purchase
FROM page_events
WHERE event_type = 'purchase' AND user_id IS NOT NULL
GROUP BY user_id;

EXECUTE STATEMENT SET BEGIN
INSERT INTO results
SELECT
  a.experiment,
  a.`variant`,
  COUNT(*),
  COUNT(x.user_id),
  COUNT(b.user_id) FILTER (WHERE x.user_id IS NOT NULL),
  CASE
    WHEN COUNT(x.user_id) = 0 THEN NULL
    ELSE CAST(CAST(COUNT(b.user_id) FILTER (WHERE x.user_id IS NOT NULL) AS DECIMAL(10, 4)) / COUNT(x.user_id)
      AS DECIMAL(6, 4))
  END,
  COALESCE(SUM(b.revenue) FILTER (WHERE b.last_purchase >= x.first_exposed), 0)
FROM assignments AS a
LEFT JOIN exposed AS x ON x.user_id = a.user_id AND x.experiment = a.experiment
LEFT JOIN bought AS b ON b.user_id = a.user_id
GROUP BY a.experiment, a.`variant`;

INSERT INTO crossed_users
SELECT user_id, COUNT(DISTINCT experiment), COUNT(*) FILTER (WHERE `variant` = 'treatment')
FROM assignments
GROUP BY user_id
HAVING COUNT(DISTINCT experiment) > 1;

INSERT INTO leaks
SELECT x.user_id, x.experiment, x.exposures
FROM exposed AS x
WHERE NOT EXISTS (
  SELECT 1 FROM assignments AS a WHERE a.user_id = x.user_id AND a.experiment = x.experiment
);
END;
