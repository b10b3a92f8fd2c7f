-- Matches and purchases of a player in the same part of the day.
SET 'pipeline.name' = 'player-activity';

CREATE TABLE scores (
  match_id BIGINT,
  player_id BIGINT,
  `mode` STRING,
  score INT,
  kills INT,
  deaths INT,
  finished_at TIMESTAMP(3),
  WATERMARK FOR finished_at AS finished_at - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'rows/scores.json', 'format' = 'json');

CREATE TABLE purchases (
  purchase_id BIGINT,
  player_id BIGINT,
  item STRING,
  gems INT,
  bought_at TIMESTAMP(3),
  WATERMARK FOR bought_at AS bought_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/purchases.json', 'format' = 'json');

CREATE TABLE activity (
  player_id BIGINT,
  window_start TIMESTAMP(3),
  `matches` BIGINT,
  best INT,
  purchases BIGINT,
  gems INT
) WITH ('connector' = 'print');

CREATE TABLE bought_after_match (
  player_id BIGINT,
  match_id BIGINT,
  item STRING,
  minutes INT
) WITH ('connector' = 'print');

CREATE TABLE payers (
  window_start TIMESTAMP(3),
  player_id BIGINT,
  score INT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW played AS
SELECT player_id, window_start, window_end, COUNT(*) AS `matches`, MAX(score) AS best
FROM TABLE(TUMBLE(TABLE scores, DESCRIPTOR(finished_at), INTERVAL '12' HOUR))
GROUP BY player_id, window_start, window_end;

CREATE TEMPORARY VIEW paid AS
SELECT player_id, window_start, window_end, COUNT(*) AS purchases, SUM(gems) AS gems
FROM TABLE(TUMBLE(TABLE purchases, DESCRIPTOR(bought_at), INTERVAL '12' HOUR))
GROUP BY player_id, window_start, window_end;

EXECUTE STATEMENT SET BEGIN
INSERT INTO activity
SELECT
  COALESCE(s.player_id, p.player_id), COALESCE(s.window_start, p.window_start),
  s.`matches`, s.best, p.purchases, p.gems
FROM played AS s
FULL OUTER JOIN paid AS p
  ON s.player_id = p.player_id AND s.window_start = p.window_start AND s.window_end = p.window_end;

INSERT INTO bought_after_match
SELECT s.player_id, s.match_id, p.item, TIMESTAMPDIFF(MINUTE, s.finished_at, p.bought_at)
FROM scores AS s, purchases AS p
WHERE s.player_id = p.player_id
  AND p.bought_at BETWEEN s.finished_at AND s.finished_at + INTERVAL '90' MINUTE;

INSERT INTO payers
SELECT s.window_start, s.player_id, s.score
FROM (SELECT * FROM TABLE(TUMBLE(TABLE scores, DESCRIPTOR(finished_at), INTERVAL '6' HOUR))) AS s
WHERE EXISTS (
  SELECT *
  FROM (SELECT * FROM TABLE(TUMBLE(TABLE purchases, DESCRIPTOR(bought_at), INTERVAL '6' HOUR))) AS p
  WHERE p.player_id = s.player_id AND p.window_start = s.window_start AND p.window_end = s.window_end
);
END;
