-- A dashboard of taxi fares: the day so far at every hour, by zone, and a first and a last trip of each vehicle and shift.
SET 'pipeline.name' = 'taxi-day-so-far';

CREATE TABLE trips (
  trip_id BIGINT,
  vehicle STRING,
  zone_from STRING,
  zone_to STRING,
  distance_m BIGINT,
  fare DECIMAL(8, 2),
  tip DECIMAL(8, 2),
  started_at TIMESTAMP(3),
  WATERMARK FOR started_at AS started_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/trips.json', 'format' = 'json');

CREATE TABLE fares_so_far (
  zone_from STRING,
  so_far TIMESTAMP(3),
  trips BIGINT,
  fares DECIMAL(38, 2),
  tips DECIMAL(38, 2),
  km_per_trip DOUBLE,
  PRIMARY KEY (zone_from, so_far) NOT ENFORCED
) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:taxi.db', 'table-name' = 'fares_so_far');

CREATE TABLE shift_starts (
  vehicle STRING,
  shift_start TIMESTAMP(3),
  trip_id BIGINT,
  started_at STRING
) WITH ('connector' = 'print');

CREATE TABLE shift_ends (
  vehicle STRING,
  shift_end TIMESTAMP(3),
  trip_id BIGINT,
  zone_to STRING
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN

INSERT INTO fares_so_far
SELECT zone_from, window_end, COUNT(*), SUM(fare), COALESCE(SUM(tip), 0), AVG(distance_m / 1000.0E0)
FROM TABLE(CUMULATE(TABLE trips, DESCRIPTOR(started_at), INTERVAL '1' HOUR, INTERVAL '1' DAY))
GROUP BY zone_from, window_start, window_end;

INSERT INTO shift_starts
SELECT vehicle, window_start, trip_id, DATE_FORMAT(started_at, 'HH:mm')
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, vehicle ORDER BY started_at ASC) AS n
  FROM TABLE(TUMBLE(TABLE trips, DESCRIPTOR(started_at), INTERVAL '8' HOUR, INTERVAL '6' HOUR))
)
WHERE n = 1;

INSERT INTO shift_ends
SELECT vehicle, window_end, trip_id, zone_to
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, vehicle ORDER BY started_at DESC) AS n
  FROM TABLE(TUMBLE(TABLE trips, DESCRIPTOR(started_at), INTERVAL '8' HOUR, INTERVAL '6' HOUR))
)
WHERE n = 1;

END;
