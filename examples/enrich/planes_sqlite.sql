-- The planes, in an SQLite database, where there is no PostgreSQL.

CREATE TABLE planes (
  tailnum STRING,
  `year` INT,
  manufacturer STRING,
  seats INT
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:sqlite:planes.db',
  'table-name' = 'planes',
  'lookup.cache' = 'PARTIAL',
  'lookup.partial-cache.max-rows' = '10000',
  'lookup.partial-cache.expire-after-write' = '10 min'
);
