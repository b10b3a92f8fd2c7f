-- Departures and arrivals of each zone in each hour, side by side, and the zones with most departures.
SET 'pipeline.name' = 'taxi-hotspots';

CREATE TABLE departures (
  trip_id BIGINT,
  vehicle STRING,
  zone_from STRING,
  fare DECIMAL(8, 2),
  started_at TIMESTAMP(3),
  WATERMARK FOR started_at AS started_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/trips.json', 'format' = 'json');

CREATE TABLE arrivals (
  trip_id BIGINT,
  zone_to STRING,
  ended_at TIMESTAMP(3),
  WATERMARK FOR ended_at AS ended_at - INTERVAL '1' HOUR
) WITH ('connector' = 'filesystem', 'path' = 'rows/trips.json', 'format' = 'json');

CREATE TABLE balance (
  window_start TIMESTAMP(3),
  `zone` STRING,
  went BIGINT,
  came BIGINT
) WITH ('connector' = 'print');

CREATE TABLE busiest (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  `zone` STRING,
  trips BIGINT,
  fare DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TABLE quiet_zones (
  window_start TIMESTAMP(3),
  `zone` STRING
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW went AS
SELECT zone_from AS `zone`, window_start, window_end, COUNT(*) AS trips
FROM TABLE(TUMBLE(TABLE departures, DESCRIPTOR(started_at), INTERVAL '2' HOUR))
GROUP BY zone_from, window_start, window_end;

CREATE TEMPORARY VIEW came AS
SELECT zone_to AS `zone`, window_start, window_end, COUNT(*) AS trips
FROM TABLE(TUMBLE(TABLE arrivals, DESCRIPTOR(ended_at), INTERVAL '2' HOUR))
GROUP BY zone_to, window_start, window_end;

EXECUTE STATEMENT SET BEGIN
INSERT INTO balance
SELECT
  COALESCE(w.window_start, c.window_start),
  COALESCE(w.`zone`, c.`zone`),
  COALESCE(w.trips, 0),
  COALESCE(c.trips, 0)
FROM went AS w
FULL OUTER JOIN came AS c
  ON w.`zone` = c.`zone` AND w.window_start = c.window_start AND w.window_end = c.window_end;

INSERT INTO busiest
SELECT window_start, window_end, `zone`, trips, fare
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY trips DESC, fare DESC, `zone`) AS n
  FROM (
    SELECT window_start, window_end, zone_from AS `zone`, COUNT(*) AS trips, SUM(fare) AS fare
    FROM TABLE(HOP(TABLE departures, DESCRIPTOR(started_at), INTERVAL '1' HOUR, INTERVAL '3' HOUR))
    GROUP BY window_start, window_end, zone_from
  )
)
WHERE n = 1;

INSERT INTO quiet_zones
SELECT w.window_start, w.`zone`
FROM went AS w
WHERE NOT EXISTS (
  SELECT * FROM came AS c
  WHERE c.`zone` = w.`zone` AND c.window_start = w.window_start AND c.window_end = w.window_end
);
END;
