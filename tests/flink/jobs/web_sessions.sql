-- Visits: events of a user with less than 45 minutes between them, and what came of them.
SET 'pipeline.name' = 'web-sessions';

CREATE TABLE page_events (
  event_id STRING,
  user_id BIGINT,
  session_id STRING,
  event_type STRING,
  url STRING,
  props STRING,
  event_time TIMESTAMP(3),
  WATERMARK FOR event_time AS event_time - INTERVAL '30' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/page_events.json', 'format' = 'json');

CREATE TABLE visits (
  visitor STRING,
  started TIMESTAMP(3),
  ended TIMESTAMP(3),
  events BIGINT,
  pages BIGINT,
  bought BOOLEAN,
  cart_value DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE visits_per_hour (
  hour_start TIMESTAMP(3),
  visits BIGINT,
  with_purchase BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW events AS
SELECT
  COALESCE('u' || CAST(user_id AS STRING), 's:' || session_id) AS visitor,
  event_type,
  PARSE_URL(url, 'PATH') AS page,
  CAST(JSON_VALUE(props, '$.value') AS DECIMAL(10, 2)) AS cart_value,
  event_time
FROM page_events;

CREATE TEMPORARY VIEW sessions AS
SELECT
  visitor,
  window_start AS started,
  window_end AS ended,
  window_time AS closed_at,
  COUNT(*) AS events,
  COUNT(DISTINCT page) AS pages,
  COUNT(*) FILTER (WHERE event_type = 'purchase') AS purchases,
  SUM(cart_value) FILTER (WHERE event_type = 'cart') AS cart_value
FROM TABLE(SESSION(TABLE events PARTITION BY visitor, DESCRIPTOR(event_time), INTERVAL '45' MINUTE))
GROUP BY visitor, window_start, window_end, window_time;

EXECUTE STATEMENT SET BEGIN
INSERT INTO visits
SELECT visitor, started, ended, events, pages, purchases > 0, cart_value FROM sessions;

INSERT INTO visits_per_hour
SELECT window_start, COUNT(*), COUNT(*) FILTER (WHERE purchases > 0)
FROM TABLE(TUMBLE(TABLE sessions, DESCRIPTOR(closed_at), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
END;
