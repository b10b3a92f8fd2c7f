-- Who pays, how fast, and for what.
SET 'pipeline.name' = 'game-economy';
SET 'table.exec.state.ttl' = '60 d';

CREATE TABLE purchases (
  purchase_id BIGINT,
  player_id BIGINT,
  item STRING,
  gems INT,
  bought_at TIMESTAMP(3),
  proc_time AS PROCTIME()
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchases.json', 'format' = 'json');

CREATE TABLE players (
  player_id BIGINT,
  nick STRING,
  region STRING,
  joined_on DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/players.json', 'format' = 'json');

CREATE TABLE scores (
  match_id BIGINT,
  player_id BIGINT,
  `mode` STRING,
  finished_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/scores.json', 'format' = 'json');

CREATE TABLE first_purchases (
  player_id BIGINT,
  item STRING,
  gems INT,
  bought_at TIMESTAMP(3)
) WITH ('connector' = 'print');

CREATE TABLE regions (
  region STRING,
  players BIGINT,
  payers BIGINT,
  gems INT,
  gems_per_payer INT,
  PRIMARY KEY (region) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE whales (
  nick STRING,
  gems INT,
  share_of_all DOUBLE
) WITH ('connector' = 'print');

CREATE TABLE without_pass (
  player_id BIGINT,
  nick STRING,
  `matches` BIGINT
) WITH ('connector' = 'print');

BEGIN STATEMENT SET;

INSERT INTO first_purchases
SELECT player_id, item, gems, bought_at
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY player_id ORDER BY proc_time) AS n FROM purchases)
WHERE n = 1;

INSERT INTO regions
SELECT
  p.region,
  COUNT(*),
  COUNT(b.player_id),
  SUM(b.gems),
  CASE WHEN COUNT(b.player_id) > 0 THEN SUM(b.gems) / CAST(COUNT(b.player_id) AS INT) END
FROM players AS p
LEFT JOIN (SELECT player_id, SUM(gems) AS gems FROM purchases GROUP BY player_id) AS b ON p.player_id = b.player_id
GROUP BY p.region;

INSERT INTO whales
SELECT p.nick, b.gems, ROUND(CAST(b.gems AS DOUBLE) / (SELECT SUM(gems) FROM purchases), 4)
FROM (SELECT player_id, SUM(gems) AS gems FROM purchases GROUP BY player_id) AS b
JOIN players AS p ON p.player_id = b.player_id
WHERE b.gems > (SELECT AVG(x.gems) FROM (SELECT SUM(gems) AS gems FROM purchases GROUP BY player_id) AS x);

INSERT INTO without_pass
SELECT p.player_id, p.nick, (SELECT COUNT(*) FROM scores AS s WHERE s.player_id = p.player_id)
FROM players AS p
WHERE p.player_id NOT IN (SELECT player_id FROM purchases WHERE item = 'pass' AND player_id IS NOT NULL);

END;
