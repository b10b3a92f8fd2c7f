-- Devices send several samples in one event: one row a sample, then statistics and the samples of a device as a list.
SET 'pipeline.name' = 'device-samples';
SET 'table.exec.state.ttl' = '12 h';

CREATE TABLE device_events (
  event_id BIGINT,
  device_id STRING,
  tags ARRAY<STRING>,
  samples ARRAY<ROW<name STRING, level INT>>,
  event_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/device_events.json', 'format' = 'json');

CREATE TABLE samples_flat (
  event_id BIGINT,
  device_id STRING,
  name STRING,
  level INT,
  sampled_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'out/samples', 'format' = 'json');

CREATE TABLE sample_statistics (
  device_id STRING,
  name STRING,
  samples BIGINT,
  lowest INT,
  highest INT,
  average_level DOUBLE,
  PRIMARY KEY (device_id, name) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE event_shapes (
  event_id BIGINT,
  sample_count INT,
  first_tag STRING,
  is_vip BOOLEAN,
  first_level INT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW flat AS
SELECT e.event_id, e.device_id, s.name, s.level, e.event_time
FROM device_events AS e
CROSS JOIN UNNEST(e.samples) AS s (name, level);

EXECUTE STATEMENT SET BEGIN
INSERT INTO samples_flat
SELECT event_id, device_id, name, level, event_time FROM flat WHERE level > 5;

INSERT INTO sample_statistics
SELECT device_id, name, COUNT(*), MIN(level), MAX(level), AVG(CAST(level AS DOUBLE))
FROM flat
GROUP BY device_id, name;

INSERT INTO event_shapes
SELECT
  event_id,
  CARDINALITY(samples),
  tags[1],
  ARRAY_CONTAINS(tags, 'vip'),
  samples[1].level
FROM device_events;
END;
