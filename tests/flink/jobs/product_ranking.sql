-- Best sellers per category. The catalogue comes as upserts by SKU, items as they are sold.
SET 'pipeline.name' = 'product-ranking';
SET 'table.exec.state.ttl' = '14 d';

CREATE TABLE products (
  sku STRING,
  title STRING,
  category STRING,
  list_price DECIMAL(8, 2),
  active BOOLEAN,
  updated_at TIMESTAMP(3),
  PRIMARY KEY (sku) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/products.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE order_items (
  order_id BIGINT,
  line_no INT,
  sku STRING,
  quantity INT,
  unit_price DECIMAL(8, 2),
  discount DECIMAL(3, 2),
  line_total AS CAST(quantity * unit_price * (1 - COALESCE(discount, 0)) AS DECIMAL(12, 2))
) WITH ('connector' = 'filesystem', 'path' = 'rows/order_items.json', 'format' = 'json');

CREATE TABLE best_sellers (
  category STRING,
  `rank` BIGINT,
  sku STRING,
  title STRING,
  units INT,
  revenue DECIMAL(38, 2),
  PRIMARY KEY (category, `rank`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE category_totals (
  category STRING,
  products BIGINT,
  units INT,
  revenue DECIMAL(38, 2),
  average_price DECIMAL(38, 6),
  PRIMARY KEY (category) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW sold AS
SELECT /*+ STATE_TTL('i' = '14 d', 'p' = '3650 d') */
  p.sku,
  p.title,
  COALESCE(p.category, 'none') AS category,
  i.quantity,
  i.unit_price,
  i.line_total
FROM order_items AS i
JOIN products AS p ON i.sku = p.sku
WHERE p.active;

EXECUTE STATEMENT SET BEGIN
  INSERT INTO best_sellers
  SELECT category, rn, sku, title, units, revenue
  FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY category ORDER BY revenue DESC, sku) AS rn
    FROM (
      SELECT category, sku, MAX(title) AS title, SUM(quantity) AS units, SUM(line_total) AS revenue
      FROM sold
      GROUP BY category, sku
    )
  )
  WHERE rn <= 2;

  INSERT INTO category_totals
  SELECT category, COUNT(DISTINCT sku), SUM(quantity), SUM(line_total), AVG(unit_price)
  FROM sold
  GROUP BY category
  HAVING SUM(quantity) > 3;
END;
