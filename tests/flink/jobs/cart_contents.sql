-- What lies in the carts of a shop: labels, lines and prices, each a row of its own.
CREATE TABLE carts (
  id BIGINT,
  buyer STRING,
  labels ARRAY<STRING>,
  `lines` ARRAY<ROW<sku STRING, qty INT>>,
  prices MAP<STRING, DOUBLE>,
  batches ARRAY<ARRAY<BIGINT>>
) WITH ('connector' = 'filesystem', 'path' = 'rows/cart_contents.json', 'format' = 'json');

CREATE TABLE labelled (id BIGINT, label STRING, place INT)
WITH ('connector' = 'filesystem', 'path' = 'out/labelled', 'format' = 'json');
CREATE TABLE all_labelled (id BIGINT, label STRING, place INT)
WITH ('connector' = 'filesystem', 'path' = 'out/all_labelled', 'format' = 'json');
CREATE TABLE cart_lines (id BIGINT, sku STRING, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/cart_lines', 'format' = 'json');
CREATE TABLE all_cart_lines (id BIGINT, sku STRING, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/all_cart_lines', 'format' = 'json');
CREATE TABLE priced (id BIGINT, sku STRING, price DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'out/priced', 'format' = 'json');
CREATE TABLE all_priced (id BIGINT, sku STRING, price DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'out/all_priced', 'format' = 'json');
CREATE TABLE batched (id BIGINT, batch BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'out/batched', 'format' = 'json');
CREATE TABLE sold (sku STRING, carts BIGINT, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/sold', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE built (id BIGINT, a BIGINT, b STRING, k STRING, v STRING)
WITH ('connector' = 'filesystem', 'path' = 'out/built', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO labelled SELECT id, label, n FROM carts CROSS JOIN UNNEST(labels) WITH ORDINALITY AS t(label, n);
INSERT INTO all_labelled
SELECT id, label, n FROM carts LEFT JOIN UNNEST(labels) WITH ORDINALITY AS t(label, n) ON TRUE WHERE id <> 2;
INSERT INTO cart_lines SELECT id, t.* FROM carts, UNNEST(`lines`) AS t;
INSERT INTO all_cart_lines SELECT id, t.sku, t.qty FROM carts LEFT JOIN UNNEST(`lines`) AS t ON TRUE;
INSERT INTO priced SELECT id, k, v FROM carts JOIN UNNEST(prices) AS t(k, v) ON v > 1 OR k = 'pear';
INSERT INTO all_priced SELECT id, k, v FROM carts LEFT JOIN UNNEST(prices) AS t(k, v) ON TRUE;
INSERT INTO batched SELECT id, y FROM carts CROSS JOIN UNNEST(batches) AS t(x) CROSS JOIN UNNEST(x) AS u(y);
INSERT INTO sold
SELECT t.sku, COUNT(DISTINCT id), SUM(t.qty) FROM carts, UNNEST(`lines`) AS t WHERE t.qty > 0 GROUP BY t.sku;
INSERT INTO built
SELECT id, a, b, k, v FROM carts
CROSS JOIN UNNEST(ARRAY[ROW(id, buyer), ROW(id + 1, 'next')]) AS t(a, b)
CROSS JOIN UNNEST(MAP['buyer', buyer]) AS u(k, v);
END;
