-- Takes access log lines apart and watches error rates by end point.
SET 'pipeline.name' = 'access-logs';
SET 'table.exec.state.ttl' = '2 h';

CREATE TABLE access_log (
  line STRING,
  host STRING,
  logged_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/access_log.json', 'format' = 'json');

CREATE TABLE endpoints (
  endpoint STRING,
  verb STRING,
  requests BIGINT,
  clients BIGINT,
  errors BIGINT,
  slowest_ms INT,
  average_ms INT,
  PRIMARY KEY (endpoint, verb) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE unhealthy (
  endpoint STRING,
  error_rate DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE noisy_clients (
  host STRING,
  client STRING,
  place BIGINT,
  requests BIGINT,
  PRIMARY KEY (host, place) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW requests AS
SELECT
  host,
  SPLIT_INDEX(line, ' ', 0) AS client,
  SPLIT_INDEX(line, ' ', 1) AS verb,
  REGEXP_REPLACE(SPLIT_INDEX(line, ' ', 2), '/[0-9]+', '/:id') AS endpoint,
  CAST(SPLIT_INDEX(line, ' ', 3) AS INT) AS status,
  CAST(REGEXP_EXTRACT(line, '([0-9]+)$', 1) AS INT) AS ms,
  logged_at
FROM access_log
WHERE line LIKE '% /api/%' OR line LIKE '% /login %';

BEGIN STATEMENT SET;

INSERT INTO endpoints
SELECT
  endpoint, verb, COUNT(*), COUNT(DISTINCT client), SUM(CASE WHEN status >= 400 THEN 1 ELSE 0 END), MAX(ms), AVG(ms)
FROM requests
GROUP BY endpoint, verb;

INSERT INTO unhealthy
SELECT endpoint, ROUND(CAST(errors AS DOUBLE) / total, 3)
FROM (
  SELECT endpoint, COUNT(*) AS total, COUNT(*) FILTER (WHERE status / 100 IN (4, 5)) AS errors
  FROM requests
  GROUP BY endpoint
)
WHERE errors * 4 >= total;

INSERT INTO noisy_clients
SELECT host, client, place, requests
FROM (
  SELECT host, client, requests, ROW_NUMBER() OVER (PARTITION BY host ORDER BY requests DESC, client) AS place
  FROM (SELECT host, client, COUNT(*) AS requests FROM requests GROUP BY host, client)
)
WHERE place <= 2;

END;
