-- Loyalty programme: points from orders, tiers by points, and how many members each tier has.
SET 'pipeline.name' = 'loyalty-tiers';
SET 'table.exec.state.ttl' = '400 d';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  status STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem', 'path' = 'rows/orders_cdc.json', 'format' = 'json', 'source.changelog' = 'true'
);

CREATE TABLE members (
  customer_id BIGINT,
  tier STRING,
  points BIGINT,
  to_next BIGINT,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE tier_sizes (
  tier STRING,
  members BIGINT,
  points BIGINT,
  best BIGINT,
  PRIMARY KEY (tier) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE top_members (
  customer_id BIGINT,
  points BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW tiers (tier, from_points, to_points) AS
SELECT * FROM (VALUES ('basic', 0, 100), ('silver', 100, 400), ('gold', 400, 1000000)) AS t (a, b, c);

CREATE TEMPORARY VIEW points AS
SELECT customer_id, SUM(CAST(FLOOR(amount) AS BIGINT)) AS points
FROM orders
WHERE status <> 'CANCELLED' AND amount IS NOT NULL AND customer_id IS NOT NULL
GROUP BY customer_id;

CREATE TEMPORARY VIEW ranked AS
SELECT p.customer_id, p.points, t.tier, t.to_points
FROM points AS p
JOIN tiers AS t ON p.points >= t.from_points AND p.points < t.to_points;

EXECUTE STATEMENT SET BEGIN
INSERT INTO members
SELECT customer_id, tier, points, CASE WHEN tier <> 'gold' THEN to_points - points END
FROM ranked;

INSERT INTO tier_sizes SELECT tier, COUNT(*), SUM(points), MAX(points) FROM ranked GROUP BY tier;

INSERT INTO top_members SELECT customer_id, points FROM points ORDER BY points DESC, customer_id LIMIT 3;
END;
