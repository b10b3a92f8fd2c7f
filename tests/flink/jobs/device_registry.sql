-- A replica of the device registry with what each site has, and firmware that is behind.
SET 'pipeline.name' = 'device-registry';

CREATE TABLE devices (
  device_id STRING NOT NULL,
  model STRING,
  site STRING,
  firmware STRING,
  installed_on DATE,
  PRIMARY KEY (device_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/devices.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

-- The replica has the same columns and key.
CREATE TABLE devices_replica WITH (
  'connector' = 'print'
) LIKE devices (EXCLUDING OPTIONS);

CREATE TABLE site_inventory (
  site STRING,
  devices BIGINT,
  `models` BIGINT,
  firmwares BIGINT,
  oldest DATE,
  PRIMARY KEY (site) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE outdated (
  device_id STRING,
  model STRING,
  firmware STRING,
  wanted STRING,
  PRIMARY KEY (device_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW wanted_firmware (model, firmware) AS
VALUES ('T100', '2.0'), ('T200', '1.1'), ('H50', '1.0');

BEGIN STATEMENT SET;

INSERT INTO devices_replica SELECT * FROM devices;

INSERT INTO site_inventory
SELECT site, COUNT(*), COUNT(DISTINCT model), COUNT(DISTINCT firmware), MIN(installed_on)
FROM devices
WHERE site <> 'west' OR firmware > '1.0'
GROUP BY site;

INSERT INTO outdated
SELECT d.device_id, d.model, d.firmware, w.firmware
FROM devices AS d
INNER JOIN wanted_firmware AS w ON d.model = w.model
WHERE d.firmware < w.firmware;

END;
