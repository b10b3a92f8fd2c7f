-- Open purchase orders by supplier, suppliers compared with each other, and orders for what no warehouse lacks.
SET 'pipeline.name' = 'purchasing';

CREATE TABLE purchase_orders (
  po_id BIGINT,
  sku STRING,
  warehouse STRING,
  supplier STRING,
  quantity INT,
  received INT,
  eta DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchase_orders.json', 'format' = 'json');

CREATE TABLE reorder_points (
  warehouse STRING,
  sku STRING,
  minimum INT,
  lot_size INT
) WITH ('connector' = 'filesystem', 'path' = 'rows/reorder_points.json', 'format' = 'json');

CREATE TABLE supplier_summary (
  supplier STRING,
  sort_order INT,
  orders BIGINT,
  ordered INT,
  received INT,
  fill_rate DECIMAL(6, 3),
  next_eta DATE
) WITH ('connector' = 'print');

CREATE TABLE above_average (
  po_id BIGINT,
  supplier STRING,
  quantity INT,
  PRIMARY KEY (po_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE unneeded (
  po_id BIGINT,
  sku STRING,
  warehouse STRING
) WITH ('connector' = 'print');

CREATE TABLE eta_changes (
  `week` BIGINT,
  supplier STRING,
  expected INT
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO supplier_summary
SELECT
  supplier, 1, COUNT(*), SUM(quantity), SUM(COALESCE(received, 0)),
  CAST(CAST(SUM(COALESCE(received, 0)) AS DECIMAL(10, 3)) / SUM(quantity) AS DECIMAL(6, 3)),
  MIN(eta) FILTER (WHERE received IS NULL)
FROM purchase_orders
GROUP BY supplier
UNION ALL
SELECT
  'all', 2, COUNT(*), SUM(quantity), SUM(COALESCE(received, 0)),
  CAST(CAST(SUM(COALESCE(received, 0)) AS DECIMAL(10, 3)) / SUM(quantity) AS DECIMAL(6, 3)),
  MIN(eta) FILTER (WHERE received IS NULL)
FROM purchase_orders;

INSERT INTO above_average
SELECT po_id, supplier, quantity
FROM purchase_orders AS p
WHERE quantity > (SELECT AVG(quantity) FROM purchase_orders AS q WHERE q.supplier = p.supplier);

INSERT INTO unneeded
SELECT po_id, sku, warehouse
FROM purchase_orders
WHERE (warehouse, sku) NOT IN (
  SELECT warehouse, sku FROM reorder_points WHERE warehouse IS NOT NULL AND sku IS NOT NULL
) AND warehouse IS NOT NULL AND sku IS NOT NULL;

INSERT INTO eta_changes
SELECT WEEK(eta), supplier, SUM(quantity - IFNULL(received, 0))
FROM purchase_orders
WHERE quantity > IFNULL(received, 0)
GROUP BY WEEK(eta), supplier
HAVING COUNT(*) > 1;
END;
