-- A job of the first days of the plant, never rewritten: windows in GROUP BY, one above another, and results that come early.
SET 'pipeline.name' = 'sensor-windows';
SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '0 ms';
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 ms';
SET 'table.exec.emit.allow-lateness' = '1 h';

CREATE TABLE readings (
  device_id STRING,
  metric STRING,
  reading DOUBLE,
  quality STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/readings.json', 'format' = 'json');

CREATE TABLE hourly (
  metric STRING,
  hour_start TIMESTAMP(3),
  hour_end TIMESTAMP(3),
  samples BIGINT,
  lowest DOUBLE,
  highest DOUBLE,
  bad BIGINT,
  PRIMARY KEY (metric, hour_start) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE sliding (
  device_id STRING,
  ends TIMESTAMP(3),
  samples BIGINT
) WITH ('connector' = 'print');

CREATE TABLE busiest (
  day_start TIMESTAMP(3),
  metric STRING,
  hours BIGINT,
  most BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW samples_per_hour AS
SELECT metric, TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS hour_time, COUNT(*) AS samples
FROM readings
GROUP BY metric, TUMBLE(ts, INTERVAL '1' HOUR);

EXECUTE STATEMENT SET BEGIN

INSERT INTO hourly
SELECT metric, TUMBLE_START(ts, INTERVAL '1' HOUR), TUMBLE_END(ts, INTERVAL '1' HOUR), COUNT(*), MIN(reading),
  MAX(reading), COUNT(*) FILTER (WHERE quality = 'bad')
FROM readings
GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), metric;

INSERT INTO sliding
SELECT device_id, HOP_END(ts, INTERVAL '50' MINUTE, INTERVAL '2' HOUR), COUNT(*)
FROM readings
WHERE quality <> 'bad'
GROUP BY device_id, HOP(ts, INTERVAL '50' MINUTE, INTERVAL '2' HOUR);

INSERT INTO busiest
SELECT TUMBLE_START(hour_time, INTERVAL '1' DAY), metric, COUNT(*), MAX(samples)
FROM samples_per_hour
GROUP BY metric, TUMBLE(hour_time, INTERVAL '1' DAY);

END;
