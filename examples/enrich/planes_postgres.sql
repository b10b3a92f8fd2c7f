-- The planes, in PostgreSQL. Where the server is and its password come from the environment of the run.

CREATE TABLE planes (
  tailnum STRING,
  `year` INT,
  manufacturer STRING,
  seats INT
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:postgresql://127.0.0.1:${env:PLANES_PORT}/planes',
  'table-name' = 'planes',
  'username' = 'planes',
  'password' = '${env:PLANES_PASSWORD}',
  'lookup.cache' = 'PARTIAL',
  'lookup.partial-cache.max-rows' = '10000',
  'lookup.partial-cache.expire-after-write' = '10 min'
);
