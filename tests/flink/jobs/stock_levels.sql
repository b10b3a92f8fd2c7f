-- The stock after each movement, and how it moves in a day.
SET 'pipeline.name' = 'stock-levels';

CREATE TABLE stock_movements (
  movement_id BIGINT,
  warehouse STRING,
  sku STRING,
  movement STRING,
  quantity INT,
  reference STRING,
  moved_at TIMESTAMP(3),
  WATERMARK FOR moved_at AS moved_at - INTERVAL '1' HOUR
) WITH ('connector' = 'filesystem', 'path' = 'rows/stock_movements.json', 'format' = 'json');

CREATE TABLE levels (
  warehouse STRING,
  sku STRING,
  movement_id BIGINT,
  moved_at TIMESTAMP(3),
  stock BIGINT,
  movements BIGINT
) WITH ('connector' = 'print');

CREATE TABLE shortages (
  warehouse STRING,
  sku STRING,
  moved_at TIMESTAMP(3),
  stock BIGINT
) WITH ('connector' = 'print');

CREATE TABLE moved_so_far (
  window_end TIMESTAMP(3),
  warehouse STRING,
  came BIGINT,
  went BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW signed AS
SELECT
  movement_id, warehouse, sku, moved_at,
  CASE movement WHEN 'IN' THEN CAST(quantity AS BIGINT) WHEN 'OUT' THEN -CAST(quantity AS BIGINT) ELSE 0 END AS change
FROM stock_movements;

CREATE TEMPORARY VIEW balances AS
SELECT
  warehouse, sku, movement_id, moved_at,
  SUM(change) OVER (
    PARTITION BY warehouse, sku ORDER BY moved_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS stock,
  COUNT(*) OVER (
    PARTITION BY warehouse, sku ORDER BY moved_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS movements
FROM signed;

EXECUTE STATEMENT SET BEGIN
INSERT INTO levels
SELECT warehouse, sku, movement_id, moved_at, stock, movements FROM balances;

INSERT INTO shortages
SELECT warehouse, sku, moved_at, stock FROM balances WHERE stock < -20;

INSERT INTO moved_so_far
SELECT
  window_end,
  warehouse,
  SUM(CASE WHEN change > 0 THEN change ELSE 0 END),
  SUM(CASE WHEN change < 0 THEN -change ELSE 0 END)
FROM TABLE(CUMULATE(TABLE signed, DESCRIPTOR(moved_at), INTERVAL '8' HOUR, INTERVAL '1' DAY))
GROUP BY warehouse, window_start, window_end;
END;
