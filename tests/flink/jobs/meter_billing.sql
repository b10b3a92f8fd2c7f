-- Electricity meters: consumption by tariff, its cost, and a table of plausibility checks made by CTAS.
SET 'pipeline.name' = 'meter-billing';
SET 'table.exec.state.ttl' = '40 d';

CREATE TABLE meter_values (
  meter STRING,
  kwh DOUBLE,
  tariff STRING,
  read_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/meter_values.json', 'format' = 'json');

CREATE TABLE bills (
  meter STRING,
  tariff STRING,
  consumption DOUBLE,
  cost DOUBLE,
  readings BIGINT,
  PRIMARY KEY (meter, tariff) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE meter_totals (
  meter STRING,
  first_read TIMESTAMP(3),
  last_read TIMESTAMP(3),
  consumption DOUBLE,
  PRIMARY KEY (meter) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW prices AS
SELECT tariff, price FROM (VALUES ('day', CAST(0.34 AS DOUBLE)), ('night', CAST(0.22 AS DOUBLE))) AS p (tariff, price);

CREATE TEMPORARY VIEW spans AS
SELECT meter, tariff, MAX(kwh) - MIN(kwh) AS consumption, COUNT(*) AS readings
FROM meter_values
GROUP BY meter, tariff;

CREATE TABLE implausible WITH ('connector' = 'filesystem', 'path' = 'out/implausible', 'format' = 'json') AS
SELECT meter, tariff, kwh, DATE_FORMAT(read_at, 'yyyy-MM-dd HH:mm') AS read_at_minute
FROM meter_values
WHERE kwh > 80 OR kwh < 2;

EXECUTE STATEMENT SET BEGIN
INSERT INTO bills
SELECT s.meter, s.tariff, ROUND(s.consumption, 3), ROUND(s.consumption * p.price, 2), s.readings
FROM spans AS s
JOIN prices AS p ON s.tariff = p.tariff
WHERE s.readings > 1;

INSERT INTO meter_totals
SELECT meter, MIN(read_at), MAX(read_at), ROUND(MAX(kwh) - MIN(kwh), 3)
FROM meter_values
GROUP BY meter;
END;
