-- Signs of life of devices from two streams: how often, how long silent, alarms with the value before them.
SET 'pipeline.name' = 'device-health';

CREATE TABLE device_events (
  event_id BIGINT,
  device_id STRING,
  payload STRING,
  event_time TIMESTAMP(3),
  WATERMARK FOR event_time AS event_time - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/device_events.json', 'format' = 'json');

CREATE TABLE readings (
  device_id STRING,
  metric STRING,
  reading DOUBLE,
  quality STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/readings.json', 'format' = 'json');

CREATE TABLE alive (
  device_id STRING,
  window_start TIMESTAMP(3),
  signs BIGINT,
  kinds BIGINT
) WITH ('connector' = 'print');

CREATE TABLE spells (
  device_id STRING,
  started TIMESTAMP(3),
  ended TIMESTAMP(3),
  signs BIGINT
) WITH ('connector' = 'print');

CREATE TABLE alarms (
  event_id BIGINT,
  device_id STRING,
  metric STRING,
  reading DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE batteries (
  window_end TIMESTAMP(3),
  place BIGINT,
  device_id STRING,
  battery INT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW signs AS
SELECT device_id, JSON_VALUE(payload, '$.type') AS kind, event_time AS at_time FROM device_events
UNION ALL
SELECT device_id, metric, ts FROM readings WHERE quality = 'ok';

EXECUTE STATEMENT SET BEGIN
INSERT INTO alive
SELECT device_id, window_start, COUNT(*), COUNT(DISTINCT kind)
FROM TABLE(TUMBLE(TABLE signs, DESCRIPTOR(at_time), INTERVAL '2' HOUR))
GROUP BY device_id, window_start, window_end;

INSERT INTO spells
SELECT device_id, window_start, window_end, COUNT(*)
FROM TABLE(SESSION(TABLE signs PARTITION BY device_id, DESCRIPTOR(at_time), INTERVAL '45' MINUTE))
GROUP BY device_id, window_start, window_end;

INSERT INTO alarms
SELECT e.event_id, e.device_id, r.metric, r.reading
FROM device_events AS e
LEFT JOIN readings AS r
  ON r.device_id = e.device_id
  AND r.ts BETWEEN e.event_time - INTERVAL '1' HOUR AND e.event_time
  AND r.quality = 'ok'
WHERE JSON_VALUE(e.payload, '$.type') = 'alarm';

INSERT INTO batteries
SELECT window_end, place, device_id, battery
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY battery, device_id) AS place
  FROM (
    SELECT device_id, window_start, window_end, MIN(CAST(JSON_VALUE(payload, '$.battery') AS INT)) AS battery
    FROM TABLE(TUMBLE(TABLE device_events, DESCRIPTOR(event_time), INTERVAL '3' HOUR))
    GROUP BY device_id, window_start, window_end
  )
)
WHERE place <= 2;
END;
