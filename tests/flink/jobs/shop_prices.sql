-- Receipts with the price and the offer that were valid when they were written.
SET 'pipeline.name' = 'shop-prices';

CREATE TABLE sales (
  sale_id BIGINT,
  sku STRING,
  quantity INT,
  sold_at TIMESTAMP(3),
  WATERMARK FOR sold_at AS sold_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/sales.json', 'format' = 'json');

CREATE TABLE prices (
  sku STRING,
  price DECIMAL(10, 2),
  valid_from TIMESTAMP(3),
  PRIMARY KEY (sku) NOT ENFORCED,
  WATERMARK FOR valid_from AS valid_from
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/prices.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE receipts (
  sale_id BIGINT,
  sku STRING,
  quantity INT,
  price DECIMAL(10, 2),
  total DECIMAL(14, 2)
) WITH ('connector' = 'print');

CREATE TABLE unknown_prices (
  sale_id BIGINT,
  sku STRING
) WITH ('connector' = 'print');

CREATE TABLE daily_sales (
  sku STRING,
  window_end TIMESTAMP(3),
  sold BIGINT,
  total DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW priced AS
SELECT s.sale_id, s.sku, s.quantity, p.price, s.quantity * p.price AS total, s.sold_at
FROM sales AS s
LEFT JOIN prices FOR SYSTEM_TIME AS OF s.sold_at AS p ON p.sku = s.sku;

EXECUTE STATEMENT SET BEGIN
INSERT INTO receipts
SELECT sale_id, sku, quantity, price, CAST(total AS DECIMAL(14, 2)) FROM priced WHERE price IS NOT NULL;

INSERT INTO unknown_prices
SELECT sale_id, sku FROM priced WHERE price IS NULL;

INSERT INTO daily_sales
SELECT sku, window_end, SUM(CAST(quantity AS BIGINT)), SUM(CAST(total AS DECIMAL(14, 2)))
FROM TABLE(CUMULATE(TABLE priced, DESCRIPTOR(sold_at), INTERVAL '6' HOUR, INTERVAL '1' DAY))
GROUP BY sku, window_start, window_end;
END;
