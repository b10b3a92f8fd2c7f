-- Commission of a taxi fleet: brackets by revenue, the place of each vehicle, and fares beside what was driven before.
SET 'pipeline.name' = 'fleet-commission';
SET 'table.exec.state.ttl' = '0';

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

CREATE TABLE commission (
  vehicle STRING,
  trips BIGINT,
  revenue DECIMAL(12, 2),
  bracket STRING,
  commission DECIMAL(12, 2),
  PRIMARY KEY (vehicle) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE ranking (
  vehicle STRING,
  longest INT,
  better BIGINT,
  PRIMARY KEY (vehicle) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE dearer_than_before (
  trip_id BIGINT,
  vehicle STRING,
  fare DECIMAL(8, 2),
  before DECIMAL(8, 2),
  PRIMARY KEY (trip_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE longest_by_zone (
  zone STRING,
  place BIGINT,
  trip_id BIGINT,
  distance_m INT,
  hour_of_start TIMESTAMP(3),
  PRIMARY KEY (zone, place) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW driven AS
SELECT * FROM trips WHERE fare IS NOT NULL;

CREATE TEMPORARY VIEW brackets (bracket, at_least, below, rate) AS
VALUES
  ('none', CAST(0 AS DECIMAL(12, 2)), CAST(50 AS DECIMAL(12, 2)), CAST(0 AS DECIMAL(5, 2))),
  ('low', 50, 120, 5),
  ('middle', 120, 200, 7.5),
  ('high', 200, 1000000, 10);

CREATE TEMPORARY VIEW by_vehicle AS
SELECT vehicle, COUNT(*) AS trips, CAST(SUM(fare) AS DECIMAL(12, 2)) AS revenue, MAX(distance_m) AS longest
FROM driven
GROUP BY vehicle;

EXECUTE STATEMENT SET BEGIN
INSERT INTO commission
SELECT v.vehicle, v.trips, v.revenue, b.bracket, CAST(v.revenue * b.rate / 100 AS DECIMAL(12, 2))
FROM by_vehicle AS v
JOIN brackets AS b ON v.revenue >= b.at_least AND v.revenue < b.below;

INSERT INTO ranking
SELECT v.vehicle, v.longest, (SELECT COUNT(*) FROM by_vehicle AS o WHERE o.longest > v.longest)
FROM by_vehicle AS v;

INSERT INTO dearer_than_before
SELECT trip_id, vehicle, fare, before
FROM (
  SELECT
    d.trip_id, d.vehicle, d.fare,
    (SELECT MAX(p.fare) FROM driven AS p WHERE p.vehicle = d.vehicle AND p.started_at < d.started_at) AS before
  FROM driven AS d
)
WHERE fare > before;

INSERT INTO longest_by_zone
SELECT zone_from, place, trip_id, distance_m, FLOOR(started_at TO HOUR)
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY zone_from ORDER BY distance_m DESC, trip_id) AS place
  FROM driven
)
WHERE place <= 2 AND minutes BETWEEN SYMMETRIC 600 AND 0;
END;
