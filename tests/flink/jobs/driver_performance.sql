-- Deliveries by driver and depot, and the best driver of each depot.
SET 'pipeline.name' = 'driver-performance';

CREATE TABLE parcel_scans (
  scan_id BIGINT,
  parcel_id STRING,
  status STRING,
  hub STRING,
  driver_id INT,
  scanned_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/parcel_scans.json', 'format' = 'json');

CREATE TABLE drivers (
  driver_id INT,
  name STRING,
  hub STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/drivers.json', 'format' = 'json');

CREATE TABLE driver_stats (
  driver STRING,
  `day` STRING,
  scans BIGINT,
  parcels BIGINT,
  delivered BIGINT,
  hubs STRING
) WITH ('connector' = 'print');

CREATE TABLE best_of_hub (
  hub STRING,
  driver STRING,
  delivered BIGINT,
  PRIMARY KEY (hub) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE unknown_drivers (
  driver_id INT,
  scans BIGINT
) WITH ('connector' = 'print');

-- Scans are sent at least once.
CREATE TEMPORARY VIEW once AS
SELECT scan_id, parcel_id, status, hub, driver_id, scanned_at
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY scan_id ORDER BY scanned_at, hub) AS n FROM parcel_scans)
WHERE n = 1;

CREATE TEMPORARY VIEW by_driver AS
SELECT d.name, d.hub, COUNT(*) AS delivered
FROM once AS s
JOIN drivers AS d ON s.driver_id = d.driver_id
WHERE s.status = 'DELIVERED' OR s.status LIKE 'OUT%'
GROUP BY d.name, d.hub;

EXECUTE STATEMENT SET BEGIN
INSERT INTO driver_stats
SELECT
  COALESCE(d.name, 'nobody'),
  DATE_FORMAT(s.scanned_at, 'MM/dd'),
  COUNT(*),
  COUNT(DISTINCT s.parcel_id),
  SUM(CASE s.status WHEN 'DELIVERED' THEN 1 ELSE 0 END),
  CAST(COUNT(DISTINCT s.hub) AS STRING) || ' hubs'
FROM once AS s
LEFT JOIN drivers AS d ON s.driver_id = d.driver_id
GROUP BY COALESCE(d.name, 'nobody'), DATE_FORMAT(s.scanned_at, 'MM/dd');

INSERT INTO best_of_hub
SELECT hub, name, delivered
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY hub ORDER BY delivered DESC, name) AS place FROM by_driver)
WHERE place = 1;

INSERT INTO unknown_drivers
SELECT driver_id, COUNT(*)
FROM once
WHERE driver_id IS NOT NULL AND driver_id NOT IN (SELECT driver_id FROM drivers WHERE driver_id IS NOT NULL)
GROUP BY driver_id;
END;
