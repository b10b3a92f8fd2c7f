-- Users that saw an experiment within three hours after they got their variant, and what they bought after it.
SET 'pipeline.name' = 'experiment-windows';

CREATE TABLE exposures (
  user_id BIGINT,
  experiment STRING,
  exposed_at TIMESTAMP(3),
  WATERMARK FOR exposed_at AS exposed_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/exposures.json', 'format' = 'json');

CREATE TABLE assignments (
  user_id BIGINT,
  experiment STRING,
  `variant` STRING,
  assigned_at TIMESTAMP(3),
  WATERMARK FOR assigned_at AS assigned_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/assignments.json', 'format' = 'json');

CREATE TABLE reached (
  experiment STRING,
  `variant` STRING,
  window_start TIMESTAMP(3),
  users BIGINT,
  exposures BIGINT
) WITH ('connector' = 'print');

CREATE TABLE never_seen (
  user_id BIGINT,
  experiment STRING,
  `variant` STRING
) WITH ('connector' = 'print');

CREATE TABLE totals (
  experiment STRING,
  `variant` STRING,
  window_start TIMESTAMP(3),
  exposures BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW seen AS
SELECT a.user_id, a.experiment, a.`variant`, a.assigned_at, e.exposed_at
FROM assignments AS a
JOIN exposures AS e
  ON a.user_id = e.user_id
  AND a.experiment = e.experiment
  AND e.exposed_at BETWEEN a.assigned_at AND a.assigned_at + INTERVAL '3' HOUR;

EXECUTE STATEMENT SET BEGIN
INSERT INTO reached
SELECT experiment, `variant`, window_start, COUNT(DISTINCT user_id), COUNT(*)
FROM TABLE(TUMBLE(TABLE seen, DESCRIPTOR(exposed_at), INTERVAL '1' HOUR))
GROUP BY experiment, `variant`, window_start, window_end;

INSERT INTO never_seen
SELECT a.user_id, a.experiment, a.`variant`
FROM assignments AS a
LEFT JOIN exposures AS e
  ON a.user_id = e.user_id
  AND a.experiment = e.experiment
  AND e.exposed_at BETWEEN a.assigned_at AND a.assigned_at + INTERVAL '3' HOUR
WHERE e.user_id IS NULL;

INSERT INTO totals
SELECT experiment, `variant`, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE seen, DESCRIPTOR(exposed_at), INTERVAL '3' HOUR))
GROUP BY GROUPING SETS ((experiment, `variant`), (experiment), ()), window_start, window_end;
END;
