-- Values of sensors beside the mean of their last two hours, and jumps from one value to the next.
SET 'pipeline.name' = 'sensor-smoothing';

CREATE TABLE readings (
  device_id STRING,
  metric STRING,
  reading DOUBLE,
  quality STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/readings.json', 'format' = 'json');

CREATE TABLE smoothed (
  device_id STRING,
  ts TIMESTAMP(3),
  reading DOUBLE,
  mean_of_two_hours DOUBLE,
  values_of_two_hours BIGINT,
  highest DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE jumps (
  device_id STRING,
  metric STRING,
  ts TIMESTAMP(3),
  before_it DOUBLE,
  reading DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE last_three (
  device_id STRING,
  ts TIMESTAMP(3),
  lowest DOUBLE,
  highest DOUBLE,
  oldest DOUBLE
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW good AS
SELECT device_id, metric, reading, ts FROM readings WHERE quality = 'ok' AND reading IS NOT NULL;

EXECUTE STATEMENT SET BEGIN
INSERT INTO smoothed
SELECT device_id, ts, reading, AVG(reading) OVER w, COUNT(reading) OVER w, MAX(reading) OVER w
FROM good
WINDOW w AS (
  PARTITION BY device_id, metric ORDER BY ts RANGE BETWEEN INTERVAL '2' HOUR PRECEDING AND CURRENT ROW
);

INSERT INTO jumps
SELECT device_id, metric, ts, before_it, reading
FROM (
  SELECT device_id, metric, ts, reading, LAG(reading) OVER (PARTITION BY device_id, metric ORDER BY ts) AS before_it
  FROM good
)
WHERE ABS(reading - before_it) > 10;

INSERT INTO last_three
SELECT
  device_id,
  ts,
  MIN(reading) OVER (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  MAX(reading) OVER (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  FIRST_VALUE(reading) OVER (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
FROM good;
END;
