-- What campaigns spend in a day, step by step, against their budget.
SET 'pipeline.name' = 'campaign-pacing';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  price_micros BIGINT,
  shown_at TIMESTAMP(3),
  device ROW<os STRING, model STRING>,
  WATERMARK FOR shown_at AS shown_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

CREATE TABLE campaigns (
  campaign_id INT,
  advertiser STRING,
  name STRING,
  daily_budget DECIMAL(10, 2),
  bid_type STRING,
  active BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = 'rows/campaigns.json', 'format' = 'json');

CREATE TABLE pacing (
  campaign_id INT,
  advertiser STRING,
  window_end TIMESTAMP(3),
  impressions BIGINT,
  spent DECIMAL(20, 6),
  percent_of_budget DECIMAL(10, 4)
) WITH ('connector' = 'print');

CREATE TABLE placements (
  window_start TIMESTAMP(3),
  placement STRING,
  os STRING,
  impressions BIGINT,
  users BIGINT
) WITH ('connector' = 'print');

CREATE TABLE frequency (
  user_id BIGINT,
  window_start TIMESTAMP(3),
  seen BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW flat AS
SELECT campaign_id, user_id, placement, device.os AS os, CAST(price_micros AS DECIMAL(20, 6)) / 1000000 AS price, shown_at
FROM impressions;

EXECUTE STATEMENT SET BEGIN
INSERT INTO pacing
SELECT
  s.campaign_id, c.advertiser, s.window_end, s.impressions, CAST(s.spent AS DECIMAL(20, 6)),
  CAST(100 * s.spent / c.daily_budget AS DECIMAL(10, 4))
FROM (
  SELECT campaign_id, window_end, COUNT(*) AS impressions, SUM(price) AS spent
  FROM TABLE(CUMULATE(TABLE flat, DESCRIPTOR(shown_at), INTERVAL '6' HOUR, INTERVAL '1' DAY))
  GROUP BY campaign_id, window_start, window_end
) AS s
JOIN campaigns AS c ON c.campaign_id = s.campaign_id AND c.active;

INSERT INTO placements
SELECT window_start, placement, os, COUNT(*), COUNT(DISTINCT user_id)
FROM TABLE(TUMBLE(TABLE flat, DESCRIPTOR(shown_at), INTERVAL '4' HOUR, INTERVAL '2' HOUR))
GROUP BY window_start, window_end, GROUPING SETS ((placement), (os), ());

INSERT INTO frequency
SELECT user_id, window_start, COUNT(*)
FROM TABLE(HOP(TABLE flat, DESCRIPTOR(shown_at), INTERVAL '3' HOUR, INTERVAL '6' HOUR))
GROUP BY user_id, window_start, window_end
HAVING COUNT(*) > 3;
END;
