-- Carts that change: their lines change with them.
CREATE TABLE carts (
  id BIGINT,
  labels ARRAY<STRING>,
  `lines` ARRAY<ROW<sku STRING, qty INT>>,
  prices MAP<STRING, DOUBLE>
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/cart_changes.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE labelled (id BIGINT, label STRING, place INT)
WITH ('connector' = 'filesystem', 'path' = 'out/labelled', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE cart_lines (id BIGINT, sku STRING, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/cart_lines', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE priced (id BIGINT, sku STRING, price DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'out/priced', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE sold (sku STRING, carts BIGINT, qty INT)
WITH ('connector' = 'filesystem', 'path' = 'out/sold', 'format' = 'json', 'sink.changelog' = 'true');

EXECUTE STATEMENT SET BEGIN
INSERT INTO labelled SELECT id, label, n FROM carts LEFT JOIN UNNEST(labels) WITH ORDINALITY AS t(label, n) ON TRUE;
INSERT INTO cart_lines SELECT id, t.sku, t.qty FROM carts LEFT JOIN UNNEST(`lines`) AS t ON TRUE;
INSERT INTO priced SELECT id, k, v FROM carts, UNNEST(prices) AS t(k, v);
INSERT INTO sold SELECT t.sku, COUNT(DISTINCT id), SUM(t.qty) FROM carts, UNNEST(`lines`) AS t GROUP BY t.sku;
END;
