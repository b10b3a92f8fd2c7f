-- Game leaderboards: the best players of each mode and region, all-time records, and a rating by kills and deaths.
SET 'pipeline.name' = 'leaderboard';
SET 'table.exec.rank.topn-cache-size' = '100000';

CREATE TABLE scores (
  match_id BIGINT,
  player_id BIGINT,
  `mode` STRING,
  score INT,
  kills INT,
  deaths INT,
  finished_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/scores.json', 'format' = 'json');

CREATE TABLE players (
  player_id BIGINT,
  nick STRING,
  region STRING,
  joined_on DATE
) WITH ('connector' = 'filesystem', 'path' = 'rows/players.json', 'format' = 'json');

CREATE TABLE top_players (
  region STRING,
  `mode` STRING,
  place BIGINT,
  nick STRING,
  total INT,
  `matches` BIGINT,
  PRIMARY KEY (region, `mode`, place) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE records (
  `mode` STRING,
  nick STRING,
  score INT,
  match_id BIGINT,
  PRIMARY KEY (`mode`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE ratings (
  player_id BIGINT,
  rating DOUBLE,
  `rank` STRING
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW player_scores AS
SELECT s.*, COALESCE(p.nick, 'guest ' || CAST(s.player_id AS STRING)) AS nick, COALESCE(p.region, '-') AS region
FROM scores AS s
LEFT JOIN players AS p ON s.player_id = p.player_id;

CREATE TEMPORARY VIEW player_totals AS
SELECT region, `mode`, nick, SUM(score) AS total, COUNT(*) AS `matches`
FROM player_scores
GROUP BY region, `mode`, nick;

INSERT INTO top_players
SELECT region, `mode`, place, nick, total, `matches`
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY region, `mode` ORDER BY total DESC, nick ASC) AS place
  FROM player_totals
)
WHERE place <= 3;

INSERT INTO records
SELECT `mode`, nick, score, match_id
FROM (
  SELECT `mode`, nick, score, match_id,
    ROW_NUMBER() OVER (PARTITION BY `mode` ORDER BY score DESC, finished_at) AS n
  FROM player_scores
)
WHERE n = 1;

-- The ten best ratings of those who have played at least three times.
INSERT INTO ratings
SELECT player_id, rating, CASE WHEN rating >= 3 THEN 'gold' WHEN rating >= 1.5 THEN 'silver' ELSE 'bronze' END
FROM (
  SELECT player_id, ROUND(CAST(SUM(kills) AS DOUBLE) / GREATEST(SUM(deaths), 1), 3) AS rating
  FROM scores
  GROUP BY player_id
  HAVING COUNT(*) >= 3
)
ORDER BY rating DESC, player_id
LIMIT 10;
