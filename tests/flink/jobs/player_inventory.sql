-- What players own, their standing in both modes, and friends suggestions: players of the same matches.
SET 'pipeline.name' = 'player-inventory';
SET 'table.exec.state.ttl' = '90 d';

CREATE TABLE purchases (
  purchase_id BIGINT,
  player_id BIGINT,
  item STRING,
  gems INT,
  bought_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchases.json', 'format' = 'json');

CREATE TABLE scores (
  match_id BIGINT,
  player_id BIGINT,
  `mode` STRING,
  score INT,
  finished_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/scores.json', 'format' = 'json');

CREATE TABLE inventory (
  player_id BIGINT,
  items STRING,
  gems INT,
  rarest STRING,
  PRIMARY KEY (player_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE standing (
  player_id BIGINT,
  solo_best INT,
  duo_best INT,
  both_modes BOOLEAN,
  PRIMARY KEY (player_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE suggestions (
  player_id BIGINT,
  other_id BIGINT,
  together BIGINT
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO inventory
SELECT player_id, LISTAGG(item, '+'), SUM(gems), MAX(CASE WHEN gems >= 100 THEN item END)
FROM purchases
GROUP BY player_id;

INSERT INTO standing
SELECT
  COALESCE(s.player_id, d.player_id), s.best, d.best, s.player_id IS NOT NULL AND d.player_id IS NOT NULL
FROM (SELECT player_id, MAX(score) AS best FROM scores WHERE `mode` = 'solo' GROUP BY player_id) AS s
FULL OUTER JOIN (SELECT player_id, MAX(score) AS best FROM scores WHERE `mode` = 'duo' GROUP BY player_id) AS d
  ON s.player_id = d.player_id;

INSERT INTO suggestions
SELECT a.player_id, b.player_id, COUNT(DISTINCT a.match_id)
FROM scores AS a
JOIN scores AS b ON a.match_id = b.match_id AND a.player_id < b.player_id
WHERE NOT EXISTS (SELECT 1 FROM purchases AS p WHERE p.player_id = a.player_id AND p.item = 'pass')
GROUP BY a.player_id, b.player_id;
END;
