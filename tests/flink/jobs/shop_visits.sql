-- Visits of a web shop: sessions of half an hour without an event, with the functions of the older syntax in one table.
SET 'pipeline.name' = 'shop-visits';
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE page_events (
  event_id STRING,
  user_id BIGINT,
  session_id STRING,
  event_type STRING,
  url STRING,
  event_time TIMESTAMP(3),
  WATERMARK FOR event_time AS event_time - INTERVAL '30' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/page_events.json', 'format' = 'json');

CREATE TABLE visits (
  user_id BIGINT,
  visit_start TIMESTAMP(3),
  visit_end TIMESTAMP(3),
  minutes INT,
  events BIGINT,
  carts BIGINT,
  bought BOOLEAN,
  pages STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/visits', 'format' = 'json');

CREATE TABLE visit_lengths (
  bucket STRING,
  day_start TIMESTAMP(3),
  visits BIGINT,
  average_events DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE type_bursts (
  event_type STRING,
  begins TIMESTAMP(3),
  ends TIMESTAMP(3),
  events BIGINT,
  users BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW user_visits AS
SELECT user_id, window_start AS visit_start, window_end AS visit_end, window_time AS visit_time,
  COUNT(*) AS events, SUM(CASE WHEN event_type = 'cart' THEN 1 ELSE 0 END) AS carts,
  MAX(CASE WHEN event_type = 'purchase' THEN 1 ELSE 0 END) AS bought, COUNT(DISTINCT url) AS pages
FROM TABLE(SESSION(TABLE page_events PARTITION BY user_id, DESCRIPTOR(event_time), INTERVAL '30' MINUTE))
GROUP BY user_id, window_start, window_end, window_time;

EXECUTE STATEMENT SET BEGIN

INSERT INTO visits
SELECT user_id, visit_start, visit_end, TIMESTAMPDIFF(MINUTE, visit_start, visit_end), events, carts, bought = 1,
  CAST(pages AS STRING)
FROM user_visits;

INSERT INTO visit_lengths
SELECT bucket, TUMBLE_START(visit_time, INTERVAL '1' DAY), COUNT(*), AVG(CAST(events AS DOUBLE))
FROM (
  SELECT visit_time, events, CASE WHEN events = 1 THEN 'bounce' WHEN events < 4 THEN 'short' ELSE 'long' END AS bucket
  FROM user_visits
)
GROUP BY bucket, TUMBLE(visit_time, INTERVAL '1' DAY);

INSERT INTO type_bursts
SELECT event_type, SESSION_START(event_time, INTERVAL '10' MINUTE), SESSION_END(event_time, INTERVAL '10' MINUTE),
  COUNT(*), COUNT(DISTINCT user_id)
FROM page_events
WHERE event_type IS NOT NULL
GROUP BY event_type, SESSION(event_time, INTERVAL '10' MINUTE)
HAVING COUNT(*) > 1;

END;
