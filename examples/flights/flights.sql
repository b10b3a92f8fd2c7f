-- How late do flights from New York City arrive, by airline and by the maker of the plane?
--
-- Flights come in week by week. A flight is kept for a day, in case its plane or airline is announced late; planes,
-- airlines and the result are kept for more than a year. State TTLs count from the time a row is processed.

SET 'pipeline.name' = 'flights';
SET 'table.exec.state.ttl' = '1 d';

CREATE TABLE flights (
  sched_dep TIMESTAMP(0),
  carrier STRING,
  flight INT,
  tailnum STRING,
  origin STRING,
  dest STRING,
  dep_delay DOUBLE,
  arr_delay DOUBLE,
  air_time DOUBLE,
  distance BIGINT
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights',
  'format' = 'json',
  'source.max-files-per-trigger' = '4'
);

CREATE TABLE planes (
  tailnum STRING,
  `year` INT,
  manufacturer STRING,
  model STRING,
  seats INT
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/planes',
  'format' = 'json'
);

CREATE TABLE airlines (
  carrier STRING,
  name STRING
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/airlines',
  'format' = 'json'
);

CREATE TABLE delays (
  carrier STRING,
  manufacturer STRING,
  flights BIGINT,
  mean_arr_delay DOUBLE,
  distance BIGINT,
  PRIMARY KEY (carrier, manufacturer) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:sqlite:delays.db',
  'table-name' = 'delays'
);

INSERT INTO delays
SELECT /*+ STATE_TTL('t' = '400 d') */
  t.carrier,
  t.manufacturer,
  COUNT(*) AS flights,
  AVG(t.arr_delay) AS mean_arr_delay,
  SUM(t.distance) AS distance
FROM (
  SELECT /*+ STATE_TTL('f' = '1 d', 'p' = '400 d', 'a' = '400 d') */
    COALESCE(a.name, f.carrier) AS carrier,
    -- Not every plane is registered, and a primary key has no NULL.
    COALESCE(p.manufacturer, 'unknown') AS manufacturer,
    f.arr_delay,
    f.distance
  FROM flights AS f
  LEFT JOIN planes AS p ON f.tailnum = p.tailnum
  LEFT JOIN airlines AS a ON f.carrier = a.carrier
) AS t
GROUP BY t.carrier, t.manufacturer;
