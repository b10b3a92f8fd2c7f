-- Revenue by country, kept up to date while orders and customers come in.
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE orders (id BIGINT, customer BIGINT, total DECIMAL(10, 2), status STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');

CREATE TABLE customers (id BIGINT, country STRING)
WITH ('connector' = 'filesystem', 'path' = 'data/customers', 'format' = 'json');

CREATE TABLE revenue (country STRING, orders BIGINT, total DECIMAL(38, 2), PRIMARY KEY (country) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:revenue.db', 'table-name' = 'revenue');

INSERT INTO revenue
SELECT /*+ STATE_TTL('o' = '1 d') */ c.country, COUNT(*), SUM(o.total)
FROM orders AS o
JOIN customers AS c ON o.customer = c.id
GROUP BY c.country;
