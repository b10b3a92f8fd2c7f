-- Scans that arrive up to two days late: what each hub did in a day, and where parcels are at its end.
SET 'pipeline.name' = 'hub-load';

CREATE TABLE parcel_scans (
  scan_id BIGINT,
  parcel_id STRING,
  status STRING,
  hub STRING,
  driver_id INT,
  scanned_at TIMESTAMP(3),
  WATERMARK FOR scanned_at AS scanned_at - INTERVAL '2' DAY
) WITH ('connector' = 'filesystem', 'path' = 'rows/parcel_scans.json', 'format' = 'json');

CREATE TABLE hub_days (
  hub STRING,
  day_start TIMESTAMP(3),
  scans BIGINT,
  parcels BIGINT,
  delivered BIGINT,
  PRIMARY KEY (hub, day_start) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE at_end_of_day (
  day_start TIMESTAMP(3),
  parcel_id STRING,
  status STRING,
  hub STRING
) WITH ('connector' = 'print');

CREATE TABLE hand_overs (
  parcel_id STRING,
  from_hub STRING,
  to_hub STRING,
  hours INT
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO hub_days
SELECT hub, window_start, COUNT(*), COUNT(DISTINCT parcel_id), COUNT(*) FILTER (WHERE status = 'DELIVERED')
FROM TABLE(TUMBLE(TABLE parcel_scans, DESCRIPTOR(scanned_at), INTERVAL '1' DAY))
WHERE hub IS NOT NULL
GROUP BY hub, window_start, window_end;

INSERT INTO at_end_of_day
SELECT window_start, parcel_id, status, hub
FROM (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY parcel_id, window_start, window_end ORDER BY scanned_at DESC) AS n
  FROM TABLE(TUMBLE(TABLE parcel_scans, DESCRIPTOR(scanned_at), INTERVAL '1' DAY))
)
WHERE n = 1;

INSERT INTO hand_overs
SELECT a.parcel_id, a.hub, b.hub, TIMESTAMPDIFF(HOUR, a.scanned_at, b.scanned_at)
FROM parcel_scans AS a
JOIN parcel_scans AS b
  ON a.parcel_id = b.parcel_id
  AND a.hub <> b.hub
  AND b.scanned_at BETWEEN a.scanned_at AND a.scanned_at + INTERVAL '1' DAY;
END;
