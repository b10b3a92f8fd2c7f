-- City traffic: routes, vehicles and tips, with zones from a small fixed table.
SET 'pipeline.name' = 'taxi-trips';

CREATE TABLE trips (
  trip_id BIGINT,
  vehicle STRING,
  zone_from STRING,
  zone_to STRING,
  distance_m INT,
  fare DECIMAL(8, 2),
  tip DECIMAL(8, 2),
  started_at TIMESTAMP(3),
  ended_at TIMESTAMP(3),
  minutes AS TIMESTAMPDIFF(MINUTE, started_at, ended_at)
) WITH ('connector' = 'filesystem', 'path' = 'rows/trips.json', 'format' = 'json');

CREATE TABLE routes (
  origin STRING,
  destination STRING,
  trips BIGINT,
  kilometres DECIMAL(10, 1),
  fare DECIMAL(38, 2),
  tipped BIGINT,
  longest INT
) WITH ('connector' = 'print');

CREATE TABLE peak_hours (
  hour_of_day BIGINT,
  trips BIGINT,
  vehicles BIGINT,
  PRIMARY KEY (hour_of_day) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE generous (
  vehicle STRING,
  tips DECIMAL(38, 2),
  tip_percent DECIMAL(10, 2),
  verdict STRING,
  PRIMARY KEY (vehicle) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW zones AS
SELECT * FROM (VALUES ('A', 'Airport'), ('B', 'Old Town'), ('D', 'Docks')) AS z (zone, zone_name);

EXECUTE STATEMENT SET BEGIN
INSERT INTO routes
SELECT
  COALESCE(f.zone_name, 'zone ' || t.zone_from),
  COALESCE(d.zone_name, 'zone ' || t.zone_to),
  COUNT(*),
  CAST(SUM(t.distance_m) / 1000.0 AS DECIMAL(10, 1)),
  SUM(t.fare),
  COUNT(t.tip),
  MAX(t.minutes)
FROM trips AS t
LEFT JOIN zones AS f ON f.zone = t.zone_from
LEFT JOIN zones AS d ON d.zone = t.zone_to
GROUP BY COALESCE(f.zone_name, 'zone ' || t.zone_from), COALESCE(d.zone_name, 'zone ' || t.zone_to);

INSERT INTO peak_hours
SELECT HOUR(started_at), COUNT(*), COUNT(DISTINCT vehicle)
FROM trips
GROUP BY HOUR(started_at)
HAVING COUNT(*) >= 4;

INSERT INTO generous
SELECT
  vehicle,
  tips,
  CAST(100 * tips / fares AS DECIMAL(10, 2)),
  CASE WHEN tips > (SELECT AVG(tip) * 5 FROM trips) THEN 'above' ELSE 'below' END
FROM (SELECT vehicle, SUM(tip) AS tips, SUM(fare) AS fares FROM trips GROUP BY vehicle)
WHERE tips IS NOT NULL;
END;
