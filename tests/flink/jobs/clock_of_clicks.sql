-- Clicks and impressions of an ad server in windows of old jobs: rates by campaign, and instants in the zone of the office.
SET 'pipeline.name' = 'clock-of-clicks';
SET 'table.local-time-zone' = 'Europe/Berlin';

CREATE TABLE clicks (
  click_id STRING,
  impression_id STRING,
  `cost` DECIMAL(8, 2),
  valid BOOLEAN,
  clicked_at TIMESTAMP(3),
  WATERMARK FOR clicked_at AS clicked_at - INTERVAL '2' HOUR
) WITH ('connector' = 'filesystem', 'path' = 'rows/clicks.json', 'format' = 'json');

CREATE TABLE cost_per_quarter (
  quarter_start TIMESTAMP(3),
  clicks BIGINT,
  invalid BIGINT,
  spent DECIMAL(38, 2),
  dearest DECIMAL(8, 2)
) WITH ('connector' = 'filesystem', 'path' = 'out/cost_per_quarter', 'format' = 'json');

CREATE TABLE streaks (
  valid BOOLEAN,
  begins TIMESTAMP(3),
  ends TIMESTAMP(3),
  last_moment TIMESTAMP(3),
  clicks BIGINT
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN

INSERT INTO cost_per_quarter
SELECT TUMBLE_START(clicked_at, INTERVAL '15' MINUTE), COUNT(*), COUNT(*) FILTER (WHERE NOT valid), SUM(`cost`),
  MAX(`cost`)
FROM clicks
GROUP BY TUMBLE(clicked_at, INTERVAL '15' MINUTE)
HAVING COUNT(*) > 0 AND TUMBLE_END(clicked_at, INTERVAL '15' MINUTE) > TIMESTAMP '2026-03-01 00:30:00';

INSERT INTO streaks
SELECT valid, SESSION_START(clicked_at, INTERVAL '45' MINUTE), SESSION_END(clicked_at, INTERVAL '45' MINUTE),
  CAST(SESSION_ROWTIME(clicked_at, INTERVAL '45' MINUTE) AS TIMESTAMP(3)), COUNT(click_id)
FROM clicks
GROUP BY valid, SESSION(clicked_at, INTERVAL '45' MINUTE);

END;
