-- Error rates of the web servers, in the group windows of an older job.
SET 'pipeline.name' = 'error-rates';

CREATE TABLE access_log (
  line STRING,
  host STRING,
  logged_at TIMESTAMP(3),
  path AS SPLIT_INDEX(line, ' ', 2),
  status AS TRY_CAST(SPLIT_INDEX(line, ' ', 3) AS INT),
  millis AS TRY_CAST(SPLIT_INDEX(line, ' ', 4) AS INT),
  WATERMARK FOR logged_at AS logged_at - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/access_log.json', 'format' = 'json');

CREATE TABLE by_host (
  host STRING,
  from_time TIMESTAMP(3),
  to_time TIMESTAMP(3),
  requests BIGINT,
  errors BIGINT,
  slowest INT
) WITH ('connector' = 'print');

CREATE TABLE by_path (
  path STRING,
  from_time TIMESTAMP(3),
  requests BIGINT,
  mean_millis INT
) WITH ('connector' = 'print');

CREATE TABLE alarms (
  from_time TIMESTAMP(3),
  error_percent DECIMAL(10, 1)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO by_host
SELECT
  host,
  TUMBLE_START(logged_at, INTERVAL '10' MINUTE),
  TUMBLE_END(logged_at, INTERVAL '10' MINUTE),
  COUNT(*),
  SUM(CASE WHEN status >= 500 THEN CAST(1 AS BIGINT) ELSE 0 END),
  MAX(millis)
FROM access_log
GROUP BY host, TUMBLE(logged_at, INTERVAL '10' MINUTE);

INSERT INTO by_path
SELECT path, HOP_START(logged_at, INTERVAL '10' MINUTE, INTERVAL '30' MINUTE), COUNT(*), AVG(millis)
FROM access_log
WHERE status < 400
GROUP BY HOP(logged_at, INTERVAL '10' MINUTE, INTERVAL '30' MINUTE), path;

INSERT INTO alarms
SELECT
  TUMBLE_START(logged_at, INTERVAL '5' MINUTE),
  CAST(100.0 * COUNT(CASE WHEN status >= 400 THEN 1 END) / COUNT(*) AS DECIMAL(10, 1))
FROM access_log
GROUP BY TUMBLE(logged_at, INTERVAL '5' MINUTE)
HAVING COUNT(CASE WHEN status >= 400 THEN 1 END) > 1;
END;
