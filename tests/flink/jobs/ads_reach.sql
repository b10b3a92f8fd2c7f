-- Reach and frequency of campaigns: users by platform, and how often they saw it.
SET 'pipeline.name' = 'ads-reach';
SET 'table.optimizer.distinct-agg.split.enabled' = 'true';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  price_micros BIGINT,
  shown_at TIMESTAMP(3),
  device ROW<os STRING, model STRING>
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

CREATE TABLE reach (
  campaign_id INT,
  impressions BIGINT,
  users BIGINT,
  ios_users BIGINT,
  android_users BIGINT,
  unknown_models BIGINT,
  first_shown TIMESTAMP(3),
  last_shown TIMESTAMP(3),
  PRIMARY KEY (campaign_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE frequency (
  campaign_id INT,
  bucket STRING,
  users BIGINT,
  PRIMARY KEY (campaign_id, bucket) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE devices_seen (
  os STRING,
  model STRING,
  impressions BIGINT,
  spend DECIMAL(18, 2)
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO reach
SELECT
  campaign_id,
  COUNT(*),
  COUNT(DISTINCT user_id),
  COUNT(DISTINCT user_id) FILTER (WHERE device.os = 'ios'),
  COUNT(DISTINCT user_id) FILTER (WHERE device.os = 'android'),
  COUNT(*) FILTER (WHERE device.model IS NULL),
  MIN(shown_at),
  MAX(shown_at)
FROM impressions
GROUP BY campaign_id;

INSERT INTO frequency
SELECT campaign_id, bucket, COUNT(*)
FROM (
  SELECT
    campaign_id,
    user_id,
    CASE WHEN COUNT(*) = 1 THEN 'once' WHEN COUNT(*) <= 3 THEN '2-3' ELSE 'more' END AS bucket
  FROM impressions
  GROUP BY campaign_id, user_id
)
GROUP BY campaign_id, bucket;

INSERT INTO devices_seen
SELECT i.device.os, COALESCE(i.device.model, 'n/a'), COUNT(*), CAST(SUM(price_micros) / 1000000.0 AS DECIMAL(18, 2))
FROM impressions AS i
GROUP BY GROUPING SETS ((i.device.os, i.device.model), (i.device.os), ());
END;
