-- Purchases of a player in one go, in the group windows of an older job, and a day of them in two steps.
SET 'pipeline.name' = 'spending-sprees';

CREATE TABLE purchases (
  purchase_id BIGINT,
  player_id BIGINT,
  item STRING,
  gems INT,
  bought_at TIMESTAMP(3),
  WATERMARK FOR bought_at AS bought_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchases.json', 'format' = 'json');

CREATE TABLE sprees (
  player_id BIGINT,
  started TIMESTAMP(3),
  ended TIMESTAMP(3),
  purchases BIGINT,
  gems INT
) WITH ('connector' = 'print');

CREATE TABLE sprees_per_day (
  started TIMESTAMP(3),
  sprees BIGINT,
  gems INT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW of_players AS
SELECT
  player_id,
  SESSION_START(bought_at, INTERVAL '3' HOUR) AS started,
  SESSION_END(bought_at, INTERVAL '3' HOUR) AS ended,
  SESSION_ROWTIME(bought_at, INTERVAL '3' HOUR) AS closed_at,
  COUNT(*) AS purchases,
  SUM(gems) AS gems
FROM purchases
GROUP BY player_id, SESSION(bought_at, INTERVAL '3' HOUR);

EXECUTE STATEMENT SET BEGIN
INSERT INTO sprees
SELECT player_id, started, ended, purchases, gems FROM of_players;

INSERT INTO sprees_per_day
SELECT TUMBLE_START(closed_at, INTERVAL '12' HOUR), COUNT(*), SUM(gems)
FROM of_players
GROUP BY TUMBLE(closed_at, INTERVAL '12' HOUR);
END;
