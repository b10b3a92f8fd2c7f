-- How far the measurements of a laboratory differ, of all types of numbers.
CREATE TABLE measurements (
  sample STRING,
  a DECIMAL(10, 2),
  b DECIMAL(20, 8),
  c DECIMAL(38, 18),
  d DECIMAL(5, 0),
  t TINYINT,
  i INT,
  l BIGINT,
  f FLOAT,
  x DOUBLE
) WITH ('connector' = 'filesystem', 'path' = 'rows/lab_measurements.json', 'format' = 'json');

CREATE TABLE decimals (
  sample STRING,
  va DECIMAL(38, 6),
  vb DECIMAL(38, 6),
  vc DECIMAL(38, 6),
  vd DECIMAL(38, 6),
  ve DECIMAL(38, 8),
  vf DECIMAL(38, 8),
  vg DECIMAL(20, 9),
  vh DECIMAL(38, 6)
) WITH ('connector' = 'filesystem', 'path' = 'out/decimals', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE whole_numbers (
  sample STRING, t TINYINT, i INT, pop INT, samp INT, l BIGINT, m BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'out/whole_numbers', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE floating (
  sample STRING, f DOUBLE, g DOUBLE, x DOUBLE, y DOUBLE, z DOUBLE
) WITH ('connector' = 'filesystem', 'path' = 'out/floating', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE of_samples (va DECIMAL(38, 6), vb DECIMAL(38, 6), n BIGINT, x DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'out/of_samples', 'format' = 'json', 'sink.changelog' = 'true');

EXECUTE STATEMENT SET BEGIN
INSERT INTO decimals
SELECT sample, VAR_POP(a), VAR_SAMP(a), STDDEV_POP(a), STDDEV_SAMP(a), VARIANCE(b), STDDEV(b),
  CAST(VAR_POP(c) AS DECIMAL(20, 9)), STDDEV(d) FILTER (WHERE i > 2)
FROM measurements
GROUP BY sample;

INSERT INTO whole_numbers
SELECT sample, VAR_SAMP(t), STDDEV_POP(i), VAR_POP(i), VAR_SAMP(i), STDDEV_SAMP(l), VAR_SAMP(l)
FROM measurements
GROUP BY sample;

INSERT INTO floating
SELECT sample, CAST(VAR_POP(f) AS DOUBLE), CAST(STDDEV_SAMP(f) AS DOUBLE), VAR_POP(x), VAR_SAMP(x), STDDEV_POP(x)
FROM measurements
GROUP BY sample;

INSERT INTO of_samples
SELECT VAR_POP(a), STDDEV_SAMP(a), VAR_SAMP(n), STDDEV_POP(x)
FROM (SELECT sample, MAX(a) AS a, COUNT(*) AS n, MIN(x) AS x FROM measurements GROUP BY sample) AS t;
END;
