-- Carts that change, as lists: who has a product in the cart, how much of it, what the labels and prices are.
CREATE TABLE carts (
  id BIGINT,
  labels ARRAY<STRING>,
  `lines` ARRAY<ROW<sku STRING, qty INT>>,
  prices MAP<STRING, DOUBLE>
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/cart_changes.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE by_product (
  sku STRING,
  carts ARRAY<BIGINT>,
  several ARRAY<INT>,
  `lines` ARRAY<ROW<id BIGINT, qty INT>>,
  PRIMARY KEY (sku) NOT ENFORCED
) WITH ('connector' = 'print');
CREATE TABLE everything (labels ARRAY<ARRAY<STRING>>, prices ARRAY<MAP<STRING, DOUBLE>>)
WITH ('connector' = 'filesystem', 'path' = 'out/everything', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE one_by_one (sku STRING, id BIGINT, place INT)
WITH ('connector' = 'filesystem', 'path' = 'out/one_by_one', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE first_products (sku STRING, carts ARRAY<BIGINT>, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/first_products', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE first_lines (sku STRING, carts BIGINT, qty INT, label STRING, price DOUBLE, gifts BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'out/first_lines', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE same_labels (labels ARRAY<STRING>, `line` ROW<sku STRING, qty INT>, carts BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'out/same_labels', 'format' = 'json', 'sink.changelog' = 'true');

CREATE TEMPORARY VIEW bought AS
SELECT c.id, l.sku, l.qty FROM carts AS c CROSS JOIN UNNEST(c.`lines`) AS l (sku, qty);

EXECUTE STATEMENT SET BEGIN
INSERT INTO by_product
SELECT sku, ARRAY_AGG(id), ARRAY_AGG(qty) FILTER (WHERE qty > 1), ARRAY_AGG(CAST(ROW(id, qty) AS ROW<id BIGINT, qty INT>))
FROM bought
GROUP BY sku;

INSERT INTO everything SELECT ARRAY_AGG(labels), ARRAY_AGG(prices) IGNORE NULLS FROM carts;

INSERT INTO one_by_one
SELECT t.sku, u.id, u.place
FROM (SELECT sku, ARRAY_AGG(DISTINCT id) AS ids FROM bought GROUP BY sku) AS t
CROSS JOIN UNNEST(t.ids) WITH ORDINALITY AS u (id, place);

INSERT INTO first_products
SELECT sku, carts, qty
FROM (
  SELECT sku, carts, qty, ROW_NUMBER() OVER (ORDER BY qty DESC, sku) AS place
  FROM (SELECT sku, ARRAY_AGG(id) AS carts, SUM(qty) AS qty FROM bought GROUP BY sku) AS t
) AS r
WHERE place <= 2;

INSERT INTO first_lines
SELECT `lines`[1].sku, COUNT(*), SUM(`lines`[1].qty), MIN(labels[1]), MAX(prices['plum']),
  COUNT(*) FILTER (WHERE labels[1] = 'gift')
FROM carts
GROUP BY `lines`[1].sku;

INSERT INTO same_labels SELECT labels, `lines`[1], COUNT(*) FROM carts GROUP BY labels, `lines`[1];
END;
