-- The load of the grid: means that slide, the meters with the highest load of each window, tariffs against all.
SET 'pipeline.name' = 'load-profile';

CREATE TABLE meter_values (
  meter STRING,
  kwh DOUBLE,
  tariff STRING,
  read_at TIMESTAMP(3),
  WATERMARK FOR read_at AS read_at - INTERVAL '15' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/meter_values.json', 'format' = 'json');

CREATE TABLE sliding_load (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  mean_kwh DOUBLE,
  peak_kwh DOUBLE,
  meters BIGINT
) WITH ('connector' = 'print');

CREATE TABLE top_meters (
  window_start TIMESTAMP(3),
  place BIGINT,
  meter STRING,
  kwh DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE tariff_share (
  window_start TIMESTAMP(3),
  tariff STRING,
  kwh DOUBLE,
  share DOUBLE
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW by_meter AS
SELECT meter, window_start, window_end, SUM(kwh) AS kwh
FROM TABLE(TUMBLE(TABLE meter_values, DESCRIPTOR(read_at), INTERVAL '6' HOUR))
GROUP BY meter, window_start, window_end;

CREATE TEMPORARY VIEW by_tariff AS
SELECT tariff, window_start, window_end, SUM(kwh) AS kwh
FROM TABLE(TUMBLE(TABLE meter_values, DESCRIPTOR(read_at), INTERVAL '6' HOUR))
GROUP BY tariff, window_start, window_end;

CREATE TEMPORARY VIEW of_all AS
SELECT window_start, window_end, SUM(kwh) AS kwh
FROM TABLE(TUMBLE(TABLE meter_values, DESCRIPTOR(read_at), INTERVAL '6' HOUR))
GROUP BY window_start, window_end;

EXECUTE STATEMENT SET BEGIN
INSERT INTO sliding_load
SELECT window_start, window_end, AVG(kwh), MAX(kwh), COUNT(DISTINCT meter)
FROM TABLE(HOP(TABLE meter_values, DESCRIPTOR(read_at), INTERVAL '1' HOUR, INTERVAL '4' HOUR))
GROUP BY window_start, window_end;

INSERT INTO top_meters
SELECT window_start, place, meter, kwh
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY kwh DESC, meter) AS place
  FROM by_meter
)
WHERE place <= 3;

INSERT INTO tariff_share
SELECT t.window_start, t.tariff, t.kwh, t.kwh / a.kwh
FROM by_tariff AS t
JOIN of_all AS a ON t.window_start = a.window_start AND t.window_end = a.window_end;
END;
