-- Where each parcel is: scans arrive late and twice, the latest by its time counts.
SET 'pipeline.name' = 'parcel-tracking';
SET 'table.exec.state.ttl' = '21 d';

CREATE TABLE parcels (
  parcel_id STRING,
  sender STRING,
  from_hub STRING,
  to_hub STRING,
  weight_g INT,
  promised_on DATE,
  address ROW<city STRING, zip STRING, `lines` ARRAY<STRING>>
) WITH ('connector' = 'filesystem', 'path' = 'rows/parcels.json', 'format' = 'json');

CREATE TABLE parcel_scans (
  scan_id BIGINT,
  parcel_id STRING,
  status STRING,
  hub STRING,
  driver_id INT,
  scanned_at TIMESTAMP(3),
  WATERMARK FOR scanned_at AS scanned_at - INTERVAL '3' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/parcel_scans.json', 'format' = 'json');

CREATE TABLE tracking (
  parcel_id STRING,
  label STRING,
  status STRING,
  hub STRING,
  scans BIGINT,
  late BOOLEAN,
  weight_class STRING,
  PRIMARY KEY (parcel_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE hub_load (
  hub STRING,
  parcels BIGINT,
  kilograms DECIMAL(12, 1),
  PRIMARY KEY (hub) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE lost (
  parcel_id STRING,
  city STRING
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW scans AS
SELECT DISTINCT scan_id, parcel_id, status, hub, scanned_at FROM parcel_scans;

CREATE TEMPORARY VIEW latest_scan AS
SELECT parcel_id, status, hub, scanned_at
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY parcel_id ORDER BY scanned_at DESC) AS rn FROM parcel_scans
)
WHERE rn = 1;

EXECUTE STATEMENT SET BEGIN
INSERT INTO tracking
SELECT
  p.parcel_id,
  p.address.zip || ' ' || p.address.city,
  COALESCE(s.status, 'ANNOUNCED'),
  COALESCE(s.hub, p.from_hub),
  COALESCE(n.scans, 0),
  s.status = 'DELIVERED' AND CAST(s.scanned_at AS DATE) > p.promised_on,
  CASE
    WHEN p.weight_g <= 2000 THEN 'S'
    WHEN p.weight_g <= 10000 THEN 'M'
    ELSE 'L'
  END
FROM parcels AS p
LEFT JOIN latest_scan AS s ON s.parcel_id = p.parcel_id
LEFT JOIN (SELECT parcel_id, COUNT(*) AS scans FROM scans GROUP BY parcel_id) AS n ON n.parcel_id = p.parcel_id;

INSERT INTO hub_load
SELECT s.hub, COUNT(*), CAST(SUM(p.weight_g) / 1000.0 AS DECIMAL(12, 1))
FROM latest_scan AS s
JOIN parcels AS p ON p.parcel_id = s.parcel_id
WHERE s.status <> 'DELIVERED'
GROUP BY s.hub;

INSERT INTO lost
SELECT p.parcel_id, p.address.city
FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM parcel_scans AS s WHERE s.parcel_id = p.parcel_id AND s.status IN ('HUB_IN', 'DELIVERED'));
END;
