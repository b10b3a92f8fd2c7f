-- The best of each quarter of the day, the last match of each player in it, and who was beaten by whom.
SET 'pipeline.name' = 'tournament';

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

CREATE TABLE players (
  player_id BIGINT,
  nick STRING,
  region STRING,
  joined_on DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/players.json', 'format' = 'json');

CREATE TABLE podium (
  window_start TIMESTAMP(3),
  `mode` STRING,
  place BIGINT,
  nick STRING,
  score INT
) WITH ('connector' = 'print');

CREATE TABLE last_matches (
  window_end TIMESTAMP(3),
  player_id BIGINT,
  match_id BIGINT,
  score INT
) WITH ('connector' = 'print');

CREATE TABLE regions (
  window_start TIMESTAMP(3),
  region STRING,
  `matches` BIGINT,
  kills_per_death DOUBLE
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW parts_of_day AS
SELECT *
FROM TABLE(TUMBLE(DATA => TABLE scores, TIMECOL => DESCRIPTOR(finished_at), SIZE => INTERVAL '6' HOUR));

EXECUTE STATEMENT SET BEGIN
INSERT INTO podium
SELECT b.window_start, b.`mode`, b.place, p.nick, b.score
FROM (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY window_start, window_end, `mode` ORDER BY score DESC, match_id) AS place
  FROM parts_of_day
) AS b
LEFT JOIN players AS p ON p.player_id = b.player_id
WHERE b.place <= 2;

INSERT INTO last_matches
SELECT window_end, player_id, match_id, score
FROM (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY window_start, window_end, player_id ORDER BY finished_at DESC) AS n
  FROM parts_of_day
)
WHERE n = 1;

INSERT INTO regions
SELECT s.window_start, p.region, COUNT(*), CAST(SUM(s.kills) AS DOUBLE) / NULLIF(SUM(s.deaths), 0)
FROM parts_of_day AS s
JOIN players AS p ON p.player_id = s.player_id
GROUP BY s.window_start, s.window_end, p.region;
END;
