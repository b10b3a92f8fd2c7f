-- Last-click attribution: each conversion belongs to its click, each click to its impression.
-- Clicks come twice at times; the first one that is valid counts.
SET 'pipeline.name' = 'ads-attribution';
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  shown_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

CREATE TABLE clicks (
  click_id STRING,
  impression_id STRING,
  valid BOOLEAN,
  clicked_at TIMESTAMP(3),
  WATERMARK FOR clicked_at AS clicked_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/clicks.json', 'format' = 'json');

CREATE TABLE conversions (
  conversion_id BIGINT,
  click_id STRING,
  revenue DECIMAL(10, 2),
  kind STRING,
  converted_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/conversions.json', 'format' = 'json');

CREATE TABLE attributed (
  conversion_id BIGINT,
  campaign_id INT,
  placement STRING,
  user_id BIGINT,
  minutes_to_convert INT,
  revenue DECIMAL(10, 2)
) WITH ('connector' = 'filesystem', 'path' = 'out/attributed', 'format' = 'json');

CREATE TABLE placement_funnel (
  campaign_id INT,
  placement STRING,
  impressions BIGINT,
  clicks BIGINT,
  conversions BIGINT,
  ctr DECIMAL(10, 4),
  PRIMARY KEY (campaign_id, placement) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW first_clicks AS
SELECT click_id, impression_id, clicked_at
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY impression_id ORDER BY clicked_at ASC) AS rn
  FROM clicks
  WHERE valid
)
WHERE rn = 1;

EXECUTE STATEMENT SET BEGIN
INSERT INTO attributed
SELECT /*+ STATE_TTL('v' = '7 d', 'k' = '1 d') */
  v.conversion_id, i.campaign_id, i.placement, i.user_id, TIMESTAMPDIFF(MINUTE, i.shown_at, v.converted_at), v.revenue
FROM conversions AS v
JOIN clicks AS k ON v.click_id = k.click_id
JOIN impressions AS i ON k.impression_id = i.impression_id
WHERE v.kind = 'purchase' AND v.revenue IS NOT NULL;

INSERT INTO placement_funnel
SELECT
  i.campaign_id,
  i.placement,
  COUNT(*),
  COUNT(k.click_id),
  COUNT(v.conversion_id),
  CAST(CAST(COUNT(k.click_id) AS DECIMAL(10, 4)) / COUNT(*) AS DECIMAL(10, 4))
FROM impressions AS i
LEFT JOIN first_clicks AS k ON k.impression_id = i.impression_id
LEFT JOIN conversions AS v ON v.click_id = k.click_id
GROUP BY i.campaign_id, i.placement;
END;
