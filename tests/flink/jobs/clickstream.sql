-- Web analytics: where visitors come from, funnels by session, what is in carts (JSON), searches.
SET 'pipeline.name' = 'clickstream';
SET 'table.exec.state.ttl' = '6 h';

CREATE TABLE page_events (
  event_id STRING,
  user_id BIGINT,
  session_id STRING,
  event_type STRING,
  url STRING,
  props STRING,
  event_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/page_events.json', 'format' = 'json');

CREATE TABLE page_views (
  event_id STRING,
  visitor STRING,
  host STRING,
  page STRING,
  source STRING,
  search_term STRING,
  hour_start STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/page_views', 'format' = 'json');

CREATE TABLE sessions (
  session_id STRING,
  events BIGINT,
  `views` BIGINT,
  carts BIGINT,
  purchases BIGINT,
  value_sum DECIMAL(38, 2),
  coupons BIGINT,
  started TIMESTAMP(3),
  seconds INT,
  PRIMARY KEY (session_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE funnel (
  step INT,
  name STRING,
  sessions BIGINT,
  PRIMARY KEY (step) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW enriched AS
SELECT
  *,
  COALESCE('u' || CAST(user_id AS STRING), 's:' || session_id) AS visitor,
  PARSE_URL(url, 'HOST') AS host,
  PARSE_URL(url, 'PATH') AS page,
  PARSE_URL(url, 'QUERY', 'utm_source') AS utm_source,
  CAST(JSON_VALUE(props, '$.value') AS DECIMAL(10, 2)) AS cart_value,
  JSON_VALUE(props, 'lax $.coupon') AS coupon,
  JSON_EXISTS(props, '$.items[0].sku') AS has_items
FROM page_events;

EXECUTE STATEMENT SET BEGIN
INSERT INTO page_views
SELECT
  event_id,
  visitor,
  host,
  page,
  CASE WHEN utm_source IS NOT NULL THEN utm_source WHEN page = '/' THEN 'direct' ELSE 'internal' END,
  NULLIF(REGEXP_EXTRACT(url, 'q=([^&]+)', 1), ''),
  DATE_FORMAT(event_time, 'yyyy-MM-dd HH:00')
FROM enriched
WHERE event_type IN ('view', 'search');

INSERT INTO sessions
SELECT
  session_id,
  COUNT(*),
  COUNT(*) FILTER (WHERE event_type = 'view'),
  COUNT(*) FILTER (WHERE event_type = 'cart' AND has_items),
  COUNT(*) FILTER (WHERE event_type = 'purchase'),
  SUM(cart_value),
  COUNT(DISTINCT coupon),
  MIN(event_time),
  TIMESTAMPDIFF(SECOND, MIN(event_time), MAX(event_time))
FROM enriched
GROUP BY session_id;

INSERT INTO funnel
SELECT step, name, COUNT(DISTINCT session_id)
FROM (
  SELECT 1 AS step, 'seen' AS name, session_id FROM page_events WHERE event_type = 'view'
  UNION ALL
  SELECT 2, 'cart', session_id FROM page_events WHERE event_type = 'cart'
  UNION ALL
  SELECT 3, 'bought', session_id FROM page_events WHERE event_type = 'purchase'
)
GROUP BY step, name;
END;
