-- Readings outside of the limits of their model, with where the device stands now.
SET 'pipeline.name' = 'sensor-alerts';
SET 'table.exec.state.ttl' = '1 d';
SET 'execution.checkpointing.interval' = '30 s';

CREATE TABLE readings (
  device_id STRING,
  metric STRING,
  reading DOUBLE,
  quality STRING,
  ts TIMESTAMP(3),
  hour_of_day AS EXTRACT(HOUR FROM ts)
) WITH ('connector' = 'filesystem', 'path' = 'rows/readings.json', 'format' = 'json');

CREATE TABLE devices (
  device_id STRING,
  model STRING,
  site STRING,
  firmware STRING,
  installed_on DATE,
  PRIMARY KEY (device_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/devices.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE thresholds (
  metric STRING,
  model STRING,
  low DOUBLE,
  high DOUBLE,
  severity STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/thresholds.json', 'format' = 'json');

CREATE TABLE alerts (
  device_id STRING,
  site STRING,
  metric STRING,
  reading DOUBLE,
  severity STRING,
  message STRING,
  ts TIMESTAMP(3)
) WITH ('connector' = 'print');

CREATE TABLE alert_counts (
  site STRING,
  metric STRING,
  severity STRING,
  alerts BIGINT,
  devices BIGINT,
  worst DOUBLE,
  PRIMARY KEY (site, metric, severity) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE silent_devices (
  device_id STRING,
  site STRING,
  PRIMARY KEY (device_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW violations AS
SELECT /*+ STATE_TTL('r' = '6 h', 'd' = '0 s') */
  r.device_id, d.site, r.metric, r.reading, t.severity, t.low, t.high, r.ts
FROM readings AS r
JOIN devices AS d ON r.device_id = d.device_id
JOIN thresholds AS t ON t.metric = r.metric AND t.model = d.model
WHERE r.quality = 'ok' AND r.reading IS NOT NULL AND (r.reading < t.low OR r.reading > t.high);

EXECUTE STATEMENT SET BEGIN
INSERT INTO alerts
SELECT
  device_id, site, metric, reading, severity,
  metric || ' of ' || device_id || ' is ' || IF(reading > high, 'above ', 'below ')
    || CAST(IF(reading > high, high, low) AS STRING),
  ts
FROM violations;

INSERT INTO alert_counts
SELECT site, metric, severity, COUNT(*), COUNT(DISTINCT device_id), MAX(reading)
FROM violations
GROUP BY site, metric, severity;

INSERT INTO silent_devices
SELECT device_id, site
FROM devices AS d
WHERE NOT EXISTS (SELECT * FROM readings AS r WHERE r.device_id = d.device_id AND r.quality = 'bad');
END;
