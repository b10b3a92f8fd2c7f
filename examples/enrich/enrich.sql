-- How old and how large are the planes that each airline flies from New York City?
--
-- Each flight is enriched with its plane at the moment it is processed. planes_postgres.sql or planes_sqlite.sql, which
-- declares the planes, comes before this text. Here the cache is too small for all planes; that is a setting of the plan.

SET 'pipeline.name' = 'enrich';

CREATE TABLE flights (
  sched_dep TIMESTAMP(0),
  carrier STRING,
  tailnum STRING,
  arr_delay DOUBLE,
  proc_time AS PROCTIME()
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights',
  'format' = 'json',
  'source.max-files-per-trigger' = '14'
);

CREATE TABLE fleets (
  carrier STRING,
  flights BIGINT,
  known BIGINT,
  mean_age DOUBLE,
  mean_seats DOUBLE,
  PRIMARY KEY (carrier) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:sqlite:fleets.db',
  'table-name' = 'fleets'
);

INSERT INTO fleets
SELECT
  f.carrier,
  COUNT(*) AS flights,
  -- Not every plane is registered.
  COUNT(p.tailnum) AS known,
  AVG(CAST(2013 - p.`year` AS DOUBLE)) AS mean_age,
  AVG(CAST(p.seats AS DOUBLE)) AS mean_seats
FROM flights AS f
LEFT JOIN planes /*+ OPTIONS('lookup.partial-cache.max-rows' = '500') */ FOR SYSTEM_TIME AS OF f.proc_time AS p
  ON f.tailnum = p.tailnum
GROUP BY f.carrier;
