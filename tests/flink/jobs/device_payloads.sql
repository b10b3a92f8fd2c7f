-- Takes the JSON payloads of devices apart; what is no JSON goes to a table of its own.
SET 'pipeline.name' = 'device-payloads';

CREATE TABLE device_events (
  event_id BIGINT,
  device_id STRING,
  payload STRING,
  tags ARRAY<STRING>,
  event_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/device_events.json', 'format' = 'json');

CREATE TABLE parsed (
  event_id BIGINT,
  device_id STRING,
  event_type STRING,
  battery INT,
  firmware STRING,
  beta BOOLEAN,
  event_date STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/parsed', 'format' = 'json');

CREATE TABLE rejected (
  event_id BIGINT,
  device_id STRING,
  payload STRING
) WITH ('connector' = 'filesystem', 'path' = 'out/rejected', 'format' = 'json');

CREATE TABLE battery_state (
  device_id STRING,
  events BIGINT,
  alarms BIGINT,
  lowest INT,
  average_level DOUBLE,
  PRIMARY KEY (device_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE tag_counts (
  tag STRING,
  events BIGINT,
  devices BIGINT,
  PRIMARY KEY (tag) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW events AS
SELECT
  event_id,
  device_id,
  JSON_VALUE(payload, '$.type') AS event_type,
  JSON_VALUE(payload, '$.battery' RETURNING INT) AS battery,
  JSON_VALUE(payload, '$.fw.version') AS firmware,
  JSON_VALUE(payload, '$.fw.channel' DEFAULT 'stable' ON EMPTY) = 'beta' AS beta,
  event_time
FROM device_events
WHERE payload IS JSON;

EXECUTE STATEMENT SET BEGIN
INSERT INTO parsed
SELECT event_id, device_id, UPPER(event_type), battery, firmware, beta, DATE_FORMAT(event_time, 'yyyy-MM-dd HH:mm')
FROM events;

INSERT INTO rejected SELECT event_id, device_id, payload FROM device_events WHERE payload IS NOT JSON;

INSERT INTO battery_state
SELECT
  device_id, COUNT(*), COUNT(*) FILTER (WHERE event_type = 'alarm'), MIN(battery), AVG(CAST(battery AS DOUBLE))
FROM events
GROUP BY device_id;

INSERT INTO tag_counts
SELECT t.tag, COUNT(*), COUNT(DISTINCT e.device_id)
FROM device_events AS e
CROSS JOIN UNNEST(e.tags) AS t (tag)
GROUP BY t.tag;
END;
