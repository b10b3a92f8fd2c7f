-- What can travellers see who have some hours at an airport?
--
-- A web service knows. Ten calls are in flight at once; one that fails is made again after 100 ms. LEFT JOIN keeps trips
-- to where the service knows nothing.

SET 'pipeline.name' = 'trips';
SET 'table.exec.async-table.fixed-delay' = '100 ms';
SET 'table.exec.async-table.timeout' = '10 s';

CREATE FUNCTION nearby AS 'nearby.Nearby' LANGUAGE PYTHON;

CREATE TABLE trips (traveller STRING, airport STRING, hours INT) WITH (
  'connector' = 'filesystem',
  'path' = 'trips',
  'format' = 'json'
);

CREATE TABLE sights (traveller STRING, airport STRING, place STRING, km DOUBLE) WITH ('connector' = 'print');

INSERT INTO sights
SELECT t.traveller, t.airport, n.place, n.km
FROM trips AS t
LEFT JOIN LATERAL TABLE(nearby(t.airport)) AS n(place, km) ON TRUE
WHERE t.hours >= 5;
