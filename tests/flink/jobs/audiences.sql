-- Audiences for campaigns, as sets of users.
SET 'pipeline.name' = 'audiences';
SET 'table.exec.state.ttl' = '14 d';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  shown_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

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
  event_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/page_events.json', 'format' = 'json');

CREATE TABLE audiences (
  audience STRING,
  user_id BIGINT
) WITH ('connector' = 'print');

CREATE TABLE audience_sizes (
  audience STRING,
  users BIGINT,
  PRIMARY KEY (audience) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW buyers AS
SELECT DISTINCT user_id FROM page_events WHERE event_type = 'purchase' AND user_id IS NOT NULL;

CREATE TEMPORARY VIEW members AS
SELECT 'buyers' AS audience, user_id FROM buyers
UNION ALL
SELECT 'seen and bought', user_id FROM (
  SELECT user_id FROM impressions
  INTERSECT
  SELECT user_id FROM buyers
)
UNION ALL
SELECT 'not reached', user_id FROM (
  SELECT user_id FROM page_events WHERE user_id IS NOT NULL
  EXCEPT
  SELECT user_id FROM impressions
)
UNION ALL
SELECT 'anyone', user_id FROM (
  SELECT user_id FROM impressions WHERE placement = 'feed'
  UNION
  SELECT user_id FROM exposures WHERE experiment LIKE 'checkout%'
)
UNION ALL
SELECT 'loyal', user_id FROM page_events
WHERE user_id IS NOT NULL
GROUP BY user_id
HAVING COUNT(DISTINCT session_id) >= 3 AND COUNT(*) FILTER (WHERE event_type = 'purchase') > 0;

INSERT INTO audiences SELECT audience, user_id FROM members;

INSERT INTO audience_sizes SELECT audience, COUNT(*) FROM members GROUP BY audience HAVING COUNT(*) > 1;
