-- Stock by warehouse and article, what has to be ordered, and what was sold most.
SET 'pipeline.name' = 'stock-on-hand';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '1000';
SET 'table.optimizer.agg-phase-strategy' = 'TWO_PHASE';

CREATE TABLE stock_movements (
  movement_id BIGINT,
  warehouse STRING,
  sku STRING,
  movement STRING,
  quantity INT,
  reference STRING,
  moved_at TIMESTAMP(3),
  delta AS CASE movement WHEN 'IN' THEN quantity WHEN 'OUT' THEN -quantity ELSE 0 END
) WITH ('connector' = 'filesystem', 'path' = 'rows/stock_movements.json', 'format' = 'json');

CREATE TABLE reorder_points (
  warehouse STRING,
  sku STRING,
  minimum INT,
  lot_size INT,
  PRIMARY KEY (warehouse, sku) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'rows/reorder_points.json', 'format' = 'json');

CREATE TABLE purchase_orders (
  po_id BIGINT,
  sku STRING,
  warehouse STRING,
  supplier STRING,
  quantity INT,
  received INT,
  eta DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchase_orders.json', 'format' = 'json');

CREATE TABLE stock (
  warehouse STRING,
  sku STRING,
  on_hand INT,
  movements BIGINT,
  last_moved TIMESTAMP(3),
  PRIMARY KEY (warehouse, sku) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE to_order (
  warehouse STRING,
  sku STRING,
  on_hand INT,
  expected INT,
  minimum INT,
  lots INT,
  PRIMARY KEY (warehouse, sku) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE fast_movers (
  sku STRING,
  sold INT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW on_hand AS
SELECT warehouse, sku, SUM(delta) AS on_hand, COUNT(*) AS movements, MAX(moved_at) AS last_moved
FROM stock_movements
GROUP BY warehouse, sku;

CREATE TEMPORARY VIEW on_order AS
SELECT warehouse, sku, SUM(quantity - COALESCE(received, 0)) AS expected
FROM purchase_orders
WHERE COALESCE(received, 0) < quantity
GROUP BY warehouse, sku;

EXECUTE STATEMENT SET BEGIN
INSERT INTO stock SELECT warehouse, sku, on_hand, movements, last_moved FROM on_hand;

INSERT INTO to_order
SELECT
  r.warehouse,
  r.sku,
  COALESCE(h.on_hand, 0),
  COALESCE(o.expected, 0),
  r.minimum,
  (r.minimum - COALESCE(h.on_hand, 0) - COALESCE(o.expected, 0) + r.lot_size - 1) / r.lot_size
FROM reorder_points AS r
LEFT JOIN on_hand AS h ON h.warehouse = r.warehouse AND h.sku = r.sku
LEFT JOIN on_order AS o ON o.warehouse = r.warehouse AND o.sku = r.sku
WHERE COALESCE(h.on_hand, 0) + COALESCE(o.expected, 0) < r.minimum;

INSERT INTO fast_movers
SELECT sku, SUM(quantity) AS sold
FROM stock_movements
WHERE movement = 'OUT'
GROUP BY sku
ORDER BY sold DESC, sku
LIMIT 3;
END;
